"""Variables of the environment that steer libraries: names, or beginnings of names with '*'.

What of them a job finds is a condition of what it measures (siteproof/checks/on_node/account.sh).
"""

from __future__ import annotations

from fnmatch import fnmatchcase

OF_ANY = "GLIBC_TUNABLES HUGETLB_* LD_AUDIT LD_BIND_NOW LD_PRELOAD MALLOC_* TCMALLOC_*"
OF_MPI = (
    "CXI_* FI_* HCOLL_* HFI_* IBV_* I_MPI_* MLX4_* MLX5_* MPICH_* MPIR_* MV2_* MVP_* NCCL_* "
    "OMPI_MCA_* OPAL_* PMIX_MCA_* PRTE_MCA_* PSM2_* PSM3_* PSM_* RCCL_* RDMAV_* UCC_* UCX_*"
)
OF_BLAS = (
    "ACML_* AOCL_* ARMPL_* ATLAS_* BLIS_* BLI_* CRAYBLAS_* FLEXIBLAS FLEXIBLAS_* GOTO_* MKL_* "
    "OPENBLAS_* VECLIB_*"
)
OF_OPENMP = "GOMP_* KMP_* LIBOMP_* OMP_*"
ALL = f"{OF_ANY} {OF_MPI} {OF_BLAS} {OF_OPENMP}"

# Endings of variables that name where software lies. account.sh neither unsets nor records them.
PLACES = ("_ROOT", "_DIR", "_HOME", "_PREFIX", "_PATH")


def may_steer(wanted: str) -> bool:
    """Whether a name, or the beginning of names with '*', can be that of a variable listed here."""
    if wanted.endswith(PLACES):
        return False
    return any(
        fnmatchcase(wanted.removesuffix("*"), known) or fnmatchcase(known.removesuffix("*"), wanted)
        for known in ALL.split()
    )
