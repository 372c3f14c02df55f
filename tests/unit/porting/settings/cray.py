# As a national centre writes it: several systems, hybrid nodes by constraint, containers.
import getpass

common = {
    "scheduler": "slurm",
    "launcher": "srun",
    "max_jobs": 100,
    "environs": ["builtin", "PrgEnv-gnu"],
    "container_platforms": [{"type": "Sarus", "modules": ["sarus"]}, {"type": "Singularity"}],
    "resources": [{"name": "memory", "options": ["--mem={mem_per_node}"]}],
}
site_configuration = {
    "systems": [
        {
            "name": "peak",
            "descr": "Peak, the large one",
            "hostnames": ["peak", "nid0"],
            "modules_system": "tmod32",
            "resourcesdir": "/apps/checks",
            "partitions": [
                {
                    "name": "login",
                    "descr": "Login nodes",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin", "PrgEnv-gnu"],
                    "max_jobs": 4,
                    "time_limit": "10m",
                },
                common
                | {
                    "name": "gpu",
                    "modules": ["peak-gpu"],
                    "access": ["-C gpu", f"--account={getpass.getuser()[:0]}csstaff"],
                    "features": ["gpu", "remote"],
                    "extras": {"cn_memory": 64},
                    "devices": [{"type": "gpu", "arch": "sm_60", "num_devices": 1}],
                },
                common | {"name": "mc", "modules": ["peak-mc"], "access": ["--constraint=mc"]},
            ],
        },
        {
            "name": "hill",
            "hostnames": ["hill"],
            "partitions": [{"name": "default", "scheduler": "local", "launcher": "local"}],
        },
    ],
    "environments": [
        {"name": "PrgEnv-gnu", "modules": ["PrgEnv-gnu"], "ftn": "ftn"},
        {"name": "PrgEnv-gnu", "modules": ["PrgEnv-gnu", "gcc/12"], "target_systems": ["peak:mc"]},
    ],
    "modes": [{"name": "maintenance", "options": ["--tag=maintenance"]}],
}
