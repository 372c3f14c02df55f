"""Hostile names, reasons and outputs: shown printable, run nowhere, one word to every program.

The texts come from whoever can write a node's files, a reason in Slurm, a site or a command line.
"""

import json

import pytest
from clone import World
from fleets import furnish, header, names

from siteproof.errors import harmless
from siteproof.record import descriptions, samples
from siteproof.record.samples import Sample

STEER = "\x1b]0;owned\x07\x1b[2J\x9b1m\r\b\u202e"
QUOTES = (
    "$(touch {trap}) `touch {trap}` ';touch {trap};' \"|touch {trap}\" [red]x[/red] [/b] %s {{0}}"
)
FIELDS = " State=DOWN Nodes=ALL Users=mallory\nNodeName=n001 State=DOWN --flag"


@pytest.fixture(scope="module")
def of_readers(tmp_path_factory):
    """A world that all commands share which only read."""
    world = World(tmp_path_factory.mktemp("hostile"))
    world.site()
    yield from made(world)


@pytest.fixture
def hostile(world):
    """One of the test's own."""
    yield from made(world)


def made(world):
    """A site of eight nodes whose samples and descriptions hold the worst of texts."""
    furnish(world)
    world.trap = world.folder / "trap"
    world.text = STEER + QUOTES.format(trap=world.trap) + FIELDS
    system = world.sites / "here/system.yaml"
    system.write_text(system.read_text().replace("scheduler: local", "scheduler: slurm"))
    for run, campaign in ((1, "before"), (2, world.text)):
        write(world, run, campaign)
    yield world
    assert not world.trap.exists(), "a text was run"
    assert not list((world.folder / "data/perflogs").glob("*touch*")), "a text became a path"


def write(world, run, campaign):
    """A session in which n003 broke, n004 is odd and n005 was refused, each with a hostile why."""
    text, perflogs = world.text if run == 2 else "well", world.data / "perflogs"
    head = header(
        run,
        campaign=campaign,
        provenance={"user": text, "suite": text},
        conditions={"program": "stream", "compiler": text},
    )
    found = [sample(head, n, "triad", 100) for n in names(8) if n not in ("n003", "n005")]
    found += [
        Sample(head, "n003", "Stream.*", status="node_lost", why=text),
        Sample(head, "n005", "Stream.*", status="invalid", why=text),
    ]
    samples.write(perflogs, head, found)
    head = header(run, "HostParameters", campaign=campaign)
    samples.write(
        perflogs,
        head,
        [
            Sample(head, "n004", "HostParameters.mismatches", "1", "count"),
            Sample(head, "n004", "HostParameters.mismatch", text, "text", dims={"parameter": text}),
        ],
    )
    head = header(run, "SystemDescription", campaign=campaign)
    said = {
        n: {"bios.version": text if n == "n004" else "1", "unreadable x": text} for n in names(8)
    }
    descriptions.write(perflogs, head, said)
    samples.write(
        perflogs, head, [Sample(head, n, descriptions.COUNT, "1", "count") for n in names(8)]
    )


def sample(head, node, metric, value):
    return Sample(head, node, f"{head.check}.{metric}", value, "MB/s")


def printable(done, *also):
    """Nothing that steers a terminal, and no traceback; a refusal is one line."""
    text = done.said
    assert all(c.isprintable() or c == "\n" for c in text), repr(text)
    assert "Traceback" not in text
    if done.code == 2:
        assert len(done.err.splitlines()) == 1 or "Usage" in done.err, done
    for word in also:
        assert word in text
    return done


READERS = [
    ["verdict"],
    ["verdict", "--json"],
    ["nodes"],
    ["nodes", "--json"],
    ["nodes", "--metric", "Stream.triad"],
    ["nodes", "--untested"],
    ["why", "n003"],
    ["why", "n004"],
    ["why", "C-TRIAD"],
    ["describe", "--all"],
    ["describe", "n004"],
    ["gate"],
    ["gate", "--drain"],
    ["accept", "--list"],
    ["export", "junit"],
    ["export", "openmetrics"],
    ["export", "json"],
]


def test_what_reads_samples_prints_no_hostile_text_as_it_is(of_readers):
    for words in READERS:
        done = printable(of_readers.ask(*words))
        assert done.code in (0, 1, 3), (words, done)
        if words[-1] in ("n003", "n004") or words[0] in ("nodes", "gate") and len(words) == 1:
            assert "touch" in done.out, f"{words}: the text is shown, and not swallowed"


def test_two_hostile_campaigns_are_compared(of_readers):
    done = printable(of_readers.ask("compare", "before", harmless(of_readers.text)))
    assert done.code in (0, 1, 3), done
    assert "touch" in done.out


OF_A_USER = [
    ["why"],
    ["describe"],
    ["compare", "before"],
    ["nodes", "--metric"],
    ["nodes", "--campaign"],
    ["verdict", "--campaign"],
    ["verdict", "--since"],
    ["gate", "--campaign"],
    ["gate", "--limit"],
    ["gate", "--keep-out"],
    ["gate", "--users"],
    ["gate", "--beside"],
    ["accept"],
    ["plan", "--mode"],
    ["plan", "-S"],
    ["sites"],
]


def test_a_hostile_word_of_a_user_is_a_word(hostile):
    for command in OF_A_USER:
        more = ["--why", hostile.text] if command == ["accept"] else []
        printable(hostile.ask(*command, hostile.text.replace("\n", " "), *more))


NODES = [
    "n1;touch {trap}",
    "$(touch {trap})",
    "-n",
    "n1 n2",
    "n1\x1b[2J",
    "../n1",
    "n1/../../x",
    "n1=x",
]


def test_no_site_may_name_a_node_so(hostile):
    system = hostile.sites / "here/system.yaml"
    text = system.read_text()
    for node in NODES:
        words = json.dumps(node.format(trap=hostile.trap))
        system.write_text(text.replace("'n[001-008]'", words))
        done = printable(hostile.ask("verdict"))
        assert done.code == 2, (node, done)


SCONTROL = """
for word; do printf '%s\\0' "$word"; done >>'{ran}'; printf '\\n' >>'{ran}'
case "$*" in
*'show nodes') cat '{nodes}' ;;
*'show reservations') cat '{reservations}' ;;
esac"""


@pytest.fixture
def slurm(hostile):
    """A scontrol that answers hostile texts, and keeps each word that it is given."""
    hostile.ran = hostile.folder / "ran"
    bad = hostile.text.replace("\n", "\\n")
    lines = [
        f"NodeName={n} Arch=x86_64 State=IDLE ThreadsPerCore=1 Partitions=compute" for n in names(8)
    ]
    lines[5] = lines[5].replace("IDLE", "IDLE+DRAIN") + f" Reason={bad} [mallory@1795227520]"
    lines[2] += f" Comment={bad}"
    lines.append(f"NodeName=n9;touch {hostile.trap} State=IDLE Reason={bad}")
    (hostile.folder / "nodes").write_text("\n".join(lines) + "\n")
    (hostile.folder / "reservations").write_text(
        f"ReservationName=x$(touch{STEER}) StartTime=5 EndTime=9 Duration=4 Nodes=n008 NodeCnt=1\n"
    )
    hostile.fake(
        "scontrol",
        SCONTROL.format(
            ran=hostile.ran,
            nodes=hostile.folder / "nodes",
            reservations=hostile.folder / "reservations",
        ),
    )
    hostile.fake("squeue", f"printf '%s\\n' \"job 5 of {STEER} on n003\"")
    return hostile


def asked(world):
    """The words of each scontrol that changes something."""
    calls = [line.split("\0")[:-1] for line in world.ran.read_text(errors="replace").split("\n")]
    return [c for c in calls if c and "show" not in c]


def test_what_the_gate_gives_to_slurm_is_harmless_word_by_word(slurm):
    printable(slurm.ask("gate", "--apply", "--drain", "--limit", "100%"), "n003")
    calls = asked(slurm)
    assert calls, "nothing was asked for"
    for call in calls:
        assert call[0] in ("create", "update"), call
        for word in call:
            key, _, value = word.partition("=")
            assert word.isascii() and word.isprintable(), word
            assert not set(value) & set("\"'`$\\|="), word
            assert key in (
                "create",
                "update",
                "reservation",
                "ReservationName",
                "StartTime",
                "Duration",
                "Users",
                "Nodes",
                "Flags",
                "NodeName",
                "Comment",
                "State",
                "Reason",
            ), word
    said = " ".join(w for c in calls for w in c)
    assert "Nodes=ALL" not in said
    assert "mallory" not in " ".join(w for c in calls for w in c if w.startswith("Users="))


def test_without_apply_the_shown_commands_do_nothing_when_they_are_pasted(slurm):
    shown = [
        line.strip()
        for line in slurm.ask("gate", "--drain").out.splitlines()
        if line.strip().startswith("scontrol ")
    ]
    assert shown
    slurm.ran.unlink()
    for line in shown:
        slurm.run("sh", "-c", line)
    for call in asked(slurm):
        assert call[0] in ("create", "update")
        assert not [w for w in call if w.startswith("Users=") and "mallory" in w]


@pytest.mark.parametrize(
    "option",
    [
        "--campaign",
        "--nodes",
        "--reservation",
        "--mode",
        "--limit",
        "--keep-out",
        "--rolling",
        "--",
    ],
)
def test_the_evening_takes_a_hostile_word_as_a_word(hostile, option):
    words = [] if option == "--campaign" else ["--campaign", "c"]
    more = [] if option == "--mode" else ["--mode", "none"]  # end early: before anything is run
    done = hostile.run(
        "bash",
        hostile.clone / "sbatch/evening",
        *words,
        *more,
        option,
        hostile.text,
        SITEPROOF_SYSTEM="here",
        SLURM_JOB_ID="UNSET",
    )
    assert done.code == 2, done
    assert "\x1b" not in done.said and "\x07" not in done.said, repr(done.said)
    assert "Traceback" not in done.said
