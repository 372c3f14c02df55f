# As a large centre writes it: kinds of nodes by constraint, queues by QOS, GPUs by number.
site_configuration = {
    "systems": [
        {
            "name": "pearl",
            "hostnames": ["login[0-9]+"],
            "modules_system": "lmod",
            "modules": ["settarg"],
            "partitions": [
                {
                    "name": "cpu",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["-C cpu", "-q regular", "-A staff"],
                    "environs": ["gnu"],
                },
                {
                    "name": "cpu-debug",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["-C cpu", "-q debug", "-A staff"],
                    "environs": ["gnu"],
                },
                {
                    "name": "gpu",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["-C 'gpu&hbm80g'", "-q regular", "-A staff_g"],
                    "environs": ["gnu"],
                    "resources": [
                        {"name": "_rfm_gpu", "options": ["--gpus-per-node={num_gpus_per_node}"]}
                    ],
                    "devices": [{"type": "gpu", "arch": "sm_80", "num_devices": 4}],
                },
            ],
        }
    ],
    "environments": [{"name": "gnu", "modules": ["PrgEnv-gnu"], "extras": {"openmp": "-fopenmp"}}],
}
