"""Which BLAS served a benchmark, with which kernel, and whether it knew the processor.

Read from what the libraries print, and from the names of those that were linked or loaded:
OPENBLAS_VERBOSE=2 ("Core: Haswell"), BLIS_ARCH_DEBUG=1 ("libblis: selecting sub-configuration
'skx'."), MKL_VERBOSE=1 (its first line), ldd, LD_DEBUG=files, readlink -f; and the lines that
checks/cpu/hpl.sh makes of LD_DEBUG=files of each rank ("2 ranks loaded /lib/…").
"""

from __future__ import annotations

import re

from siteproof.errors import harmless

# The last line counts: OpenBLAS prints "Core not found: X" and then which other core it took.
_OPENBLAS = re.compile(r"^Core: ([\w-]{1,40})[ \t\r]*$", re.MULTILINE)
_BLIS = re.compile(r"libblis: selecting sub-configuration '([\w-]{1,40})'")
_MKL = re.compile(r"^MKL_VERBOSE (?:oneMKL|Intel\(R\) MKL) .{0,400}", re.MULTILINE)
_MKL_KERNEL = re.compile(r"\(Intel\(R\) ((?:AVX|SSE|SSSE)[\w.-]{0,20})\)")
_MKL_LIBRARY = re.compile(r"/libmkl_(avx10|avx512|avx2|avx|mc3|mc|def)\.so")
# MKL loads a kernel when it is first called, so a rank that has one has computed with MKL.
_MKL_RANKS = re.compile(
    rf"^(\d{{1,9}}) ranks loaded (/.{{0,300}}{_MKL_LIBRARY.pattern}[\w.]{{0,30}})$", re.MULTILINE
)
_VERSIONS = {
    "mkl": re.compile(
        r"^MKL_VERBOSE (?:oneMKL|Intel\(R\) MKL) (\d[\w. ]{0,40}?) Product", re.MULTILINE
    ),
    "openblas": re.compile(r"/libopenblas\w{0,20}-r(\d[\w.]{0,20})\.so"),
}
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
KERNEL_VARIABLES = {  # by BLAS, those that choose the kernel
    "openblas": ("OPENBLAS_CORETYPE",),
    "blis": ("BLIS_ARCH_TYPE", "BLIS_MODEL_TYPE"),
    "mkl": ("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS"),
}
ALL_KERNEL_VARIABLES = [name for names in KERNEL_VARIABLES.values() for name in names]
_LEVEL_OF = {name: level for level, names in _KERNELS.items() for name in names.split()}


def describe(text: str) -> dict[str, str]:
    """What is found of blas (openblas, mkl, …), blas_library, blas_version, blas_kernel.

    MKL and BLIS print when they are called, OpenBLAS when it is loaded. So where MKL is preloaded,
    OpenBLAS still prints its core, although it does not serve.
    """
    libraries = [(_family(path), path) for path in _LIBRARY.findall(text)]
    known = [family for family, _ in libraries if family]
    ranks = _MKL_RANKS.findall(text)
    if ranks or _MKL.search(text):
        blas = "mkl"
    elif _BLIS.search(text):
        blas = "blis"
    else:  # the first that is linked serves
        blas = next(iter(known), "openblas" if _OPENBLAS.search(text) else "")
    paths = [path for family, path in libraries if family == blas] + [r[1] for r in ranks]
    version = _VERSIONS[blas].search(text) if blas in _VERSIONS else None
    found = {
        "blas": blas,
        "blas_library": paths[-1] if paths else "",
        "blas_version": version[1] if version else "",
        "blas_kernel": _kernel(blas, text),
    }
    return {key: harmless(value) for key, value in found.items() if value}


def ranks_on_mkl(text: str) -> int:
    """How many ranks have called MKL, as checks/cpu/hpl.sh counts them."""
    return sum(int(count) for count, _, _ in _MKL_RANKS.findall(text))


def unused_instructions(kernel: str, flags: set[str]) -> str:
    """What the processor offers and the kernel does not use, such as avx512f.

    flags: those of /proc/cpuinfo. Empty: it uses all, or nothing is known of the kernel.
    """
    used = _LEVEL_OF.get(kernel.lower())
    if used is None:
        return ""
    best = max((level for level in _LEVELS if _offers(level, flags)), key=_LEVELS.index)
    return best if _LEVELS.index(best) > _LEVELS.index(used) else ""


def _offers(level: str, flags: set[str]) -> bool:
    needed = {"sse": set(), "avx2": {"avx2", "fma"}}.get(level, {level})
    return needed <= flags


def _family(path: str) -> str:
    """The BLAS that a library belongs to; empty for a name that any BLAS may have."""
    return next((name for name, pattern in _FAMILIES.items() if pattern.search(path)), "")


def _kernel(blas: str, text: str) -> str:
    if blas == "mkl" and not _MKL_RANKS.search(text):
        line = _MKL.search(text)
        kernel = _MKL_KERNEL.search(line[0]) if line else None
        if kernel:
            return str(kernel[1])
    pattern = {"mkl": _MKL_LIBRARY, "blis": _BLIS, "openblas": _OPENBLAS}.get(blas)
    kernels = pattern.findall(text) if pattern else []
    return str(kernels[-1]) if kernels else ""
