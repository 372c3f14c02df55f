"""Plain ReFrame on one machine; with BENCHMARK_THRIFT set to a clone, its thrift.save_cpu()."""

import os
import sys

if os.environ.get("BENCHMARK_THRIFT"):
    sys.path.insert(0, os.environ["BENCHMARK_THRIFT"])
    from siteproof.checks import thrift

    thrift.save_cpu()

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
