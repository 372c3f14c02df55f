# As a university writes it: two clusters in a file, software by cluster, QOS and a reservation.
site_configuration = {
    "systems": [
        {
            "name": name,
            "descr": f"The cluster {name}",
            "hostnames": [f"{name}-[0-9]{{4}}", rf"access1\.{name}-cluster\.uni\.example"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "batch",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["--partition=batch", "--qos=normal", "--reservation=tests"],
                    "environs": ["foss", "system-gcc"],
                }
            ],
        }
        for name in ("north", "south")
    ],
    "environments": [
        {
            "name": "foss",
            "modules": ["env/2023b", "toolchain/foss/2023b"],
            "cc": "mpicc",
            "target_systems": ["north"],
        },
        {"name": "foss", "modules": ["toolchain/foss/2020b"], "target_systems": ["south"]},
        {"name": "system-gcc", "cc": "gcc", "features": ["stream"], "target_systems": ["north"]},
    ],
}
