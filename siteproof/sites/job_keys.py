"""The keys of system.yaml that shape a job, and mistakes in them.

Modules, commands before it, its launcher, devices, blocks that ReFrame gets unchanged, and
variables of the environment that steer libraries: what of these a job finds is a condition of what
it measures (siteproof/checks/on_node/account.sh).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from siteproof.errors import Mistake
from siteproof.sites.key_types import Count, EntryName, Model, Time, shaped
from siteproof.sites.schema.shapes import near
from siteproof.sites.schema.yamlfile import Document, Loc, clip

if TYPE_CHECKING:
    from siteproof.sites.system import Environment, Partition, System

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


Module = Annotated[
    str,
    shaped(
        r"[A-Za-z0-9_][A-Za-z0-9_.+/@%~=:-]{0,199}",
        "a name such as gcc/12.2.0; other commands belong into prepare_cmds",
    ),
]
Option = Annotated[
    str, shaped(r"-[A-Za-z].*|--[a-z][a-z-]*(=.*)?", "an option such as --account=staff")
]
StepOption = Annotated[Option, AfterValidator(_is_step_option)]
Requested = Annotated[Option, AfterValidator(_is_requested)]
PlainName = Annotated[str, shaped(_PLAIN_NAME.pattern, "a letter or _, then letters, digits and _")]
# No $(command) and no `command`: ReFrame itself runs these, quoted or not.
_NO_COMMAND = r"(?s)(?!.*(?:\$\(|`)).*"
Variables = dict[PlainName, Annotated[str, shaped(_NO_COMMAND, "text, $NAME, ${NAME}; no command")]]
_NO_REMARK = r"(?s)\s*[^#\s].*"
Command = Annotated[str, shaped(_NO_REMARK, "a command; options of sbatch belong into access")]


class Device(Model):
    """An accelerator of a kind of node."""

    count: Annotated[int, Field(ge=1, le=128)]
    """How many a node has; for gpu, 'siteproof describe --facts' compares it with what is on the
    node's PCI bus, and each owes the values of a criterion on GPUs."""
    arch: str = ""
    """Its architecture, as ReFrame's tests compare it: sm_90."""
    model: str = ""
    """Its model, for ReFrame's tests and for people."""


class Loads(Model):
    """What the script of a job does before it measures."""

    modules: list[Module] = []
    """Modules that a job loads on its node, in this order; `modules_system` of the system names
    what loads them. Where one is missing, nothing is measured."""
    prepare_cmds: list[Command] = []
    """Shell commands in the job's script before the modules are loaded, as in ReFrame: source
    /etc/profile.d/lmod.sh, or module use PATH."""


class ContainerPlatform(Model):
    """What a container platform needs, for ReFrame's tests."""

    modules: list[Module] = []
    """Modules that bring it."""
    variables: Variables = {}
    """Environment variables to set for it."""


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

    variables: Variables = {}
    """Environment variables to set; those of the environment come later."""
    launcher: Launcher | None = None
    """What starts the ranks of the site's own ReFrame tests; srun, or local for `scheduler: local`,
    if not given. Siteproof's checks reach each node by srun."""
    srun_options: list[StepOption] = []
    """Options of the srun that starts Siteproof's checks on the nodes of a job:
    --mem-bind=local."""
    max_jobs: Count | None = None
    """The most jobs at a time; never more than one check needs for all nodes."""
    time_limit: Time | None = None
    """Time limit of the site's own ReFrame tests that set none: 10 min."""
    features: list[EntryName] = []
    """What the site's own ReFrame tests may require of a partition: +gpu."""
    extras: dict[PlainName, Any] = {}
    """Values that the site's own ReFrame tests read, as ReFrame's `extras`."""
    resources: dict[str, list[Requested]] = {}
    """Scheduler options that the site's own ReFrame tests ask for by name, with their values in
    braces: {memory: ['--mem={size}']}. With gpu devices, _rfm_gpu is --gres=gpu:{num_gpus_per_node}
    if not given."""
    container_platforms: dict[Platform, ContainerPlatform] = {}
    """Container platforms for the site's own ReFrame tests; the first is used."""


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
OF_LIBRARIES = f"{OF_ANY} {OF_MPI} {OF_BLAS} {OF_OPENMP}"

# Endings of variables that name where software lies. account.sh neither unsets nor records them.
PLACES = ("_ROOT", "_DIR", "_HOME", "_PREFIX", "_PATH")


def may_steer(wanted: str) -> bool:
    """Whether a name, or the beginning of names with '*', can be that of a variable listed here."""
    if wanted.endswith(PLACES):
        return False
    return any(
        fnmatchcase(wanted.removesuffix("*"), known) or fnmatchcase(known.removesuffix("*"), wanted)
        for known in OF_LIBRARIES.split()
    )


# Keys of ReFrame in a verbatim block, by its place: those for which the site has a key, of this or
# another name (OTHER_NAMES), which may not be given, too; those without which nothing works; and
# those of ReFrame alone.
_OF_JOBS = ("features", "modules", "env_vars", "variables", "prepare_cmds")
REPLACED: dict[str, tuple[str, ...]] = {
    "system": ("descr",),
    "partitions": (
        *("descr", "access", "launcher", *_OF_JOBS, "max_jobs", "time_limit", "extras"),
        *("resources", "container_platforms"),
    ),
    "environments": _OF_JOBS,
}
NEVER: dict[str, dict[str, str]] = {
    "system": {
        "name": "system",
        "hostnames": "recognise",
        "modules_system": "modules_system",
        "partitions": "partitions",
        "prefix": "SITEPROOF_DATA",
        "stagedir": "SITEPROOF_DATA",
        "outputdir": "SITEPROOF_DATA",
    },
    "partitions": {"name": "partitions", "scheduler": "scheduler", "environs": "environments"},
    "environments": {"name": "environments"},
}
VERBATIM: dict[str, tuple[str, ...]] = {
    "system": (
        *("resourcesdir", "sched_options", "max_local_jobs"),
        *("modules", "env_vars", "variables"),
    ),
    "partitions": ("processor", "devices", "sched_options"),
    "environments": (
        *("cc", "cxx", "ftn", "nvcc", "cppflags", "cflags", "cxxflags", "fflags", "ldflags"),
        *("extras", "resources", "target_systems"),
    ),
}


def lint_jobs(document: Document, system: System) -> None:
    """Check the keys of job_keys.py, and the blocks that ReFrame gets unchanged."""
    _block(document, (), "system", system)
    nothing_loads = system.modules_system == "nomod" and not document.spoilt(("modules_system",))
    for section in ("partitions", "environments"):
        found: Mapping[str, Partition | Environment] = getattr(system, section)
        for name, one in found.items():
            _block(document, (section, name), section, one)
            if one.modules and nothing_loads:
                what = f"nothing loads module '{clip(one.modules[0])}'"
                remedy = "Name it at the top of the file: 'modules_system: lmod'"
                document.add((section, name, "modules"), what, hint=remedy)
    for name, partition in system.partitions.items():
        loc = ("partitions", name)
        _options(document, (*loc, "access"), partition.access, step=False)
        _options(document, (*loc, "srun_options"), partition.srun_options, step=True)


def _options(document: Document, loc: Loc, options: Iterable[str], *, step: bool) -> None:
    for option in options:
        later = (part for part in option.split()[1:] if part.startswith("-"))
        names = map(job_option, (option, *later))
        if any(is_of_checks(name, step=step) for name in names):
            document.add(loc, f"'{clip(option)}' is set by the check", hint="Remove it")


def _block(
    document: Document, loc: Loc, place: str, given: System | Partition | Environment
) -> None:
    """Check a verbatim block: each key is ReFrame's, and no other key sets the same."""
    replaced, never = REPLACED[place], NEVER[place]
    for key in given.reframe:
        here = (*loc, "reframe", key)
        if key in never:
            document.add(here, f"'{clip(key)}' is set by `{never[key]}`", hint="Remove it")
        elif key in replaced:
            own = given.OTHER_NAMES.get(key, key)
            if own in given.model_fields_set and key not in ("descr", "access"):
                what = f"'{clip(key)}' replaces `{own}`, which is also given"
                document.add(here, what, hint=f"Give `{own}` alone")
        elif key not in VERBATIM[place]:
            allowed = [*VERBATIM[place], *replaced]
            close = near(document, here, key, allowed)
            document.add(here, f"ReFrame has no key '{clip(key)}'{close}", allowed)
