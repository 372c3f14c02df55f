"""What steers a library: unset before Hpl and Stream, recorded, and named where it decides."""

import pytest
from clone import USER

from siteproof.record.sessions import Sessions

FEATURES = "    features: [hpcc, likwid]\n"
RUN = ("-r", "-n", "^Hpl", "-p", "system", "-S", "mode=quick")


@pytest.fixture
def hpl(world):
    """Hpl on recorded output, by an mpirun that notes its environment."""
    world.checks = "checks/cpu"
    world.recorded_hpcc()
    mpirun = world.bin / "mpirun"
    mpirun.write_text(f"{mpirun.read_text()}\nenv >'{world.folder}/seen'\n")
    return world


def of_the_site(world, text):
    world.edit("system", FEATURES, f"{FEATURES}    {text}\n")


def run(world, **variables):
    """The variables that the benchmark found, and those that are conditions of its figure."""
    done = world.reframe(*RUN, **variables)
    assert done.code == 0, done
    lines = (world.folder / "seen").read_text().splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    return found, conditions(world)


def conditions(world):
    found = Sessions(world.data / "perflogs", "thishost").of(lambda _: True)
    (figure,) = [s for s in found if s.metric == "Hpl.gflops"]
    return {k: v for k, v in figure.conditions.items() if k.startswith("env.")}


def test_what_a_user_has_exported_does_not_steer_hpl(hpl):
    found, told = run(hpl, **USER)
    assert "OPENBLAS_CORETYPE" not in found and "UCX_TLS" not in found
    assert found["OMP_NUM_THREADS"] == "1"  # the check's own
    assert told == {}  # a clean run has the conditions that it always had


def test_what_the_site_sets_takes_effect_and_is_a_condition(hpl):
    of_the_site(hpl, "variables: {OPENBLAS_CORETYPE: Haswell}")
    found, told = run(hpl, **USER)
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    assert told == {"env.OPENBLAS_CORETYPE": "Haswell"}


def test_what_reframe_is_told_to_set_takes_effect_and_is_a_condition(hpl):
    of_the_site(hpl, "reframe: {env_vars: [[OPENBLAS_CORETYPE, Haswell]]}")
    found, told = run(hpl, **USER)
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    assert told == {"env.OPENBLAS_CORETYPE": "Haswell"}


@pytest.mark.parametrize("name", ["OPENBLAS_CORETYPE", "OPENBLAS_*"])
def test_what_the_site_allows_is_the_users_and_a_condition(hpl, name):
    of_the_site(hpl, f"keep_variables: ['{name}']")
    found, told = run(hpl, **USER)
    assert found["OPENBLAS_CORETYPE"] == "Nehalem" and "UCX_TLS" not in found
    assert told == {"env.OPENBLAS_CORETYPE": "Nehalem"}


def test_a_value_can_neither_write_the_account_of_a_node_nor_fill_it(hpl):
    of_the_site(hpl, "keep_variables: ['*']")
    users = {f"UCX_{number}": "x" * 300 for number in range(80)}
    _, told = run(hpl, OPENBLAS_X="a\nmemory_kib=1\nenv.UCX_Y=1\x1b[31m", FI_PATH="/x", **users)
    assert len(told) == 50 and max(len(value) for value in told.values()) == 200
    assert told["env.OPENBLAS_X"] == "a?memory_kib=1?env.UCX_Y=1?[31m"
    assert "env.FI_PATH" not in told and "env.UCX_Y" not in told


def test_a_check_of_anything_else_finds_the_users_variables_and_records_those_of_mpi(good):
    good.checks = "checks/host"
    assert good.reframe("-r", "-n", "HostParameters", **USER).code == 0
    found = Sessions(good.data / "perflogs", "thishost").of(lambda _: True)
    assert {s.conditions.get("env.UCX_TLS") for s in found} == {"tcp"}
    assert not [s for s in found if "env.OPENBLAS_CORETYPE" in s.conditions]


def test_names_of_variables_that_are_none_are_a_mistake(hpl):
    of_the_site(hpl, "keep_variables: ['UCX TLS; rm']")
    told = hpl.siteproof("lint", "--system", "thishost")
    assert told.code == 2
    assert "'UCX TLS; rm' is not valid" in told.said
    assert "environments.system.keep_variables" in told.said


@pytest.mark.slow
@pytest.mark.tool("ReFrame", "HPCC")
def test_the_real_benchmark_takes_the_kernel_of_this_processor(real):
    found = Sessions(real.data / "perflogs", "thishost").of(lambda _: True)
    kernels = {s.conditions.get("blas_kernel", "") for s in found if s.metric == "Hpl.gflops"}
    assert kernels and "Nehalem" not in kernels
    # A BLAS that is older than the processor does not know it, whoever chooses.
    warnings = {s.conditions.get("blas_warning", "") for s in found}
    assert not [one for one in warnings if "in the environment chose" in one]
