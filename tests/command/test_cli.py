"""The command: a mistake is one line and exit code 2, and nothing that is read harms a terminal."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from documents_checked import check, kinds

from siteproof import __version__
from siteproof.cli import COMMANDS
from siteproof.record import samples

HEAD = {
    "siteproof": 1,
    "session": "s",
    "system": "thishost",
    "partition": "node",
    "environment": "system",
    "check": "Stream",
    "job": "1",
    "time": (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds"),
    "mode": "quick",
}
LINE = {"node": "localhost", "metric": "Stream.triad", "value": "9000", "unit": "MB/s"}


@pytest.fixture
def kept(world):
    """Writes a perflog by hand; without a wish it is a good one."""

    def write(line=None, head=None, name="s.Stream.1.jsonl", raw=None):
        folder = world.data / "perflogs/thishost/node"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(HEAD | (head or {})), raw or json.dumps(LINE | (line or {}))]
        (folder / name).write_text("\n".join(lines) + "\n")
        return folder / name

    world.keep = write
    return world


def test_each_command_has_a_help_with_an_example(world):
    for command in COMMANDS:
        done = world.inside(command, "--help")
        assert done.code == 0, command
        assert f"siteproof {command}" in done.out.split("Usage:")[1].split("\n", 2)[2]
    done = world.inside("--help")
    assert all(command in done.out for command in COMMANDS)


def test_the_version_is_that_of_the_package_also_in_a_process_of_its_own(world):
    done = world.run("siteproof", "--version")
    assert (done.code, done.said) == (0, f"siteproof, version {__version__}\n")


REFUSED = {
    ("verdict", "--system", "nowhere"): "no site 'nowhere'",
    ("verdict", "--since", "9" * 30 + "d"): "is not a valid time",
    ("why", "HERE-STREAM", "--system", "../etc"): "no site '../etc'",
}


def test_a_wrong_word_is_refused_in_one_line(kept):
    kept.keep()
    for words, told in REFUSED.items():
        assert told in kept.inside(*words).refused()


def test_verdict_and_why_answer(kept):
    kept.keep()
    assert kept.verdicts()["HERE-STREAM"] == "PASS"
    assert kept.inside("verdict").code == 3
    assert kept.inside("why", "HERE-STREAM").code == 0
    assert kept.inside("why", "localhost").code == 3
    for subject in ("HERE-STREAM", "localhost"):
        done = kept.inside("why", subject, "--json")
        read = check("why", done.out)
        assert (read["subject"], read["exit_code"]) == (subject, done.code)
        assert "HERE-STREAM" in {sample["criterion"] for sample in read["samples"]}
    assert {"not_measured"} <= {kind for kind, _ in kinds(read)}


def test_before_the_first_run_everything_is_incomplete(world):
    world.data.mkdir()
    done = world.inside("verdict")
    assert done.code == 3
    assert "no session yet that could answer a criterion" in done.out
    assert world.inside("why", "localhost").code == 3


BROKEN = [
    ({"raw": "{"}, ":2: broken line"),
    ({"raw": "\x00"}, ":2: broken line"),
    ({"line": {"value": "fast"}}, ":2: 'fast' is not a number"),
    ({"line": {"value": "1E+999999"}}, ":2: '1E+999999' is not a value that any tool prints"),
    ({"line": {"value": [1]}}, ":2: [1] is not a number"),
    ({"line": {"unit": "furlong"}}, ":2: unknown unit 'furlong'"),
    ({"line": {"unit": 5}}, ":2: unknown unit '5'"),
    ({"line": {"dims": "x"}}, ":2: 'dims' is not an object of texts"),
    ({"line": {"conditions": {"a": [1]}}}, ":2: 'conditions' is not an object of texts"),
    ({"line": {"trial": "first"}}, ":2: trial 'first' is not a whole number"),
    ({"line": {"node": 7}}, ":2: sample without node"),
    ({"line": {"status": "fine"}}, ":2: unknown status 'fine'"),
    ({"head": {"time": "noon"}}, ":1: 'noon' is not a time with its zone"),
    ({"head": {"time": "2026-11-21T00:00:00"}}, ":1: "),
    ({"head": {"time": 5}}, ":1: 'time' is not text"),
    ({"head": {"mode": ["quick"]}}, ":1: 'mode' is not text"),
    ({"head": {"conditions": []}}, ":1: 'conditions' is not an object of texts"),
    ({"head": {"provenance": {"a": 1}}}, ":1: 'provenance' is not an object of texts"),
    ({"head": {"siteproof": 2}}, ":1: written by another version"),
    ({"head": {"colour": "red"}}, ":1: unknown key 'colour'"),
]


def test_a_broken_perflog_is_named_with_its_line(kept):
    for keys, told in BROKEN:
        path = kept.keep(**keys)
        done = kept.inside("verdict")
        assert f"{path}{told}" in done.err, keys
        # Of a header nobody knows what it would have answered; a line is a mistake.
        assert done.code == (3 if told.startswith(":1:") else 2), (keys, done)
    path = kept.keep()
    path.write_text(path.read_text().replace("\n", "\n\n"))
    assert f"{path}:2: broken line" in kept.inside("verdict").refused()


def test_several_broken_perflogs_are_named_at_once(kept):
    kept.keep()
    for job in ("2", "3"):
        kept.keep(raw="{", head={"job": job}, name=f"s.Stream.{job}.jsonl")
    done = kept.inside("verdict")
    assert done.code == 2
    assert [line.split(": ")[2] for line in done.err.splitlines()] == ["broken line. Allowed"] * 2


def test_a_perflog_that_is_a_folder_is_left_out_and_named(kept):
    kept.keep()
    (kept.data / "perflogs/thishost/node/x.jsonl").mkdir()
    done = kept.inside("verdict")
    assert "left out: " in done.err and "x.jsonl: refused: it is not a regular file" in done.err
    assert done.code == 3


def test_perflogs_that_are_a_file_are_named(world):
    (world.data / "perflogs").mkdir(parents=True)
    (world.data / "perflogs/thishost").write_text("")
    assert "cannot be read: Not a directory" in world.inside("verdict").refused()


def test_a_data_folder_that_does_not_exist_is_refused(world):
    assert "SITEPROOF_DATA: " in world.inside("verdict").refused()


def test_other_files_beside_the_samples_are_left_alone(kept):
    path = kept.keep()
    (path.parent / "Stream.log").write_text("ReFrame's own")
    (path.parent / ".half.jsonl.tmp").write_text("{")
    (path.parent / ".hidden.jsonl").write_text("{")
    (path.parents[1] / "notes.jsonl").write_text("{")
    assert kept.verdicts()["HERE-STREAM"] == "PASS"


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\r\b\u202e"


def test_hostile_perflogs_print_no_control_character(kept):
    kept.keep(line={"status": "generic", "why": HOSTILE, "metric": "Stream.*"})
    kept.keep(
        line={
            "metric": "HostParameters.mismatch",
            "unit": "text",
            "value": HOSTILE,
            "dims": {"parameter": HOSTILE},
        },
        head={"check": "HostParameters", "conditions": {HOSTILE: HOSTILE}},
        name="s.HostParameters.1.jsonl",
    )
    for words in (["verdict"], ["why", "localhost"], ["why", "HERE-STREAM"], ["verdict", "--json"]):
        said = kept.inside(*words).said
        assert all(c.isprintable() or c == "\n" for c in said), words
        assert "owned" in said or words[0] == "verdict"


def test_a_terminal_that_knows_few_letters_is_no_traceback(kept):
    kept.edit("criteria", "The memory delivers", "Das Gedächtnis → liefert")
    kept.edit("criteria", "HERE-STREAM", "'HERE-→'")
    kept.keep()
    for encoding, *words in (
        ("ascii", "verdict"),
        ("ascii", "why", "HERE-→"),
        ("ascii", "why", "nobody-→"),
        ("latin-1", "lint"),
        ("latin-1", "sites"),
    ):
        done = kept.run("siteproof", *words, PYTHONIOENCODING=encoding, LC_ALL="C", PYTHONUTF8="0")
        assert done.code in (0, 2, 3), done
        assert "Traceback" not in done.said


@pytest.mark.parametrize("words", ["verdict", "verdict --json"])
def test_a_full_disk_behind_the_output_is_one_line(kept, words):
    kept.keep()
    done = kept.run("sh", "-c", f"siteproof {words} >/dev/full")
    assert "No space left on device" in done.refused()


def test_a_reader_that_goes_away_is_no_error(kept):
    kept.keep()
    done = kept.run("bash", "-c", "siteproof verdict | true")
    assert done.said == ""


def test_markup_in_values_is_text(kept):
    kept.keep(line={"status": "generic", "why": "[bold]no[/bold] [/]", "metric": "Stream.*"})
    assert "[bold]no[/bold] [/]" in kept.inside("verdict").out


def test_a_sample_survives_writing_and_reading_through_the_command(kept):
    path = kept.keep()
    found = samples.read(path)
    samples.write(kept.data / "perflogs", found[0].header, found)
    assert kept.verdicts()["HERE-STREAM"] == "PASS"
