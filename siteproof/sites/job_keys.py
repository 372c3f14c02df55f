"""The keys of system.yaml that shape a job: modules, commands before it, its launcher, devices."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from siteproof.errors import Mistake
from siteproof.sites.key_types import Count, Model, Time, shaped

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # ReFrame's rule for extras
ModulesSystem = Literal["nomod", "lmod", "envmod", "tmod4", "spack"]
Launcher = Literal[
    "srun", "srunalloc", "mpirun", "mpirun-openmpi", "mpirun-intelmpi", "mpiexec", "ibrun",
    "local", "ssh",
]  # fmt: skip
Platform = Literal["Apptainer", "Docker", "Sarus", "Shifter", "Singularity"]
# Options of sbatch that a check sets itself, and those that hide the job from ReFrame.
_JOBS_LETTERS = "wFNxnatDoeWQ"
_JOBS_WORDS = (
    "nodelist", "nodefile", "nodes", "exclude", "ntasks", "ntasks-per-node", "array", "time",
    "time-min", "chdir", "output", "error", "requeue", "test-only", "wait", "wrap", "parsable",
    "quiet",
)  # fmt: skip
_STEPS_WORDS = ("kill-on-bad-exit", "no-kill", "export", "overlap", "jobid", "cpu-bind")


def job_option(option: str) -> str:
    """The name in an option of Slurm: a letter, or a word, which Slurm lets users shorten."""
    given = option.removeprefix("#SBATCH").strip()
    name = re.split(r"[=\s]", given.lstrip("-"), maxsplit=1)[0]
    return name[:1] if given.startswith("-") and not given.startswith("--") else name


def is_of_checks(name: str, *, step: bool = False) -> bool:
    """Whether checks set this option of their jobs, or of the srun in them, themselves."""
    known = _JOBS_LETTERS if len(name) == 1 else _JOBS_WORDS + (_STEPS_WORDS if step else ())
    return any(one.startswith(name) for one in known)


def _is_command(text: str) -> str:
    if text.lstrip().startswith("#"):
        raise Mistake("a comment has no effect", "a command; options of sbatch belong into access")
    if not text.strip():
        raise Mistake("an empty command", "a shell command such as source /etc/profile.d/lmod.sh")
    return text


def _is_requested(text: str) -> str:
    """An option with names in braces, which ReFrame replaces by what a test requests."""
    rule = "names in braces, as in --mem={size}; {{ and }} stand for a brace"
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        raise Mistake(f"'{text[:40]}' has a brace without its counterpart", rule) from None
    for _, name, form, conversion in parts:
        plain = name is None or _PLAIN_NAME.fullmatch(name) and not (form or conversion)
        if not plain:
            raise Mistake(f"'{text[:40]}' has no plain name in braces", rule)
    return text


def _is_step_option(text: str) -> str:
    """An option of the srun in a script: its quotes must be closed."""
    try:
        shlex.split(text)
    except ValueError:
        raise Mistake(f"'{text[:40]}' has a quote that is not closed") from None
    return text


def _no_command(value: str) -> str:
    if "$(" in value or "`" in value:  # ReFrame itself runs these, quoted or not
        raise Mistake(f"'{value[:40]}' contains a command", "text, $NAME, ${NAME}")
    return value


_PLAIN = "a letter or _, then letters, digits and _"
Module = Annotated[
    str,
    shaped(
        r"[A-Za-z0-9_][A-Za-z0-9_.+/@%~=:-]{0,199}",
        "a valid name of a module",
        "a name such as gcc/12.2.0; other commands belong into prepare_cmds",
    ),
]
Option = Annotated[
    str,
    shaped(r"-[A-Za-z].*|--[a-z][a-z-]*(=.*)?", "an option", "an option such as --account=staff"),
]
StepOption = Annotated[Option, AfterValidator(_is_step_option)]
Requested = Annotated[Option, AfterValidator(_is_requested)]
Variable = Annotated[str, shaped(_PLAIN_NAME.pattern, "a valid name of a variable", _PLAIN)]
Variables = dict[Variable, Annotated[str, AfterValidator(_no_command)]]
Command = Annotated[str, AfterValidator(_is_command)]
Feature = Annotated[
    str,
    shaped(
        r"[A-Za-z_][A-Za-z0-9_-]*",  # ReFrame's rule
        "a valid name of a feature",
        "a letter or _, then letters, digits, _ and -",
    ),
]
Extra = Annotated[str, shaped(_PLAIN_NAME.pattern, "a valid name of an extra", _PLAIN)]
Extras = dict[Extra, Any]


class Device(Model):
    """An accelerator of a kind of node."""

    count: Count = Field(
        description="How many a node has; for gpu, 'siteproof describe --facts' compares it with "
        "what is on the node's PCI bus."
    )
    arch: str = Field("", description="Its architecture, as ReFrame's tests compare it: sm_90.")
    model: str = Field("", description="Its model, for ReFrame's tests and for people.")


class Loads(Model):
    """What the script of a job does before it measures."""

    modules: list[Module] = Field(
        [],
        description="Modules that a job loads on its node, in this order; `modules_system` of the "
        "system names what loads them. Where one is missing, nothing is measured.",
    )
    prepare_cmds: list[Command] = Field(
        [],
        description="Shell commands in the job's script before the modules are loaded, as in "
        "ReFrame: source /etc/profile.d/lmod.sh, or module use PATH.",
    )


class ContainerPlatform(Model):
    """What a container platform needs, for ReFrame's tests."""

    modules: list[Module] = Field([], description="Modules that bring it.")
    variables: Variables = Field({}, description="Environment variables to set for it.")


class Jobs(Loads):
    """How the jobs of a partition run, and what tests of the site's own may ask of it."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {  # ReFrame's
        "descr": "description",
        "environs": "environments",
        "env_vars": "variables",
        "container_platform": "container_platforms",
        "devices": "devices of `hardware`",
        "processor": "target of `hardware`",
        "sched_options": "reframe: {sched_options: …}",
        "nodes": "role",
    }

    variables: Variables = Field(
        {}, description="Environment variables to set; those of the environment come later."
    )
    launcher: Launcher | None = Field(
        None,
        description="What starts the ranks of the site's own ReFrame tests; srun, or local for "
        "`scheduler: local`, if not given. Siteproof's checks reach each node by srun.",
    )
    srun_options: list[StepOption] = Field(
        [],
        description="Options of the srun that starts Siteproof's checks on the nodes of a job: "
        "--mem-bind=local.",
    )
    max_jobs: Count | None = Field(
        None, description="The most jobs at a time; never more than one check needs for all nodes."
    )
    time_limit: Time | None = Field(
        None, description="Time limit of the site's own ReFrame tests that set none: 10 min."
    )
    features: list[Feature] = Field(
        [], description="What the site's own ReFrame tests may require of a partition: +gpu."
    )
    extras: Extras = Field(
        {}, description="Values that the site's own ReFrame tests read, as ReFrame's `extras`."
    )
    resources: dict[str, list[Requested]] = Field(
        {},
        description="Scheduler options that the site's own ReFrame tests ask for by name, with "
        "their values in braces: {memory: ['--mem={size}']}. With gpu devices, _rfm_gpu is "
        "--gres=gpu:{num_gpus_per_node} if not given.",
    )
    container_platforms: dict[Platform, ContainerPlatform] = Field(
        {}, description="Container platforms for the site's own ReFrame tests; the first is used."
    )
