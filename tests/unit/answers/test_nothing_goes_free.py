"""No sick node goes free by a gap between two rules: what every command says of n003 by default."""

import codecs
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import fleets
import pytest
from asked import ask
from clone import TOP
from fleets import names, run_of
from rows import rows

from siteproof import sites
from siteproof.checks import missing
from siteproof.record import samples
from siteproof.record.samples import Sample
from siteproof.verdict.judgement import judge_system

EIGHT = "n[001-008]"
EVERYBODY = tuple(names(8))
OTHERS = [name for name in names(8) if name != "n003"]
FREE, LOST = ((0, 0, 0), "OK"), ((3, 3, 1), "UNTESTED")


class Here:
    """Eight nodes and a criterion on Stream.triad; a session a day, the first 29 days ago."""

    def __init__(self, folder, monkeypatch):
        self.perflogs = folder / "perflogs"
        monkeypatch.setenv("SITEPROOF_DATA", str(folder))
        fleets.load(folder / "sites", monkeypatch, criteria=fleets.CRITERIA)
        begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=30)
        monkeypatch.setattr(fleets, "START", begin)

    def keep(self, found):
        """Write what one job measured; its file."""
        return samples.write(self.perflogs, found[0].header, found)

    def passed(self, run, nodes=EVERYBODY, expected=EIGHT, **keys):
        return self.keep(run_of(dict.fromkeys(nodes, 100), run, expected=expected, **keys))

    def failed(self, run, status, check="Stream", **keys):
        """n003 fails in a job of all; the others have a good value."""
        head = fleets.header(run, check, expected=EIGHT, **keys)
        metric = {"Stream": "Stream.triad", "Hpl": "Hpl.gflops"}.get(check, "Health.problems")
        unit = {"Stream": "MB/s", "Hpl": "GFLOPS"}.get(check, "count")
        value = Decimal(100) if unit != "count" else Decimal(0)
        good = [Sample(head, node, metric, value, unit) for node in OTHERS]
        return self.keep([*good, Sample(head, "n003", f"{check}.*", status=status, why="because")])

    def codes(self, *words):
        """The exit codes of verdict, nodes and gate."""
        return tuple(int(ask(one, "--json", *words)[0]) for one in ("verdict", "nodes", "gate"))

    def says(self, *words):
        """Those, and the state of n003."""
        codes = self.codes(*words)
        text = ask("nodes", "--json", *words)[1]
        found = json.loads(text[text.index("{") :])  # what was left out is named before it
        return codes, next(one["state"] for one in found["nodes"] if one["node"] == "n003")


# ---- the newest attempt of each check decides, whatever a criterion asks

STATUSES = ("invalid", "checksum", "timeout", "parse", "killed", "generic", "node_lost")
MODES = ("quick", "maintenance", "acceptance")


@rows(
    "check, status, mode",
    [("Hpl", status, "maintenance") for status in STATUSES]
    + [("Health", "timeout", mode) for mode in MODES]
    + [("Stream", "invalid", "quick"), ("Stream", "timeout", "quick")],
)
@pytest.mark.deep
def test_a_newer_failure_keeps_a_node_out_whichever_check_or_mode(
    tmp_path, monkeypatch, check, status, mode
):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    assert here.says() == FREE
    here.failed(3, status, check, mode=mode)
    code = 3 if status == "node_lost" else 1
    assert here.says() == ((code, 1, 1), "FAILED")
    _, text = ask("verdict")
    assert "n003" in text
    assert check in text.splitlines()[-1]


@rows(
    "failed, passed, state",
    [
        ("quick", "quick", "OK"),
        ("quick", "acceptance", "OK"),
        ("maintenance", "quick", "FAILED"),
        ("acceptance", "maintenance", "FAILED"),
        ("acceptance", "acceptance", "OK"),
    ],
)
def test_a_success_in_the_same_or_a_stricter_mode_clears_a_failure(
    tmp_path, monkeypatch, failed, passed, state
):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(2, "timeout", mode=failed)
    here.passed(3, mode=passed)
    assert here.says()[1] == state


def test_what_takes_nothing_back(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(2, "interrupted", "Hpl")
    head = fleets.header(3, "Hpl", expected=EIGHT)
    here.keep([Sample(head, n, "Hpl.*", status="tool_missing", why="no") for n in EVERYBODY])
    assert here.says() == FREE
    here.failed(4, "timeout", "Hpl", environment="gone")
    assert here.says() == FREE
    here.failed(5, "timeout", "NoSuchCheck")  # which no plan contains any more
    assert here.says() == FREE
    assert "NoSuchCheck: has results here, but is in no catalogue" in " ".join(
        ask("verdict")[1].split()
    )


@rows(
    "check, status, state",
    [
        ("Stream", "timeout", "UNTESTED"),
        ("Hpl", "parse", "UNTESTED"),
        ("Health", "generic", "UNTESTED"),
        ("Hpl", "invalid", "FAILED"),  # a wrong answer is a node's, whoever else gives one
    ],
)
@pytest.mark.deep
def test_what_all_nodes_of_a_job_share_is_the_error_of_the_check(
    tmp_path, monkeypatch, check, status, state
):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    head = fleets.header(2, check, expected=EIGHT)
    here.keep([Sample(head, n, f"{check}.*", status=status, why="because") for n in EVERYBODY])
    assert here.says() == ((1, 3 if state == "UNTESTED" else 1, 1), state)
    assert " ".join(ask("verdict")[1].split()).count("because") == 1
    head = fleets.header(3, check, expected="n[001-002]")  # two of them, again
    here.keep(
        [Sample(head, n, f"{check}.*", status=status, why="because") for n in ("n001", "n002")]
    )
    assert here.says()[1] == state


@rows("check", ["Stream", "Hpl", "Health"])
def test_what_is_missing_is_also_what_failed_whatever_criteria_require(
    tmp_path, monkeypatch, check
):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(2, "timeout", check)
    now = SimpleNamespace(campaign="", name="other")
    monkeypatch.setattr(missing.session, "current", lambda: now)

    def nodes(check):
        missing._sessions.cache_clear()
        site = sites.load("here")
        return missing.nodes(site, list(site.system.nodes), missing.Planned(check))

    assert nodes(check) == {"n003"}
    assert nodes("DataIntegrity") == set()
    missing._sessions.cache_clear()


@rows("check", ["Stream", "Hpl", "Health"])
def test_a_program_that_one_node_of_a_job_lacks_is_a_failure_of_that_node(
    tmp_path, monkeypatch, check
):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(2, "tool_missing", check)
    assert here.says() == ((1, 1, 1), "FAILED")
    assert "on others of its job" in " ".join(ask("why", "n003")[1].split())


def test_two_checks_of_one_session_and_job_number_are_two(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(1, "timeout", "Hpl")
    assert here.says() == ((1, 1, 1), "FAILED")


def test_a_failure_of_one_value_is_not_hidden_by_a_good_one_of_its_job(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    found = run_of(dict.fromkeys(EVERYBODY, 100), 1, expected=EIGHT)
    here.keep([*found, Sample(found[0].header, "n003", "Stream.copy", status="invalid", why="no")])
    assert here.says() == ((1, 1, 1), "FAILED")


def test_a_failure_after_a_campaign_stops_the_gate_of_that_campaign(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1, campaign="winter")
    here.failed(3, "invalid", "Hpl")
    assert here.says("--campaign", "winter") == ((0, 0, 1), "OK")
    assert "n003" in ask("gate", "--campaign", "winter")[1]


@pytest.mark.deep
def test_a_node_that_fails_now_and_then_is_the_same_with_and_without_a_campaign(
    tmp_path, monkeypatch
):
    for number, status in enumerate(("node_lost", "timeout", "killed", "invalid")):
        (folder := tmp_path / str(number)).mkdir()
        here = Here(folder, monkeypatch)
        for run in range(1, 20):
            if run % 2:
                here.failed(run, status, campaign="winter")
            else:
                here.passed(run, campaign="winter")
        here.passed(20, campaign="winter")
        expected = ((0, 1, 1), "FLAPPING")
        assert (here.says(), here.says("--campaign", "winter")) == (expected, expected), status


# ---- what is lost is not the older answer


def bad_byte(data):
    return data[:20] + b"\xff" + data[21:]


HEADER_DAMAGES = {
    "a bad byte in the header": bad_byte,
    "emptied": lambda data: b"",
    "a byte order mark": lambda data: codecs.BOM_UTF8 + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "NUL": lambda data: b"\0" * len(data),
    "cut within the header": lambda data: data[:30],
    "of another session": lambda data: data.replace(b'"s0002"', b'"s0009"'),
}
LINE_DAMAGES = {
    "cut at the end of a line": lambda data: b"\n".join(data.split(b"\n")[:3]) + b"\n",
    "the line of a node is gone": lambda data: without(data, b"n003"),
    "its metric is misspelt": lambda data: data.replace(
        b'n003","metric":"Stream.', b'n003","metric":"Straem.'
    ),
    "its key node stands twice": lambda data: data.replace(
        b'"node":"n003"', b'"node":"n003","node":"n004"'
    ),
}


def page_agrees(folder):
    """A page of what is judged, and what the program that it carries says of it."""
    page = folder / "page.html"
    assert ask("report", "--output", str(page))[0] == 0
    script = TOP / "siteproof/report/recompute.py"
    done = subprocess.run([sys.executable, script, page], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def without(data, text):
    head, *lines = data.split(b"\n")
    return b"\n".join([head, *(line for line in lines if text not in line)])


@rows("name", [*HEADER_DAMAGES, *LINE_DAMAGES])
@pytest.mark.deep
def test_what_a_damaged_record_could_have_answered_is_lost(tmp_path, monkeypatch, name):
    damage = (HEADER_DAMAGES | LINE_DAMAGES)[name]
    for status in ("", "invalid"):
        (folder := tmp_path / (status or "ok")).mkdir()
        here = Here(folder, monkeypatch)
        here.passed(1)
        path = here.failed(2, status) if status else here.passed(2)
        here.passed(3, nodes=("n001", "n002"), expected="n[001-002]")  # a retest of two others
        path.write_bytes(damage(path.read_bytes()))
        codes, state = here.says()
        if status:  # where the line can be read, it counts for its check or node
            assert 0 not in codes and state in ("UNTESTED", "FAILED"), name
        else:
            assert (codes, state) == LOST, name
            assert "lost" in ask("verdict")[1], name
        here.passed(4)
        assert here.says()[1] == "OK", (name, status)


@rows("name", [*HEADER_DAMAGES, *LINE_DAMAGES])
@pytest.mark.deep
def test_a_record_that_newer_ones_replace_is_no_loss(tmp_path, monkeypatch, name):
    here = Here(tmp_path, monkeypatch)
    path = here.passed(1)
    here.passed(2)
    path.write_bytes((HEADER_DAMAGES | LINE_DAMAGES)[name](path.read_bytes()))
    assert here.says()[1] == "OK"


@rows("name", [*HEADER_DAMAGES, *LINE_DAMAGES])
@pytest.mark.deep
def test_what_is_lost_of_a_check_that_no_criterion_names_is_lost_too(tmp_path, monkeypatch, name):
    for earlier in (False, True):  # without and with a result that can be read
        (folder := tmp_path / str(earlier)).mkdir()
        here = Here(folder, monkeypatch)
        here.passed(1)
        if earlier:
            here.failed(2, "interrupted", "Hpl")
        path = here.failed(3, "invalid", "Hpl", session="s0002")
        path.write_bytes((HEADER_DAMAGES | LINE_DAMAGES)[name](path.read_bytes()))
        codes, state = here.says()
        assert 0 not in codes and state in ("UNTESTED", "FAILED"), (name, earlier)


@rows("check, moved", [("Stream", False), ("Hpl", False), ("Stream", True), ("Hpl", True)])
@pytest.mark.deep
def test_what_is_lost_has_no_time_no_waiver_and_an_honest_page(tmp_path, monkeypatch, check, moved):
    here = Here(tmp_path, monkeypatch)
    here.passed(0)
    here.passed(1)
    path = here.failed(2, "timeout", check)
    here.passed(3, nodes=("n001", "n002"), expected="n[001-002]")
    if moved:
        path.rename(path.with_name(path.name.replace(".1.", ".77.")))
    else:
        path.write_bytes(bad_byte(path.read_bytes()))
    assert here.says() == LOST
    text = ask("verdict")[1]
    heading = text.splitlines()[1]
    assert fleets.header(3).time[:10] in heading and "1970" not in text, heading
    waiver = "W: {nodes: n003, waives: all, problem: p, owner: o, expires: 2199-01-01}\n"
    (tmp_path / "sites/here/waivers.yaml").write_text(waiver)
    assert here.says() == LOST
    agrees, text = page_agrees(tmp_path)
    assert agrees, text


@pytest.mark.deep
def test_a_page_with_a_check_that_failed_besides_is_honest(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    here.failed(2, "timeout", "Hpl")
    agrees, text = page_agrees(tmp_path)
    assert agrees, text


def test_a_session_of_another_check_is_not_taken_for_one_that_answers(tmp_path, monkeypatch):
    two = fleets.CRITERIA + fleets.CRITERIA.replace("C-TRIAD", "C-HPL").replace(
        "Stream.triad, at_least: 60 MB/s", "Hpl.gflops, at_least: 1 GFLOPS"
    )
    here = Here(tmp_path, monkeypatch)
    (tmp_path / "sites/here/criteria.yaml").write_text(two)
    here.passed(1)
    for run in (2, 3, 4):  # of which n003 has no Stream
        here.passed(run, nodes=OTHERS, expected="n[001-002,004-008]")
        head = fleets.header(run, "Hpl", expected=EIGHT, conditions={"program": "xhpl"})
        here.keep([Sample(head, n, "Hpl.gflops", Decimal(9), "GFLOPS") for n in EVERYBODY])
    assert judge_system("here").chosen == "the newest answers, of session s0004 and session s0001"


def test_a_copy_beside_its_file_is_no_loss_and_a_moved_file_is_one(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    path = here.passed(2)
    copy = path.with_name("s0002.Stream.1 (copy).jsonl")
    copy.write_bytes(path.read_bytes())
    assert here.says()[1] == "OK"
    path.unlink()
    assert here.says()[1] == "UNTESTED"


@rows("name", [*HEADER_DAMAGES, "cut at the end of a line", "the line of a node is gone", "broken"])
@pytest.mark.deep
def test_a_person_ends_for_good_what_is_lost(tmp_path, monkeypatch, name):
    here = Here(tmp_path, monkeypatch)
    here.passed(1)
    path = here.failed(2, "timeout")
    give_up = ("collect", "--discard", str(path), "--by", "ada")
    assert ask(*give_up, "--why", "x")[0] == 2  # nothing is lost
    good = path.read_bytes()
    damages = HEADER_DAMAGES | LINE_DAMAGES | {"broken": lambda data: data + b"{\n"}
    path.write_bytes(damages[name](good))
    assert here.codes()[0] in (2, 3)
    assert ask(*give_up)[0] == 2  # without a reason
    assert ask(*give_up, "--why", "power cut") == (
        0,
        f"discarded: perflogs/{path.relative_to(here.perflogs)}\n",
    )
    assert here.says() == FREE, name
    if name not in LINE_DAMAGES:
        assert "discarded by ada: power cut" in " ".join(ask("verdict")[1].split())
    path.write_bytes(good)  # from a backup: it can be read, and counts
    assert here.says()[1] == "FAILED"


@rows("folder, commands", [("accepted", ["verdict"]), ("repairs", ["nodes"]), ("trend", ["nodes"])])
@pytest.mark.deep
def test_a_broken_record_of_a_person_stops_no_answer(tmp_path, monkeypatch, folder, commands):
    here = Here(tmp_path, monkeypatch)
    for run in range(12):
        here.passed(run)
    here.keep(run_of(dict.fromkeys(EVERYBODY, 100) | {"n003": 50}, 12, expected=EIGHT))
    before = here.says()
    assert before == ((1, 1, 1), "FAILED")
    (here.perflogs / "here" / folder).mkdir()
    (here.perflogs / "here" / folder / "20251130T100000.000000Z.json").write_text("{")
    assert here.says() == before
    for command in commands:
        text = " ".join(ask(command)[1].split())
        assert "cannot be read, so it does not count" in text, text


def test_one_broken_line_stays_a_mistake_that_is_named(tmp_path, monkeypatch):
    here = Here(tmp_path, monkeypatch)
    path = here.passed(1)
    path.write_bytes(path.read_bytes().replace(b'"unit"', b'"un'))
    code, text = ask("verdict")
    assert (code, path.name in text) == (2, True)
