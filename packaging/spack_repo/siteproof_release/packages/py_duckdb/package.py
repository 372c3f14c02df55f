"""Spack's recipe of DuckDB for Python: its own 'duckdb' has that of before 1.4 only."""

from spack.package import depends_on, license, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyDuckdb(PythonPackage):
    """An analytical database in the process."""

    pypi = "duckdb/duckdb-1.5.2.tar.gz"

    license("MIT")

    # 2.0 needs nanobind 3, which Spack lacks.
    version("1.5.2", sha256="638da0d5102b6cb6f7d47f83d0600708ac1d3cb46c5e9aaabc845f9ba4d69246")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.29:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-pybind11@2.6:", type="build")
    depends_on("py-scikit-build-core@0.11.4:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")
    depends_on("python@3.10:", type=("build", "run"))
