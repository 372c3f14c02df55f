"""Floating-point rate of every node: HPL on all of its cores."""

import os
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, variable

from siteproof import installed
from siteproof.checks import PerNodeCheck, loading
from siteproof.parsers import hpcc, hpl
from siteproof.sites import job_keys
from siteproof.sites.catalogue import MODES
from siteproof.sites.key_types import HPL_BLOCKS

MKL = installed.SUITE / ".mkl"  # where 'make mkl' puts it
CHOICES = ("fastest",)
NB = 192
QUICK = 3000  # solved within a second; HPCC's other tests take half a minute


@rfm.simple_test
class Hpl(PerNodeCheck):
    """xhpl answers a contract; HPCC, where only that exists, is a smoke test."""

    descr = "Floating-point rate of every node"
    tags = {"cpu"}
    script = "hpl.sh"
    features = ("hpl", "hpcc")
    parsers = {"xhpl": hpl, "hpcc": hpcc}
    derive = "cpu.hpl"
    steering = job_keys.OF_LIBRARIES
    clean = True
    metrics = ("gflops", "time", "residual")
    headline = ("gflops",)
    time_limit = "60m"

    memory_share = variable(float, value=0.0)  # of the memory; 0: as below
    n = variable(int, value=0)  # the problem itself; 0: by its share of the memory
    nb = variable(int, value=0)  # its block, of HPL_BLOCKS; 0: the site's, or NB
    threads = variable(
        int, value=0
    )  # of a rank; 0: a NUMA domain's cores where the BLAS has threads
    blas = variable(str, value="")  # fastest: of those on the node, by a short trial

    by_mode = {
        # Of the memory: what contracts require at least. A quick problem has an order of its own.
        "memory_share": {"quick": 0, "maintenance": 0.5, "acceptance": 0.5},
        "n": dict.fromkeys(MODES, 0),
        "threads": dict.fromkeys(MODES, 0),
    }

    @run_after("init")
    def refuse_values(self) -> None:
        """A mistake in -S is reported before the run."""
        loading.refuse_choice(self, "blas", ("", *CHOICES))
        loading.refuse_choice(self, "nb", (0, *HPL_BLOCKS))

    @run_after("setup")
    def skip_without_mkl(self) -> None:
        """Say how to get MKL; the nodes say it where only they can know, as with a module."""
        environment = self.site.system.environments[self.current_environ.name]
        named = environment.variables.get("MKLROOT") or os.environ.get("MKLROOT", "")
        folder = Path(os.path.expandvars(named)) if named else MKL
        seen_from_here = folder == MKL or self.where.scheduler == "local"
        if (
            self.on_mkl()
            and seen_from_here
            and not (environment.modules or environment.prepare_cmds)
            and not any(folder.glob("lib/**/libmkl_rt.so*"))
        ):
            self.skip(f"tool missing: no libmkl_rt in {folder}: 'make mkl', or set MKLROOT")

    def on_mkl(self) -> bool:
        """Whether this environment promises MKL as the BLAS."""
        return "mkl" in self.current_environ.features

    def settings(self) -> dict[str, str]:
        """The problem: a small one in quick mode, otherwise a share of the node's memory."""
        share, n = self.value_of("memory_share"), int(self.value_of("n"))
        n = n or (0 if float(share) else QUICK)
        size = {"N": str(n)} if n else {"SHARE": share}
        blas = {"BLAS": "mkl", "CLONE_MKL": str(MKL)} if self.on_mkl() else {}
        if self.blas and not blas:
            blas = {"BLAS": self.blas, "CLONE_MKL": str(MKL)}
        return {
            "NB": str(self.nb or self.hardware.hpl_nb or NB),
            "THREADS": self.value_of("threads"),
            **size,
            **blas,
            **self.hardware_variables(),
        }

    def facts(self) -> dict[str, object]:
        """Peak, memory and cores, for the shares of them; the BLAS that is promised."""
        return {**self.hardware_facts(), **({"blas": "mkl"} if self.on_mkl() else {})}
