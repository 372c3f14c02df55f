"""Which BLAS served a benchmark, with which kernel, and whether it knew the processor.

Read from what the libraries say of themselves and from the libraries that were linked or loaded:
OPENBLAS_VERBOSE=2 ("Core: Haswell"), BLIS_ARCH_DEBUG=1 ("libblis: selecting sub-configuration
'skx'."), MKL_VERBOSE=1 (its first line), ldd, LD_DEBUG=files, readlink -f.
"""

from __future__ import annotations

import re

# The last line counts: OpenBLAS says "Core not found: X" and then which other core it took.
_OPENBLAS = re.compile(r"^Core: ([\w-]{1,40})[ \t\r]*$", re.MULTILINE)
_BLIS = re.compile(r"libblis: selecting sub-configuration '([\w-]{1,40})'")
_MKL = re.compile(r"^MKL_VERBOSE (?:oneMKL|Intel\(R\) MKL) .{0,400}", re.MULTILINE)
_MKL_KERNEL = re.compile(r"\(Intel\(R\) ((?:AVX|SSE|SSSE)[\w.-]{0,20})\)")
_MKL_LIBRARY = re.compile(r"/libmkl_(avx10|avx512|avx2|avx|mc3|mc|def)\.so")
_LIBRARY = re.compile(
    r"(?<!\S)/[\w.+/@~-]{0,300}/lib"
    r"(?:openblas|mkl_(?!vml)|blis|atlas|satlas|tatlas|refblas|cblas|blas)"
    r"[\w.+-]{0,60}\.so[\w.]{0,30}"
)
_FAMILIES = {  # by file name; Debian names the folder after the BLAS and the file libblas.so.3
    "mkl": re.compile(r"/libmkl_"),
    "blis": re.compile(r"/libblis|/blis[\w-]*/libc?blas"),
    "atlas": re.compile(r"/lib[st]?atlas|/atlas/libc?blas"),
    "openblas": re.compile(r"/libopenblas|/openblas[\w-]*/libc?blas"),
    "reference": re.compile(r"/librefblas|/blas/libblas|/libblas\.so\.\d+\.\d"),
}

# What a kernel uses, weakest first, as /proc/cpuinfo names it.
_LEVELS = ("sse", "avx", "avx2", "avx512f")
_KERNELS = {
    "sse": "generic prescott core2 penryn dunnington nehalem atom athlon opteron opteron_sse3 "
    "barcelona bobcat nano katmai coppermine northwood banias ssse3 sse4.2 mc mc3 x86_64",
    "avx": "sandybridge bulldozer piledriver steamroller avx",
    # MKL's def is what it runs on AMD: it has AVX2 code for Zen, and none with AVX-512.
    "avx2": "haswell excavator zen zen2 zen3 avx2 def",
    "avx512f": "skylakex cooperlake sapphirerapids skx knl zen4 zen5 avx512 avx-512 avx10",
}
_LEVEL_OF = {name: level for level, names in _KERNELS.items() for name in names.split()}


def describe(text: str) -> dict[str, str]:
    """What is found of blas (openblas, mkl, blis, atlas, reference), blas_library, blas_kernel.

    MKL and BLIS speak when they are called, OpenBLAS when it is loaded: preloaded before
    OpenBLAS, they serve, and OpenBLAS still names its core.
    """
    libraries = [(_family(path), path) for path in _LIBRARY.findall(text)]
    known = [family for family, _ in libraries if family]
    if _MKL.search(text):
        blas = "mkl"
    elif _BLIS.search(text):
        blas = "blis"
    else:  # the first that is linked serves
        blas = next(iter(known), "openblas" if _OPENBLAS.search(text) else "")
    paths = [path for family, path in libraries if family == blas]
    found = {"blas": blas, "blas_library": paths[-1] if paths else "",
             "blas_kernel": _kernel(blas, text)}
    return {key: value for key, value in found.items() if value}


def unknown_processor(kernel: str, flags: set[str]) -> str | None:
    """One sentence if the kernel leaves out what the processor offers (flags of /proc/cpuinfo)."""
    used = _LEVEL_OF.get(kernel.lower())
    if used is None:
        return None
    offered = max((level for level in _LEVELS if _offers(level, flags)), key=_LEVELS.index)
    if _LEVELS.index(offered) <= _LEVELS.index(used):
        return None
    return (
        f"The BLAS did not know this processor: its kernel {kernel} does not use {offered}, "
        "which the processor offers."
    )


def _offers(level: str, flags: set[str]) -> bool:
    needed = {"sse": set(), "avx2": {"avx2", "fma"}}.get(level, {level})
    return needed <= flags


def _family(path: str) -> str:
    """The BLAS that a library belongs to; empty for a name that any BLAS may have."""
    return next((name for name, pattern in _FAMILIES.items() if pattern.search(path)), "")


def _kernel(blas: str, text: str) -> str:
    if blas == "mkl":
        line = _MKL.search(text)
        told = _MKL_KERNEL.search(line[0]) if line else None
        if told:
            return str(told[1])
    pattern = {"mkl": _MKL_LIBRARY, "blis": _BLIS, "openblas": _OPENBLAS}.get(blas)
    return str((pattern.findall(text) or [""])[-1]) if pattern else ""
