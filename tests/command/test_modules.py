"""Modules and commands of a site take effect in a job: a real Lmod or Environment Modules loads."""

import json
from pathlib import Path

import pytest
from clone import World

LMOD = Path("/usr/share/lmod/lmod/init/bash")
ENVMOD = Path("/usr/share/modules/init/bash")
INIT = {"lmod": LMOD, "envmod": ENVMOD}
FILES = {  # of a module that sets a variable, in the language of each
    "hello/1.0": "#%Module\nsetenv OMPI_MCA_HELLO one\n",
    "hello/2.0": "#%Module\nsetenv OMPI_MCA_HELLO two\n",
    "of-all/1": "#%Module\nsetenv OMPI_MCA_SITE all\n",
}


@pytest.fixture(params=["lmod", "envmod"])
def world(request, tmp_path):
    """thishost with modules, of which HostParameters records what a job had."""
    if not INIT[request.param].exists():
        pytest.skip(f"MODULES NOT TESTED WITH {request.param}: it is not installed")
    world = World(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / "modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    world.checks = "checks/host"
    world.site()
    world.edit("system", "\nnodes:", f"\nmodules_system: {request.param}\n\nnodes:")
    world.edit(
        "system",
        "    scheduler: local\n",
        f"""    scheduler: local
    prepare_cmds: [. {INIT[request.param]}, module use {tmp_path}/modules]
    modules: [of-all]
    variables: {{OMPI_MCA_PARTITION: set}}
""",
    )
    return world


def load(world, *modules):
    """Have the environment of HostParameters load modules."""
    path = world.site() / "system.yaml"
    head, _, tail = path.read_text().partition("environments:\n  system:\n")
    assert tail, "thishost has no environment 'system' any more"
    words = (
        f"    modules: [{', '.join(modules)}]\n    prepare_cmds: [export OMPI_MCA_COMMAND=ran]\n"
    )
    path.write_text(f"{head}environments:\n  system:\n{words}{tail}")


def header(world):
    (path,) = world.samples()
    return json.loads(path.read_text().splitlines()[0])


def test_the_modules_and_commands_of_a_site_take_effect_in_a_job(world):
    load(world, "hello/1.0")
    done = world.reframe("-r", "-n", "HostParameters", "--keep-stage-files")
    assert done.code == 0, done
    assert header(world)["provenance"]["modules"] == "of-all/1:hello/1.0"
    (meta,) = (world.data / "stage").rglob("raw/localhost/meta")
    seen = dict(line.split("=", 1) for line in meta.read_text().splitlines() if "OMPI" in line)
    assert seen == {
        "env.OMPI_MCA_HELLO": "one",
        "env.OMPI_MCA_SITE": "all",
        "env.OMPI_MCA_COMMAND": "ran",
        "env.OMPI_MCA_PARTITION": "set",
    }


def test_a_module_without_a_version_is_recorded_with_the_one_that_was_loaded(world):
    load(world, "hello")
    assert world.reframe("-r", "-n", "HostParameters").code == 0
    assert header(world)["provenance"]["modules"] == "of-all/1:hello/2.0"


def test_a_module_that_is_not_there_is_named_and_nothing_is_measured_without_it(world):
    load(world, "hello/1.0", "nothere/3.1")
    done = world.reframe("-r", "-n", "HostParameters")
    (line,) = [line for line in done.out.splitlines() if "Reason:" in line or "SKIP" in line][:1]
    assert "module nothere/3.1 is not loaded: " in line
    assert "Traceback" not in done.out + done.err
    (path,) = world.samples()
    samples = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert {sample["status"] for sample in samples} == {"tool_missing"}


def test_a_job_without_the_command_module_says_what_defines_it(world):
    path = world.site() / "system.yaml"
    text = path.read_text()
    begin, end = text.index("    prepare_cmds: [. "), text.index("    modules: [of-all]")
    path.write_text(text[:begin] + text[end:])
    done = world.reframe("-r", "-n", "HostParameters")
    assert "module of-all is not loaded: the job has no command 'module'" in done.out
    assert "prepare_cmds" in done.out


def test_modules_without_a_modules_system_are_a_mistake(world):
    world.edit("system", "modules_system: ", "modules_system: nomod # ")
    assert "nothing loads module 'of-all'" in world.reframe("-r").refused()
