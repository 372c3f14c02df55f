"""Plain ReFrame on one machine; with BENCHMARK_THRIFT set to a clone, the patches that save CPU."""

import os
import sys

if os.environ.get("BENCHMARK_THRIFT"):
    sys.path.insert(0, os.environ["BENCHMARK_THRIFT"])
    from siteproof.checks import adapter

    adapter.save_cpu()

site_configuration = {
    "systems": [
        {
            "name": "plain",
            "hostnames": [".*"],
            "max_local_jobs": 1,
            "partitions": [
                {"name": "node", "scheduler": "local", "launcher": "local", "environs": ["plain"]}
            ],
        }
    ],
    "environments": [{"name": "plain"}],
    "general": [{"remote_detect": False}],
}
