"""Spack's recipe of Siteproof: setup/release writes the version and the archive's sum into it."""

from pathlib import Path

from spack.package import default_args, depends_on, license, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class Siteproof(PythonPackage):
    """Acceptance and regression suite for HPC systems, built on ReFrame, Slurm and Spack."""

    # Not published yet: Spack takes the archive from the folder in which it is started. Once it is
    # on PyPI, 'pypi = "siteproof/siteproof-@VERSION@.tar.gz"' replaces these two.
    manual_download = True
    url = f"file://{Path.cwd()}/siteproof-@VERSION@.tar.gz"

    license("BSD-3-Clause")

    version("@VERSION@", sha256="@SHA256@")

    # Without those for OpenStack and iRODS: Spack has neither openstacksdk nor python-irodsclient.
    variant("services", default=False, description="Libraries of the checks of services")

    depends_on("py-hatchling@1.27:", type="build")
    with default_args(type=("build", "run")):
        depends_on("python@3.11:3.13")
        depends_on("reframe@4.9.3:4.11")
        depends_on("py-clustershell")
        depends_on("py-click")
        depends_on("py-duckdb")
        depends_on("py-jinja2")
        depends_on("py-matplotlib")
        depends_on("py-numpy")
        depends_on("py-pydantic@2:")
        depends_on("py-pyyaml")
        depends_on("py-rich")
        depends_on("py-ruptures@1.1.10:1.1")
        depends_on("py-scipy")
        depends_on("py-fasteners")  # of ReFrame, whose recipe leaves it out
    with default_args(type=("build", "run"), when="+services"):
        depends_on("py-bioblend")
        depends_on("py-cryptography")
        depends_on("py-globus-sdk")
        depends_on("py-minio")
        depends_on("py-requests")
        depends_on("py-urllib3")
        depends_on("py-websocket-client")
