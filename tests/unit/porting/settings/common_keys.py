# As a project of many centres writes it: common keys, older names, several options in a text.
cpu = {
    "scheduler": "slurm",
    "access": ["--partition=cclake --account=support-cpu", "--exclude=n[7-8]", "--time=10"],
    "environs": ["imb"],
    "max_jobs": 20,
}
site_configuration = {
    "systems": [
        {
            "name": "fen",
            "hostnames": ["login-e-*"],
            "modules_system": "tmod4",
            "stagedir": "/scratch/stage",
            "partitions": [
                {
                    **cpu,
                    "name": "ib",
                    "descr": "InfiniBand",
                    "launcher": "mpirun",
                    "variables": [["OMPI_MCA_btl", "openib,self"], ["UCX_NET_DEVICES", "mlx5_0:1"]],
                    "modules": [{"name": "rhel8/default", "collection": True}],
                },
                {
                    **cpu,
                    "name": "roce",
                    "launcher": "alps",
                    "env_vars": [["UCX_NET_DEVICES", "mlx5_1:1"], ["WHERE", "$(hostname)"]],
                    "resources": [{"name": "bind", "options": ["-bind-to", "core"]}],
                    "colour": "red",
                },
            ],
        }
    ],
    "environments": [{"name": "imb", "modules": ["intel", "imb"], "features": ["imb", "mpi"]}],
}
