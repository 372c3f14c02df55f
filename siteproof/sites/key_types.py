"""What the keys of all site files are made of: models, mistakes, and quantities with units.

The keys of `health`: what the program of `siteproof health` looks at on a node, and does.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from siteproof import units
from siteproof.errors import Mistake, UserError, hint

# Processors by archspec's names: the table is that of archspec 0.2.7, without its features and
# compilers; a test compares the two.
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
TARGETS = frozenset({*FAMILIES, *_PARENTS})


@cache
def runs(name: str) -> frozenset[str]:
    """The processors whose programs this one runs, itself included."""
    parents = _PARENTS.get(name, "").split()
    return frozenset({name}.union(*map(runs, parents)))


def family(name: str) -> str:
    """The architecture of a processor, as `uname -m` prints it on a host of it: x86_64."""
    return next(one for one in FAMILIES if one in runs(name))


# Lists of which an entry may be there twice: commands, options that a command takes twice, and
# mappings that are read as their union.
REPEATED = ("access", "axes", "prepare_cmds", "resources", "srun_options")


@cache  # pydantic's use_attribute_docstrings reads them at each start, also where nobody asks
def _written(module: str) -> Mapping[str, dict[str, str]]:
    """The sentences in a file, by class and key."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {one.name: dict(_below_keys(one)) for one in body if isinstance(one, ast.ClassDef)}


def _below_keys(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for pair in pairwise(model.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(key)), ast.Expr(ast.Constant(str(text))):
                yield key, " ".join(text.split())


def _with_sentences(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the sentence of each key, the text below it in its class, to a model's JSON schema."""
    known = [one for one in reversed(model.__mro__) if one.__module__.startswith("siteproof.")]
    for one in known:
        for key, sentence in _written(one.__module__).get(one.__name__, {}).items():
            schema["properties"][key]["description"] = sentence


class Model(BaseModel):
    """Every mapping of a site file: unknown keys are mistakes, and nothing changes it later.

    The text below a key is its sentence in the manual and in the JSON schema.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_with_sentences)

    @field_validator("*")
    @classmethod
    def _each_once(cls, given: Any, info: ValidationInfo) -> Any:
        lists = given.values() if isinstance(given, dict) else [given]
        for found in lists if info.field_name not in REPEATED else ():
            if isinstance(found, list):
                twice = [one for n, one in enumerate(found) if one in found[:n]]
                if twice:
                    raise Mistake(f"'{str(twice[0])[:40]}' twice", "each once")
        return given


def parse_tolerance(text: str) -> Fraction:
    """Read "5 %" as a share. Raises UserError."""
    try:
        share = plausible(text).to("x")
    except UserError:
        share = None
    if share is None or not 0 <= share < 1:
        what = f"'{text[:40]}' is not a valid tolerance"
        raise UserError("tolerance", what, "0 % to below 100 %")
    return share


def readable(read: Callable[[str], object]) -> AfterValidator:
    """The validator of a text that `read` can read: its UserError becomes a mistake of the key."""

    def check(text: str) -> str:
        try:
            read(text)
        except UserError as error:
            raise Mistake(error.what, ", ".join(error.allowed), error.hint) from None
        return text

    return AfterValidator(check)


def shaped(pattern: str, allowed: str) -> AfterValidator:
    """The validator of a text of one form."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise Mistake(f"'{text[:40]}' is not valid", allowed)
        return text

    return AfterValidator(check)


def plausible(text: object, wanted: str = "") -> units.Quantity:
    """Read a quantity of plausible size: exact arithmetic with 1e999999999 GB would not end.

    wanted: the kind that it must be of, for the hint.
    """
    quantity = units.parse(text, wanted=wanted)
    if quantity.value and abs(quantity.value.adjusted()) > 30:
        raise UserError("quantity", f"'{quantity}' is too large or too small", "10^-30 to 10^30")
    return quantity


def _quantity(kind: str, example: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Validator and JSON schema of a quantity of one kind, such as a size."""
    known = ", ".join(unit for unit in units.UNITS if units.kind(unit) == kind)

    def check(text: object) -> units.Quantity:
        try:
            quantity = plausible(text, kind)
        except UserError as error:
            allowed = f"a number and a unit, such as '{example}'; units: {known}"
            raise Mistake(error.what, allowed) from None
        if units.kind(quantity.unit) != kind:
            what = f"'{quantity.unit}' measures a {units.kind(quantity.unit)}, not a {kind}"
            raise Mistake(f"{what}{units.hint(text, kind)}", known)
        if quantity.value <= 0:
            raise Mistake(f"'{quantity}' is not above 0", "more than 0")
        return quantity

    schema = WithJsonSchema({"type": "string", "examples": [example], "x-kind": kind})
    return BeforeValidator(check), schema


Size = Annotated[units.Quantity, *_quantity("size", "128 GiB")]
Rate = Annotated[units.Quantity, *_quantity("rate", "10 Gb/s")]
Flops = Annotated[units.Quantity, *_quantity("flops", "806.4 GFLOPS")]
Frequency = Annotated[units.Quantity, *_quantity("frequency", "2.1 GHz")]
Time = Annotated[units.Quantity, *_quantity("time", "0.2 ms")]


class Graded(Model):
    """From which rates on a link, a service that transfers, or any of them is slow."""

    warn: Rate | None = None
    """A pair up to this rate is worth a look, and is not bad: 50 MB/s."""
    critical: Rate | None = None
    """A pair with a lower rate is bad, however few pairs there are: 25 MB/s."""


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(text: object) -> object:
    """A day as it is written, but a number: pydantic would read it as seconds since 1970."""
    given = str(text).strip()
    if not _DAY.match(given):
        raise Mistake(f"'{given[:40]}' is not a date", "a date such as 2016-04-20")
    return text


Day = Annotated[date, BeforeValidator(_day)]
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")  # ReFrame's rule for systems, partitions …
NAME_RULE = "a letter or _, then letters, digits, _ and -"
EntryName = Annotated[str, shaped(NAME.pattern, NAME_RULE)]
Count = Annotated[int, Field(ge=1, le=10**9)]
# What tuned inputs of HPL use. The list is closed, so that few series have an NB of their own.
HPL_BLOCKS = (64, 80, 96, 112, 128, 144, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240,
              256, 288, 320, 336, 384, 400, 448, 512)  # fmt: skip


def _is_hpl_block(number: int) -> int:
    if number not in HPL_BLOCKS:
        raise Mistake(f"{number} is not a block size", ", ".join(map(str, HPL_BLOCKS)))
    return number


HplBlock = Annotated[
    int, AfterValidator(_is_hpl_block), Field(json_schema_extra={"enum": list(HPL_BLOCKS)})
]

_ONE_OR_MANY = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Names = Annotated[
    list[str],
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    WithJsonSchema(_ONE_OR_MANY),
]


# Makers' names of processors, for the hint.
CODE_NAMES = {
    "naples": "zen", "rome": "zen2", "milan": "zen3", "trento": "zen3", "genoa": "zen4",
    "bergamo": "zen4", "turin": "zen5", "grace": "neoverse_v2", "graviton2": "neoverse_n1",
    "graviton3": "neoverse_v1", "graviton4": "neoverse_v2", "altra": "neoverse_n1",
    "skylake_sp": "skylake_avx512", "sapphire_rapids": "sapphirerapids", "ice_lake": "icelake",
    "cascade_lake": "cascadelake", "knl": "mic_knl", "power9": "power9le",
}  # fmt: skip


def _known_target(name: str) -> str:
    if name not in TARGETS:
        allowed = "a name of archspec, as 'spack arch --known-targets' lists them: zen3, icelake"
        known = sorted(TARGETS)
        last = name.rpartition("/")[2]  # EESSI writes x86_64/amd/zen3
        code_name = last.lower().replace(" ", "_").replace("-", "_")
        near = hint(CODE_NAMES.get(code_name, last), known)
        raise Mistake(f"unknown processor target '{name[:40]}'{near}", allowed)
    return name


Target = Annotated[str, AfterValidator(_known_target)]


def blanks(text: str) -> str:
    """The text with each run of blanks as one space: how host parameters are compared."""
    return " ".join(text.split())


_BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?) node-hours")


def _node_hours(text: object) -> Decimal:
    found = _BUDGET.fullmatch(str(text))
    if not found or not Decimal(found[1]):
        raise Mistake(f"'{text}' is not a budget", "for example '500 node-hours'")
    return Decimal(found[1])


Budget = Annotated[
    Decimal,
    BeforeValidator(_node_hours),
    WithJsonSchema({"type": "string", "examples": ["500 node-hours"]}),
]


_PRINTABLE = r"[!-~]([ -~]{0,398}[!-~])?"
LocalPath = Annotated[
    str, shaped(rf"(?=/){_PRINTABLE}", "an absolute path of printable ASCII, such as /tmp")
]
Spool = Annotated[
    str,
    shaped(
        rf"(?=/)(?!.*/(\.\.?)?(/|$))(?!/(tmp|var/tmp|dev|proc|sys|run)(/|$))(?!/$){_PRINTABLE}",
        "an absolute path of printable ASCII, and none in a folder in which all users may write",
    ),
]
Most = Annotated[int, Field(ge=0, le=10**9)]


class Health(Model):
    """What more the health program looks at on the nodes of a role, and what it does."""

    drain: bool = False
    """True: it drains a node on which something is wrong; it never puts one back."""
    spool: Spool = "/var/spool/siteproof"
    """The folder on the node for its record, which only root may write to."""
    free: dict[LocalPath, Size] = {}
    """Free space that a file system must have, by a path on it: 5 GiB."""
    clock_offset: Time | None = None
    """How far chrony may find the clock off: 100 ms. Needs chronyc."""
    corrected_memory_errors: Most | None = None
    """How many corrected memory errors EDAC may count since boot."""
    uncorrected_memory_errors: Most | None = None
    """The same for those that could not be corrected."""
    file_system_errors: Most | None = None
    """How many errors the ext4 file systems may have counted."""
    zombies: Most | None = None
    """How many processes may have ended without their parent's notice."""
    leftover_processes: Most | None = None
    """How many processes there may be of users none of whose processes belongs to a job. Needs
    Slurm's cgroups (proctrack/cgroup), which show what belongs to a job."""
