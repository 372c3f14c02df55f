"""Processors by archspec's names, and which of them run the programs of which others.

The table is that of archspec 0.2.7, without its features and compilers; a test compares the two.
"""

from __future__ import annotations

from functools import cache

FAMILIES = (
    "x86",
    "x86_64",
    "ppc64",
    "ppc64le",
    "aarch64",
    "arm",
    "ppc",
    "ppcle",
    "sparc",
    "sparc64",
    "riscv64",
)
# A processor, and the newest ones whose programs it runs, too.
_PARENTS = {
    "i686": "x86", "pentium2": "i686", "pentium3": "pentium2", "pentium4": "pentium3",
    "prescott": "pentium4",
    "x86_64_v2": "x86_64", "x86_64_v3": "x86_64_v2", "x86_64_v4": "x86_64_v3", "nocona": "x86_64",
    "core2": "nocona", "nehalem": "core2 x86_64_v2", "westmere": "nehalem",
    "sandybridge": "westmere", "ivybridge": "sandybridge", "haswell": "ivybridge x86_64_v3",
    "broadwell": "haswell", "skylake": "broadwell", "mic_knl": "broadwell",
    "skylake_avx512": "skylake x86_64_v4", "cannonlake": "skylake x86_64_v4",
    "cascadelake": "skylake_avx512", "icelake": "cascadelake cannonlake",
    "sapphirerapids": "icelake", "alderlake": "skylake", "arrowlake": "alderlake",
    "arrowlake_s": "arrowlake", "k10": "x86_64", "bulldozer": "x86_64_v2",
    "piledriver": "bulldozer", "steamroller": "piledriver", "excavator": "steamroller x86_64_v3",
    "zen": "x86_64_v3", "zen2": "zen", "zen3": "zen2", "zen4": "zen3 x86_64_v4", "zen5": "zen4",
    "zen6": "zen5",
    "power7": "ppc64", "power8": "power7", "power9": "power8", "power10": "power9",
    "power8le": "ppc64le", "power9le": "power8le", "power10le": "power9le",
    "armv8.1a": "aarch64", "armv8.2a": "armv8.1a", "armv8.3a": "armv8.2a", "armv8.4a": "armv8.3a",
    "armv8.5a": "armv8.4a", "armv8.6a": "armv8.5a", "armv9.0a": "armv8.5a",
    "armv9.2a": "armv9.0a armv8.6a", "thunderx2": "armv8.1a", "a64fx": "armv8.2a",
    "cortex_a72": "aarch64", "neoverse_n1": "cortex_a72 armv8.2a",
    "neoverse_v1": "neoverse_n1 armv8.4a", "neoverse_v2": "neoverse_n1 armv9.0a",
    "neoverse_n2": "neoverse_n1 armv9.0a", "ampere1": "neoverse_n1 armv8.6a", "ampere1a": "ampere1",
    "neoverse_v3ae": "neoverse_v2 armv9.2a", "olympus": "armv9.2a", "m1": "armv8.4a",
    "m2": "m1 armv8.5a", "m3": "m2 armv8.6a", "m4": "m3 armv8.6a",
    "u74mc": "riscv64", "x60": "riscv64",
}  # fmt: skip
NAMES = frozenset({*FAMILIES, *_PARENTS})


@cache
def runs(name: str) -> frozenset[str]:
    """The processors whose programs this one runs, itself included."""
    parents = _PARENTS.get(name, "").split()
    return frozenset({name}.union(*map(runs, parents)))


def family(name: str) -> str:
    """The architecture of a processor, as `uname -m` prints it on a host of it: x86_64."""
    return next(one for one in FAMILIES if one in runs(name))
