"""The command: a mistake is one line and exit code 2, and nothing that is read harms a terminal."""

import json

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
    "time": "2026-11-21T00:00:00+00:00",
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


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_a_help_with_an_example(world, command):
    done = world.siteproof(command, "--help")
    assert done.code == 0
    assert f"siteproof {command}" in done.out.split("Usage:")[1].split("\n", 2)[2]


def test_the_version_is_that_of_the_package(world):
    assert world.siteproof("--version").out == f"siteproof, version {__version__}\n"


def test_the_command_alone_says_what_there_is(world):
    done = world.siteproof("--help")
    assert all(command in done.out for command in COMMANDS)


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["verdict", "--nonsense"], ["verdict", "extra"], ["why"], ["collect", "extra"]],
)
def test_wrong_usage_is_exit_code_2_without_a_traceback(world, words):
    done = world.siteproof(*words)
    assert done.code == 2
    assert "Traceback" not in done.said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verdict", "--system", "nowhere"], "no site 'nowhere'"),
        (["verdict", "--campaign", "nothing"], "--campaign: no sample of 'nothing'"),
        (["verdict", "--since", "sometime"], "--since: 'sometime' is not a valid time"),
        (["verdict", "--since", "9" * 30 + "d"], "is not a valid time"),
        (["why", "nobody"], "'nobody' is neither a criterion nor a node"),
        (["why", "HERE-STREAM", "--system", "../etc"], "no site '../etc'"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line(kept, words, told):
    kept.keep()
    assert told in kept.siteproof(*words).refused()


def test_verdict_and_why_answer(kept):
    kept.keep()
    assert kept.verdicts()["HERE-STREAM"] == "PASS"
    assert kept.siteproof("verdict").code == 3
    assert kept.siteproof("why", "HERE-STREAM").code == 0
    assert kept.siteproof("why", "localhost").code == 3
    for subject in ("HERE-STREAM", "localhost"):
        done = kept.siteproof("why", subject, "--json")
        read = check("why", done.out)
        assert (read["subject"], read["exit_code"]) == (subject, done.code)
        assert "HERE-STREAM" in {sample["criterion"] for sample in read["samples"]}
    assert {"not_measured"} <= {kind for kind, _ in kinds(read)}


def test_before_the_first_run_everything_is_incomplete(world):
    world.data.mkdir()
    done = world.siteproof("verdict")
    assert done.code == 3
    assert "no session yet that could answer a criterion" in done.out
    assert world.siteproof("why", "localhost").code == 3


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"raw": "{"}, ":2: broken line"),
        ({"raw": ""}, ""),
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
    ],
)
@pytest.mark.parametrize("words", [["verdict"], ["why", "localhost"]])
def test_a_broken_perflog_is_named_with_its_line(kept, words, keys, told):
    path = kept.keep(**keys)
    if keys == {"raw": ""}:
        path.write_text(path.read_text().replace("\n", "\n\n"))
        told = ":2: broken line"
    assert f"{path}{told}" in kept.siteproof(*words).refused()


def test_several_broken_perflogs_are_named_at_once(kept):
    kept.keep()
    for job in ("2", "3"):
        kept.keep(raw="{", head={"job": job}, name=f"s.Stream.{job}.jsonl")
    done = kept.siteproof("verdict")
    assert done.code == 2
    assert [line.split(": ")[2] for line in done.err.splitlines()] == ["broken line. Allowed"] * 2


def test_a_perflog_that_is_a_folder_is_left_out_and_named(kept):
    kept.keep()
    (kept.data / "perflogs/thishost/node/x.jsonl").mkdir()
    done = kept.siteproof("verdict")
    assert "left out: " in done.err and "x.jsonl: refused: it is not a regular file" in done.err
    assert done.code == 3


def test_perflogs_that_are_a_file_are_named(world):
    (world.data / "perflogs").mkdir(parents=True)
    (world.data / "perflogs/thishost").write_text("")
    assert "cannot be read: Not a directory" in world.siteproof("verdict").refused()


def test_a_data_folder_that_does_not_exist_is_refused(world):
    assert "SITEPROOF_DATA: " in world.siteproof("verdict").refused()


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
        said = kept.siteproof(*words).said
        assert all(c.isprintable() or c == "\n" for c in said), words
        assert "owned" in said or words[0] == "verdict"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_letters_is_no_traceback(kept, encoding):
    kept.edit("criteria", "The memory delivers", "Das Gedächtnis → liefert")
    kept.edit("criteria", "HERE-STREAM", "'HERE-→'")
    kept.keep()
    for words in (["verdict"], ["why", "HERE-→"], ["why", "nobody-→"], ["lint"], ["sites"]):
        done = kept.siteproof(*words, PYTHONIOENCODING=encoding, LC_ALL="C", PYTHONUTF8="0")
        assert done.code in (0, 2, 3), done
        assert "Traceback" not in done.said


@pytest.mark.parametrize("words", ["verdict", "verdict --json", "why localhost"])
def test_a_full_disk_behind_the_output_is_one_line(kept, words):
    kept.keep()
    done = kept.run("sh", "-c", f"siteproof {words} >/dev/full")
    assert "No space left on device" in done.refused()


@pytest.mark.parametrize("words", ["verdict", "why localhost"])
def test_a_reader_that_goes_away_is_no_error(kept, words):
    kept.keep()
    done = kept.run("bash", "-c", f"siteproof {words} | true")
    assert done.said == ""


def test_markup_in_values_is_text(kept):
    kept.keep(line={"status": "generic", "why": "[bold]no[/bold] [/]", "metric": "Stream.*"})
    assert "[bold]no[/bold] [/]" in kept.siteproof("verdict").out


def test_a_sample_survives_writing_and_reading_through_the_command(kept):
    path = kept.keep()
    found = samples.read(path)
    samples.write(kept.data / "perflogs", found[0].header, found)
    assert kept.verdicts()["HERE-STREAM"] == "PASS"
