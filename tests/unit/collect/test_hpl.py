"""Which instructions the BLAS of HPL leaves unused, and what chose its kernel."""

from __future__ import annotations

from rows import rows

from siteproof.collect.derive import cpu
from siteproof.record.series import VARIABLE

FLAGS = "avx avx2 fma avx512f"


def warning(kernel, blas, variables):
    given = {"blas": blas, "blas_kernel": kernel}
    return cpu.unused_by_blas(given | {VARIABLE + k: v for k, v in variables.items()}, FLAGS)


@rows(
    "kernel, blas, chosen",
    [
        ("Haswell", "openblas", {"OPENBLAS_CORETYPE": "Haswell"}),
        ("Haswell", "", {"OPENBLAS_CORETYPE": "Haswell"}),
        ("haswell", "blis", {"BLIS_ARCH_TYPE": "haswell"}),
        ("avx2", "mkl", {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "MKL_DEBUG_CPU_TYPE": "5"}),
    ],
)
def test_a_kernel_that_the_environment_chose_is_named_with_its_variables(kernel, blas, chosen):
    found = warning(kernel, blas, chosen | {"OMP_PLACES": "cores"})
    named = " and ".join(f"{name}={value}" for name, value in sorted(chosen.items()))
    assert found.startswith(f"{named} in the environment chose the kernel of the BLAS: {kernel} ")
    without = warning(kernel, blas, {"UCX_TLS": "tcp"})
    assert without.startswith("MKL does not use" if blas == "mkl" else "The BLAS did not know")


def test_a_kernel_that_uses_all_instructions_has_no_warning():
    assert warning("SkylakeX", "openblas", {"OPENBLAS_CORETYPE": "SkylakeX"}) == ""
