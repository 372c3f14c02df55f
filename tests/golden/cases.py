"""The commands that are recorded, by set: the one list.

One recording a command and set, where it shows words that no other does. The help of each command
is in docs/reference/commands.md, and what a person sees of a campaign in docs/operator.md: both are
compared, too, and not recorded again.
"""

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

    @property
    def of_data(self) -> bool:
        """Whether it is one command that answers in JSON, which is compared as data."""
        first, *more = self.lines
        return not more and ("--json" in first or first[:2] in _IN_JSON)


DAYS = {"campaign": "2026-11-24", "thishost": "2026-11-24", "year": "2026-11-20"}


def day_of(name: str) -> str:
    """The day on which a set is asked: after what it holds, and while that still counts."""
    return DAYS.get(name, "2026-12-01")


_CHANGES = {"accept", "collect", "ack", "--apply", "--retest", "--release"}
_IN_JSON = {("export", "json")}


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


_NO_SUCH_JOB = """\
#!/bin/sh
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1
"""
HISTORY = (
    "history",
    "history --sql SELECT␣metric,␣status,␣count(*),␣min(time),␣max(time)␣FROM␣samples"
    "␣GROUP␣BY␣ALL␣ORDER␣BY␣ALL␣LIMIT␣20 --csv",
    "history --sql SELECT␣*␣FROM␣runs␣ORDER␣BY␣time,␣session,␣check,␣job,␣partition␣LIMIT␣3 --json",
    "history --export all.csv",
)

_OF_WHOLE = ("plan --system jetstream", "nodes --system jetstream")

# No data, and what is shipped.
SHIPPED = (
    _case("help", "help", "--help", "trend --help", "gate --help"),
    _case("help", "sites", "sites jetstream-iu", "sites testbed"),
    _case("help", "members", "sites jetstream", *_OF_WHOLE),
    _case("help", "sweeps", "sweep --system testbed"),
    _case("help", "columns", "history --columns"),
)


def _thishost() -> list[Case]:
    """One machine, and every mistake of a user's words."""
    of, here = "thishost", {"system": "thishost"}
    broken = ("sites/thishost/criteria.yaml", "metric:", "metrc:")
    return [
        _case(of, "sites", "lint", "sites", "sites thishost"),
        _case(of, "history", *HISTORY, files=("all.csv",)),
        _case(of, "verdict", "verdict", **here),
        _case(of, "verdict-json", "verdict --json", **here),
        _case(of, "nodes", "nodes", "nodes --untested", "nodes --metric Stream.triad", **here),
        _case(of, "nodes-json", "nodes --json", **here),
        _case(of, "gate", "gate", **here),
        _case(
            of, "too-little", "trend", "compare", "calibrate", "published", "build --list", **here
        ),
        _case(of, "describe", "describe", **here),
        _case(of, "json", "export json", **here),
        _case(of, "exports", "export junit", "export openmetrics", **here),
        _case(of, "report", "report --system thishost", files=("thishost-*.html",)),
        _case(of, "report-md", "report --output page.md", files=("page.md",), **here),
        _case(
            of,
            "accept",
            "accept --list",
            "accept latest --why checked --by ops",
            "accept latest --why checked --by ops --despite",
            "accept --list",
            **here,
        ),
        _case(of, "why", "why HERE-STREAM", "why HERE-PARAMETERS", "why localhost", **here),
        _case(of, "plan", "plan --mode quick -n ^(Hpl|Stream|RandomIo|Ior)", **here),
        _case(
            of,
            "mistakes",
            "verdict --since yesterday",
            "verdict --campaign nothing",
            "nodes --metric Nothing.at_all",
            "trend --metric Nothing.at_all",
            "why nobody",
            "plan --mode nonsense",
            **here,
        ),
        _case(of, "broken-criteria", "lint", "verdict --system thishost", edits=(broken,)),
    ]


def _year() -> list[Case]:
    """Eight nodes through a year, and a sweep that ran twice."""
    of, here, swept = "year", {"system": "here"}, {"system": "swept"}
    return [
        _case(of, "history", "history", "history --rebuild"),
        _case(
            of,
            "history-some",
            "history --system here --since 52w --metric Stream.triad --node n[001-002]",
            "history --campaign winter",
            "history --export some.jsonl --campaign winter",
            "history --export some.parquet --campaign winter",
            "history --export some.txt",
            files=("some.jsonl", "some.parquet"),
        ),
        _case(of, "verdict", "verdict", "verdict --since 30d", **here),
        _case(
            of,
            "nodes",
            "nodes --campaign autumn",
            "nodes --since 2026-11-10",
            "nodes --metric Stream.triad --since 2026-11-01",
            **here,
        ),
        _case(of, "gate", "gate --campaign autumn", **here),
        _case(of, "trend", "trend", "trend --node n007", "trend --since 30d --all", **here),
        _case(of, "trend-json", "trend --json --node n007", **here),
        _case(
            of,
            "trend-why",
            "trend why mrjkie",
            "trend why r42dvi",
            "trend why gyq3gm",
            "trend why nothing",
            **here,
        ),
        _case(
            of,
            "trend-ack",
            "trend ack mrjkie --why firmware --by ops",
            "trend",
            "trend why mrjkie",
            "trend unack mrjkie --why mistaken --by ops",
            left=("perflogs/here/trend/*",),
            **here,
        ),
        _case(of, "compare", "compare autumn winter", "compare autumn nothing", **here),
        _case(of, "compare-json", "compare autumn winter --json", **here),
        _case(of, "why", "why C-HPL", "why C-UPTIME", "why n002", **here),
        _case(
            of,
            "calibrate",
            "calibrate --metric Stream.triad --apply",
            "calibrate --since 12w",
            "verdict --campaign winter",
            files=("sites/here/baselines.yaml",),
            **here,
        ),
        _case(
            of,
            "accept",
            "accept autumn --why firmware --by ops --despite",
            "compare accepted winter",
            "trend",
            left=("perflogs/here/accepted/*",),
            **here,
        ),
        _case(
            of,
            "report",
            "report --campaign winter --output page.html",
            files=("page.html",),
            **here,
        ),
        _case(
            of,
            "export-files",
            "export junit --per-node --campaign winter --output a.xml",
            "export openmetrics --campaign winter --output a.prom",
            files=("a.xml", "a.prom"),
            **here,
        ),
        _case(
            of,
            "damaged-file",
            "history",
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
            of,
            "sweep",
            "sweep made_tasks",
            "sweep made_tasks --csv",
            "sweep made_tasks --campaign sweep-1 --with s0002",
            "sweep made_tasks --figure curve.svg",
            files=("curve.svg",),
            **swept,
        ),
        _case(of, "compare-sweeps", "compare sweep-1 sweep-2", **swept),
        _case(
            of,
            "report-swept",
            "report --campaign sweep-1 --output page.html",
            files=("page.html",),
            **swept,
        ),
    ]


def _campaign() -> list[Case]:
    """Eight nodes of Slurm before and after many faults. More of it is in docs/operator.md."""
    of, bed = "campaign", {"system": "testbed"}
    return [
        _case(of, "history", "history"),
        _case(
            of, "before", *(f"{c} --campaign before" for c in ("verdict", "nodes", "gate")), **bed
        ),
        _case(of, "nodes", "nodes --metric Stream.triad --campaign after", **bed),
        _case(of, "nodes-json", "nodes --json", **bed),
        _case(
            of,
            "gate",
            "gate --campaign after --limit 90%",
            "gate --campaign after --keep-out FAILED --limit 90%",
            "gate --campaign after --drain --limit 100%",
            "gate --campaign after --apply",
            "gate --campaign after --retest",
            "gate --campaign after --release",
            "gate --campaign after --keep-out NONSENSE",
            "gate --retest --release",
            **bed,
        ),
        _case(of, "compare", "compare before after", "compare previous latest", **bed),
        _case(
            of,
            "describe",
            "describe",
            "describe node004 --campaign after",
            "describe --campaign after --against before",
            **bed,
        ),
        _case(
            of,
            "why",
            "why TB-STREAM-ANY",
            "why TB-PARAMETERS",
            "why node001",
            "why node002",
            "why node004",
            "why node007",
            "why node008",
            "why node005>node001",
            **bed,
        ),
        _case(
            of,
            "matrix",
            "matrix TcpBandwidth.throughput --campaign after",
            "matrix TcpBandwidth.throughput --campaign before --link lan",
            "matrix TcpBandwidth.throughput --daily --since 2026-11-20",
            "matrix Nothing.at_all",
            **bed,
        ),
        _case(of, "matrix-json", "matrix TcpBandwidth.throughput --json", **bed),
        _case(
            of,
            "exports",
            "export junit --campaign after",
            "export openmetrics --campaign after",
            **bed,
        ),
        _case(
            of,
            "sweep",
            "sweep messages_by_size",
            "sweep messages_by_size --figure curve.svg",
            files=("curve.svg",),
            **bed,
        ),
        _case(of, "sweep-json", "sweep messages_by_size --json", **bed),
        _case(
            of, "report", "report --campaign after --output page.html", files=("page.html",), **bed
        ),
        _case(
            of,
            "collect",
            "collect",
            "collect",
            "why node002 --system testbed",
            left=("perflogs/testbed/*/*Stream*",),
        ),
        _case(
            of,
            "collect-lost",
            "collect",
            "collect",
            "why node002 --system testbed",
            left=("perflogs/testbed/*/*Stream*",),
            edits=(("bin/squeue", "", _NO_SUCH_JOB),),
        ),
        _case(of, "plan", "plan -S nodes=node[001-004] -n Stream|Hpl|TcpBandwidth", **bed),
    ]


def _published() -> list[Case]:
    """Two systems of which only published values are known."""
    of, jet = "jetstream-tacc", {"system": "jetstream-tacc"}
    ext = {"system": "extenci"}
    return [
        _case(of, "verdict", "verdict", "nodes", "gate", "trend", **jet),
        _case(of, "published", "published", **jet),
        _case(
            of,
            "import",
            "import",
            "import --apply",
            left=("perflogs/jetstream-tacc/published/*",),
            **jet,
        ),
        _case(of, "compare", "compare before-tuning after-tuning", **jet),
        _case(of, "why", "why JS-4.1.1-HPL", "why JS-4.1.1-STREAM", **jet),
        _case(of, "report", "report --output page.html", files=("page.html",), **jet),
        _case("extenci", "verdict", "verdict", **ext),
        _case("extenci", "published", "published", **ext),
        _case(
            "extenci",
            "matrix",
            "matrix TcpBandwidth.throughput",
            "matrix Netperf.throughput",
            **ext,
        ),
    ]


CASES: tuple[Case, ...] = (*SHIPPED, *_thishost(), *_year(), *_campaign(), *_published())
