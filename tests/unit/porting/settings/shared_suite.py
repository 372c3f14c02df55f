# As centres write it that run one suite of all: features and scales, mpirun, processors, a log.
SCALES = ["1_core", "1_node"]  # no feature of ReFrame begins with a digit

site_configuration = {
    "systems": [
        {
            "name": "polder",
            "descr": "Polder, thin and GPU nodes",
            "hostnames": ["int1", "tcn.*"],
            "modules_system": "lmod",
            "prefix": "/scratch/reframe",
            "partitions": [
                {
                    "name": "rome",
                    "scheduler": "slurm",
                    "launcher": "mpirun",
                    "access": ["-p rome", "--export=None"],
                    "prepare_cmds": ["source /apps/init/bash"],
                    "environs": ["default"],
                    "features": ["cpu", *(f"scale_{scale}" for scale in SCALES)],
                    "processor": {"num_cpus": 256, "num_cpus_per_core": 2, "arch": "zen2"},
                    "max_jobs": 120,
                },
                {
                    "name": "gpu",
                    "scheduler": "slurm",
                    "launcher": "mpirun",
                    "access": ["-p gpu"],
                    "environs": ["default"],
                    "features": ["gpu"],
                    "resources": [
                        {"name": "_rfm_gpu", "options": ["--gpus-per-node={num_gpus_per_node}"]}
                    ],
                    "devices": [{"type": "gpu", "model": "A100"}],
                    "processor": {"num_cpus": 72, "arch": "ice-lake"},
                },
            ],
        }
    ],
    "environments": [{"name": "default", "cc": "cc", "cxx": "", "ftn": ""}],
    "logging": [
        {"handlers_perflog": [{"type": "filelog", "prefix": "%(check_system)s", "format": "x"}]}
    ],
    "general": [{"remote_detect": True}],
}
