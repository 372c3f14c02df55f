"""Spack's recipe of ruptures, which Spack's own packages lack."""

from spack.package import default_args, depends_on, license, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyRuptures(PythonPackage):
    """Change points of a series of values."""

    pypi = "ruptures/ruptures-1.1.10.tar.gz"

    license("BSD-2-Clause")

    version("1.1.10", sha256="76b998f10709045e91a5f44173dc574bf98a106fd3bf22ec3c63b298a02df031")

    depends_on("c", type="build")
    depends_on("py-setuptools@42:", type="build")
    depends_on("py-setuptools-scm@3.4:", type="build")
    depends_on("py-cython@0.28.5:", type="build")
    with default_args(type=("build", "run")):
        depends_on("python@3.9:3.13")
        depends_on("py-numpy")
        depends_on("py-scipy@0.19.1:")
