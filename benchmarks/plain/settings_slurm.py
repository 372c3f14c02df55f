"""Plain ReFrame on the test bed, as its users have it: default poll rates, wide max_jobs."""

site_configuration = {
    "systems": [
        {
            "name": "plain",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "compute",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["--partition=compute"],
                    "environs": ["plain"],
                    "max_jobs": 64,
                }
            ],
        }
    ],
    "environments": [{"name": "plain"}],
    "general": [{"remote_detect": False}],
}
