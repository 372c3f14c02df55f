"""account.sh: the variables that steer libraries, in the shells of nodes."""

import shutil
import subprocess

from clone import TOP
from rows import rows

from siteproof.sites import job_keys

ACCOUNT = TOP / "siteproof/checks/on_node/account.sh"
SHELLS = [s for s in ("dash", "bash --posix", "busybox sh") if shutil.which(s.split()[0])]


def told(shell, what, **variables):
    script = f". {ACCOUNT}; {what}"
    done = subprocess.run(
        [*shell.split(), "-euc", script],
        env={"PATH": "/usr/bin:/bin", "SITEPROOF_STEERING": job_keys.OF_LIBRARIES, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return sorted(done.stdout.splitlines())


@rows("shell", SHELLS)
def test_each_library_is_steered_by_variables_that_are_told(shell):
    steering = ["OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_DEBUG_CPU_TYPE", "OMP_PLACES"]
    steering += ["KMP_AFFINITY", "GOMP_CPU_AFFINITY", "UCX_TLS", "OMPI_MCA_btl", "I_MPI_FABRICS"]
    steering += ["PRTE_MCA_plm", "FI_PROVIDER", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "GOTO_X"]
    others = ["HOME", "MKLROOT", "I_MPI_ROOT", "FI_PROVIDER_PATH", "LD_LIBRARY_PATH", "XUCX_TLS"]
    others += ["OMPI_MCA_orte_precondition_transports", "OMPI_ALLOW_RUN_AS_ROOT"]
    others += ["OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args", "I_MPI_HYDRA_BOOTSTRAP"]
    others += ["I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"]  # of Slurm from 24.11 on, in each job
    variables = dict.fromkeys([*steering, *others], "v")
    expected = sorted(f"env.{name}=v" for name in steering)
    assert told(shell, "account values", **variables) == expected


@rows("shell", SHELLS)
def test_a_clean_set_holds_what_is_wanted_and_nothing_else_that_steers(shell):
    variables = {"UCX_TLS": "a", "UCX_NET_DEVICES": "b", "OMP_X": "c", "OMP_XY": "d", "HOME": "e"}
    variables |= {"SITEPROOF_CLEAN": "yes", "SITEPROOF_WANTED": "UCX_* OMP_X"}
    assert told(shell, "forget_variables; account values; echo $HOME", **variables) == [
        "e",
        "env.OMP_X=c",
        "env.UCX_NET_DEVICES=b",
        "env.UCX_TLS=a",
    ]


@rows("shell", SHELLS)
def test_nothing_is_unset_where_no_clean_set_is_asked_for(shell):
    assert told(shell, "forget_variables; account values", UCX_TLS="a") == ["env.UCX_TLS=a"]


@rows("shell", SHELLS)
def test_a_value_of_several_lines_stays_one(shell):
    lines = told(shell, "account values", UCX_X="1\nexit=0\nend=5\r\x1b", OMP_EMPTY="")
    assert lines == ["env.UCX_X=1?exit=0?end=5??"]


@rows("name", ["UCX_TLS", "UCX_*", "UC*", "*", "LD_PRELOAD", "LD_*", "OMP_X"])
def test_what_a_clean_set_would_unset_can_be_kept(name):
    assert job_keys.may_steer(name)


@rows("name", ["PATH", "PATH*", "UCX", "LD_PRELOADS", "HOME", "I_MPI_ROOT"])
def test_what_no_check_unsets_need_not_be_kept(name):
    assert not job_keys.may_steer(name)


@rows("name", ["I_MPI_ROOT", "UCX_DIR", "MKL_HOME", "OMP_PREFIX", "FI_PATH"])
@rows("shell", SHELLS)
def test_account_sh_leaves_alone_what_names_where_software_lies(shell, name):
    assert name.endswith(job_keys.PLACES)
    assert told(shell, "account names", **{name: "v"}) == []
