"""The commands that are recorded, by set: the one list. A new one goes to the end of its set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One recording: commands on a set, one after the other.

    lines: what follows `siteproof`. files: what the commands write and is recorded, too.
    edits: (file, old, new), made before; an empty `old` makes the file, a program in bin/.
    left: patterns of files whose names are recorded at the end.
    """

    set: str
    name: str
    lines: tuple[tuple[str, ...], ...]
    files: tuple[str, ...] = ()
    edits: tuple[tuple[str, str, str], ...] = ()
    left: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it may leave its set otherwise than it was."""
        return bool(self.edits or self.left) or any(
            words[0] in _CHANGES or _CHANGES & {*words} for words in self.lines
        )


DAYS = {"campaign": "2026-11-24", "thishost": "2026-11-24", "year": "2026-11-20"}


def day_of(name: str) -> str:
    """The day on which a set is asked: after what it holds, and while that still counts."""
    return DAYS.get(name, "2026-12-01")


_CHANGES = {"accept", "collect", "import", "--write", "--apply", "--retest", "--release"}


def _case(
    of: str,
    name: str,
    *lines: str,
    system: str = "",
    files: tuple[str, ...] = (),
    edits: tuple[tuple[str, str, str], ...] = (),
    left: tuple[str, ...] = (),
) -> Case:
    """A case; words are parted at blanks, and '␣' stands for one within a word.

    system: what every line is asked of, where it is not in the line.
    """
    return Case(of, name, tuple(_words(line, system) for line in lines), files, edits, left)


def _words(line: str, system: str) -> tuple[str, ...]:
    words = [word.replace("␣", " ") for word in line.split()]
    return (*words, "--system", system) if system else tuple(words)


GROUPS = (
    "accept",
    "build",
    "calibrate",
    "collect",
    "compare",
    "describe",
    "export",
    "export json",
    "export junit",
    "export openmetrics",
    "export schema",
    "gate",
    "history",
    "import",
    "lint",
    "matrix",
    "nodes",
    "plan",
    "published",
    "report",
    "sites",
    "sweep",
    "trend",
    "trend ack",
    "trend unack",
    "trend why",
    "verdict",
    "why",
)


def _help() -> list[Case]:
    """Every page of help, what needs no data, and words that no command knows."""
    pages = [
        _case("help", "siteproof", "--help"),
        *(_case("help", words.replace(" ", "-"), f"{words} --help") for words in GROUPS),
    ]
    return [
        *pages,
        _case("help", "no-command", "nonsense"),
        _case("help", "no-option", "verdict --nonsense"),
        _case("help", "keys", "sites --keys"),
        *(
            _case("help", f"site-{name}", f"sites {name}")
            for name in (
                "extenci",
                "jetstream-iu",
                "jetstream-tacc",
                "magellan",
                "nebula-sriov",
                "sc11-wan",
                "testbed",
                "testbed-wan",
                "thishost",
            )
        ),
        _case("help", "lint-schema", "lint --schema"),
        _case("help", "columns", "history --columns"),
        _case("help", "sweeps", "sweep --system testbed"),
        _case("help", "schema", "export schema"),
        _case("help", "schema-nodes", "export schema nodes"),
        # at the end, so that the numbers of the others stay
        _case("help", "availability", "availability --help"),
        _case("help", "probe", "probe --help"),
    ]


_NO_SUCH_JOB = """\
#!/bin/sh
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1
"""
EVENING = (  # what a person asks of any system that was measured
    ("verdict", "verdict"),
    ("verdict-json", "verdict --json"),
    ("nodes", "nodes"),
    ("nodes-json", "nodes --json"),
    ("untested", "nodes --untested"),
    ("trend", "trend"),
    ("trend-json", "trend --json"),
    ("compare", "compare"),
    ("describe", "describe"),
    ("json", "export json"),
    ("junit", "export junit"),
    ("openmetrics", "export openmetrics"),
    ("gate", "gate"),
    ("calibrate", "calibrate"),
    ("build", "build --show"),
    ("published", "published"),
)
HISTORY = (
    "history",
    "history --sql SELECT␣metric,␣status,␣count(*),␣min(time),␣max(time)␣FROM␣samples"
    "␣GROUP␣BY␣ALL␣ORDER␣BY␣ALL --csv",
    "history --sql SELECT␣*␣FROM␣runs␣ORDER␣BY␣time,␣session,␣check,␣job,␣partition --json",
    "history --export all.csv",
)


def _of(name: str, system: str) -> list[Case]:
    """What is asked of every set."""
    return [
        _case(name, "lint", "lint"),
        _case(name, "sites", "sites", f"sites {system}"),
        _case(name, "history", *HISTORY, files=("all.csv",)),
        *(_case(name, case, line, system=system) for case, line in EVENING),
        _case(
            name, "report", f"report --system {system}", files=(f"{system}-{day_of(name)}*.html",)
        ),
        _case(name, "report-md", f"report --system {system} --output page.md", files=("page.md",)),
        _case(
            name,
            "accept",
            "accept --list",
            "accept latest --why checked --who ops",
            "accept latest --why checked --who ops --despite",
            "accept --list",
            "compare accepted latest",
            system=system,
        ),
        _case(name, "unknown-system", "verdict --system nowhere"),
        _case(name, "bad-since", "verdict --since yesterday", system=system),
        _case(name, "bad-sql", "history --sql SELEC␣1"),
        _case(
            name,
            "no-campaign",
            "verdict --campaign nothing",
            "nodes --campaign nothing",
            system=system,
        ),
        _case(name, "no-such-node", "why nobody", system=system),
        _case(
            name,
            "no-such-metric",
            "nodes --metric Nothing.at_all",
            "trend --metric Nothing.at_all",
            system=system,
        ),
        _case(
            name,
            "broken-criteria",
            "lint",
            f"verdict --system {system}",
            edits=((f"sites/{system}/criteria.yaml", "metric:", "metrc:"),),
        ),
    ]


def _thishost() -> list[Case]:
    return [
        *_of("thishost", "thishost"),
        *(
            _case("thishost", f"why-{word}", f"why {word}", system="thishost")
            for word in ("HERE-HPL", "HERE-STREAM", "HERE-PARAMETERS", "localhost")
        ),
        _case("thishost", "describe-node", "describe localhost --all", system="thishost"),
        _case("thishost", "nodes-metric", "nodes --metric Stream.triad", system="thishost"),
        _case(
            "thishost", "plan", "plan --system thishost --mode quick -n ^(Hpl|Stream|RandomIo|Ior)"
        ),
        _case("thishost", "plan-mistake", "plan --system thishost --mode nonsense"),
        _case(
            "thishost",
            "broken-line",
            "history",
            "verdict --system thishost",
            edits=(
                (
                    "perflogs/thishost/node/20261201T000000Z-0000000.Stream.1.jsonl",
                    "",
                    '{"siteproof":1}\n',
                ),
            ),
        ),
    ]


def _year() -> list[Case]:
    winter = [
        (name, line)
        for name, line in EVENING
        if name in ("verdict", "nodes", "nodes-json", "json", "gate")
    ]
    return [
        *_of("year", "here"),
        *(
            _case("year", f"{name}-autumn", f"{line} --campaign autumn", system="here")
            for name, line in winter
        ),
        *(
            _case("year", f"why-{word}", f"why {word} --campaign winter", system="here")
            for word in ("C-HPL", "C-TRIAD", "C-UPTIME", "n001", "n002", "n006", "n008")
        ),
        _case(
            "year",
            "compare-two",
            "compare autumn winter",
            "compare autumn winter --json",
            system="here",
        ),
        _case("year", "compare-nothing", "compare autumn nothing", system="here"),
        _case(
            "year",
            "verdict-since",
            "verdict --since 2026-11-10",
            "nodes --since 2026-11-10",
            "verdict --since 30d",
            system="here",
        ),
        _case(
            "year",
            "nodes-metric",
            "nodes --metric Stream.triad --since 2026-11-01",
            "nodes --metric Hpl.gflops --campaign winter",
            system="here",
        ),
        _case(
            "year",
            "trend-some",
            "trend --metric Stream.triad",
            "trend --node n007",
            "trend --since 30d",
            system="here",
        ),
        _case(
            "year",
            "trend-why",
            "trend why mrjkie",
            "trend why uw2mee",
            "trend why r42dvi",
            "trend why gyq3gm",
            "trend why nothing",
            system="here",
        ),
        _case(
            "year",
            "trend-ack",
            "trend ack mrjkie --why firmware --who ops",
            "trend",
            "trend why mrjkie",
            "trend unack mrjkie --why mistaken --who ops",
            "trend",
            left=("perflogs/here/trend/*",),
            system="here",
        ),
        _case(
            "year",
            "calibrate-write",
            "calibrate --metric Stream.triad --write",
            "calibrate --since 12w",
            "verdict --campaign winter",
            files=("sites/here/baselines.yaml",),
            system="here",
        ),
        _case(
            "year",
            "accept-two",
            "accept autumn --why firmware --who ops --despite",
            "compare",
            "compare accepted winter",
            "report --campaign winter --output page.md",
            "trend",
            files=("page.md",),
            left=("perflogs/here/accepted/*",),
            system="here",
        ),
        _case(
            "year",
            "report-winter",
            "report --campaign winter --output page.html",
            files=("page.html",),
            system="here",
        ),
        _case(
            "year",
            "history-some",
            "history --system here --since 52w --metric Stream.triad --node n[001-002]",
            "history --campaign winter",
            "history --export some.jsonl --campaign winter",
            "history --export some.parquet --campaign winter",
            "history --export some.txt",
            "history --rebuild",
            files=("some.jsonl", "some.parquet"),
        ),
        _case(
            "year",
            "export-files",
            "export junit --per-node --campaign winter --output a.xml",
            "export openmetrics --campaign winter --output a.prom",
            "export json --campaign winter --output a.json",
            files=("a.xml", "a.prom", "a.json"),
            system="here",
        ),
        _case(
            "year",
            "waiver-mistake",
            "lint",
            "verdict --system here",
            edits=(("sites/here/waivers.yaml", "expires: 2027-01-31", "expires: soon"),),
        ),
        _case(
            "year",
            "damaged-file",
            "history",
            "verdict --system here",
            "nodes --system here",
            edits=(
                (
                    "perflogs/here/compute/20261120T020000Z-000016c.Stream.1364.jsonl",
                    '"metric"',
                    '"metri"',
                ),
            ),
        ),
        _case(
            "year",
            "sweep",
            "sweep made_tasks",
            "sweep made_tasks --json",
            "sweep made_tasks --csv",
            "sweep made_tasks --campaign sweep-1 --with s0002",
            "sweep made_tasks --figure curve.svg",
            "sweep nothing",
            files=("curve.svg",),
            system="swept",
        ),
        _case("year", "compare-sweeps", "compare sweep-1 sweep-2", system="swept"),
        _case(
            "year",
            "report-swept",
            "report --campaign sweep-1 --output page.html",
            files=("page.html",),
            system="swept",
        ),
    ]


def _campaign() -> list[Case]:
    evening = [
        (name, line)
        for name, line in EVENING
        if name not in ("published", "build", "trend", "trend-json", "compare", "calibrate")
    ]
    return [
        *_of("campaign", "testbed"),
        *(
            _case("campaign", f"{name}-{of}", f"{line} --campaign {of}", system="testbed")
            for of in ("before", "after")
            for name, line in evening
        ),
        *(
            _case("campaign", f"why-{word}", f"why {word} --campaign after", system="testbed")
            for word in (
                "TB-HPL",
                "TB-HPL-ANY",
                "TB-STREAM-ANY",
                "TB-PARAMETERS",
                *(f"node00{n}" for n in range(1, 9)),
            )
        ),
        _case(
            "campaign",
            "why-pair",
            "why node005>node001 --campaign after",
            "why node001>node004 --campaign after",
            system="testbed",
        ),
        _case(
            "campaign",
            "compare-two",
            "compare before after",
            "compare before after --json",
            "compare accepted after",
            "compare previous latest",
            system="testbed",
        ),
        _case(
            "campaign",
            "describe-after",
            "describe --campaign after --all",
            "describe node004 --campaign after",
            "describe --campaign after --against before",
            system="testbed",
        ),
        _case(
            "campaign",
            "matrix",
            "matrix TcpBandwidth.throughput --campaign after",
            "matrix TcpBandwidth.throughput --campaign before --link lan",
            "matrix TcpBandwidth.throughput --daily --since 2026-11-20",
            "matrix Nothing.at_all",
            system="testbed",
        ),
        _case(
            "campaign",
            "nodes-metric",
            "nodes --metric Stream.triad --campaign after",
            "nodes --metric Hpl.gflops --campaign after",
            system="testbed",
        ),
        _case(
            "campaign",
            "gate-after",
            "gate --campaign after --limit 90%",
            "gate --campaign after --keep-out FAILED --limit 90%",
            "gate --campaign after --drain --limit 100%",
            "gate --campaign after --apply",
            "gate --campaign after --retest",
            "gate --campaign after --release",
            "gate --campaign after --keep-out NONSENSE",
            "gate --retest --release",
            system="testbed",
        ),
        _case(
            "campaign",
            "sweep-messages",
            "sweep messages_by_size",
            "sweep messages_by_size --json",
            "sweep messages_by_size --csv",
            "sweep messages_by_size --figure curve.svg",
            "sweep nothing",
            files=("curve.svg",),
            system="testbed",
        ),
        _case(
            "campaign",
            "report-after",
            "report --campaign after --output page.html",
            "report --campaign after --output page.md",
            files=("page.html", "page.md"),
            system="testbed",
        ),
        _case(
            "campaign",
            "collect",
            "collect",
            "collect",
            "nodes --system testbed",
            left=("perflogs/testbed/*/*",),
        ),
        _case(
            "campaign",
            "collect-lost",
            "collect",
            "collect",
            "why node002 --system testbed",
            left=("perflogs/testbed/*/*Stream*",),
            edits=(("bin/squeue", "", _NO_SUCH_JOB),),
        ),
        _case(
            "campaign",
            "plan",
            "plan --system testbed --mode maintenance",
            "plan --system testbed -S nodes=node[001-004] -n Stream|Hpl",
        ),
    ]


def _published(system: str, *more: Case) -> list[Case]:
    return [
        *_of(system, system),
        _case(system, "published-all", "published --all", "published --json", system=system),
        _case(
            system,
            "import-again",
            "import --dry-run",
            "import",
            "published",
            left=(f"perflogs/{system}/published/*",),
            system=system,
        ),
        *more,
    ]


CASES: tuple[Case, ...] = (
    *_help(),
    *_thishost(),
    *_year(),
    *_campaign(),
    *_published(
        "jetstream-tacc",
        _case(
            "jetstream-tacc",
            "compare-tuning",
            "compare before-tuning after-tuning",
            "compare before-tuning after-tuning --json",
            system="jetstream-tacc",
        ),
        _case(
            "jetstream-tacc",
            "why",
            "why JS-4.1.1-HPL",
            "why JS-4.1.1-STREAM",
            system="jetstream-tacc",
        ),
    ),
    *_published(
        "extenci",
        _case(
            "extenci",
            "matrix",
            "matrix TcpBandwidth.throughput",
            "matrix Netperf.throughput",
            system="extenci",
        ),
    ),
)
