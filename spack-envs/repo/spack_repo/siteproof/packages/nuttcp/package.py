"""Spack's recipe of nuttcp, which Spack's own packages lack."""

import os

from spack.package import Executable, depends_on, install, license, mkdirp, version
from spack_repo.builtin.build_systems.generic import Package


class Nuttcp(Package):
    """TCP and UDP throughput between two hosts, with paced rates and bursts."""

    homepage = "https://www.nuttcp.net/"
    url = "https://www.nuttcp.net/nuttcp/nuttcp-8.2.2.tar.bz2"

    license("GPL-2.0-only")

    version("8.2.2", sha256="7ead7a89e7aaa059d20e34042c58a198c2981cad729550d1388ddfc9036d3983")

    depends_on("c", type="build")

    def install(self, spec, prefix):
        """One file of C, without its Makefile: that names gcc and puts the version in the name."""
        Executable(os.environ["CC"])("-O3", "-o", "nuttcp", f"nuttcp-{spec.version}.c")
        mkdirp(prefix.bin)
        install("nuttcp", prefix.bin)
