"""What a person has shown: recorded with the file's hash, withdrawn, expired, never instead."""

import hashlib
import json

import pytest
import recomputed
from campaigns import Campaign
from click.testing import CliRunner

from siteproof import cli, files, sites
from siteproof.errors import UserError, UserErrors
from siteproof.verdict import judgement

KEY = "EXT-ASSESS-USABILITY"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("USER", "op")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.pdf").write_bytes(b"all were content")
    return tmp_path


def run(*words, system="extenci"):
    """What is printed, with the exit code; a user's mistake is 2."""
    done = CliRunner().invoke(cli.group, [*words, "--system", system], prog_name="siteproof")
    if isinstance(done.exception, UserError | UserErrors):
        return 2, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.output


def give(**changes):
    keys = {
        "file": "survey.pdf",
        "by": "J. Doe",
        "on": "2026-01-02",
        "shows": "yes",
        "note": "ten users",
    } | changes
    options = [word for key, text in keys.items() if key != "id" for word in (f"--{key}", text)]
    return run("evidence", changes.get("id", KEY), *options)


def verdict(key=KEY, again=False):
    """The criterion's answer; again: compared with what the page's program finds."""
    record = json.loads(run("verdict", "--json")[1])
    if again:
        recomputed.must_agree(judgement.judge_system("extenci"), files.perflogs())
    return next(one for one in record["criteria"] if one["id"] == key)


def test_without_evidence_it_is_pending_and_names_what_is_due():
    one = verdict(again=True)
    due = "the evidence of a person is due"
    assert (one["verdict"], one["findings"][0]["text"]) == ("PENDING", due)


def test_what_was_shown_answers_with_the_files_hash(data):
    assert give()[0] == 0
    one = verdict(again=True)
    assert (one["verdict"], one["findings"][0]["details"]["by"]) == ("PASS", "J. Doe")
    digest = hashlib.sha256((data / "survey.pdf").read_bytes()).hexdigest()
    code, text = run("why", KEY)
    assert code == 0 and "J. Doe" in text and digest[:12] in text
    assert digest in run("evidence", "--list")[1]


def test_what_was_shown_not_to_work_fails():
    give(shows="no")
    assert verdict(again=True)["verdict"] == "FAIL"


def test_a_withdrawal_has_a_reason_and_leaves_the_record(data):
    give()
    name = next(data.glob("perflogs/extenci/evidence/*.json")).stem
    assert run("evidence", "--withdraw", name)[0] == 2
    assert run("evidence", "--withdraw", name, "--note", "another system")[0] == 0
    one = verdict(again=True)
    assert one["verdict"] == "PENDING" and "withdrawn by" in one["findings"][0]["text"]
    assert len(list(data.glob("perflogs/extenci/evidence/*.json"))) == 2
    assert run("evidence", "--withdraw", name, "--note", "again")[0] == 2


def test_newer_evidence_counts_again():
    give()
    give(shows="no", on="2026-02-02")
    assert verdict()["verdict"] == "FAIL"
    give(on="2026-03-02")
    assert verdict()["verdict"] == "PASS"


def test_of_two_records_of_one_day_the_later_one_counts():
    give(shows="yes", note="first look")
    give(shows="no", note="second look")
    one = verdict()
    assert (one["verdict"], one["findings"][0]["message"]) == ("FAIL", "second look")


MISTAKES = [
    {"id": "EXT-IPERF-INT"},
    {"id": "nothing"},
    {"file": "missing.pdf"},
    {"file": "."},
    {"on": "2199-01-01"},
    {"on": "yesterday"},
    {"shows": "perhaps"},
    {"by": " "},
    {"note": "two\nlines"},
    {"by": "x" * 3000},
    {"shows": "3 GB/s"},
]


def test_a_mistake_is_one_line_and_nothing_is_recorded(data):
    for changes in MISTAKES:
        code, text = give(**changes)
        assert (code, "\n" in text.strip()) == (2, False), changes
        assert not (data / "perflogs").exists(), changes


def test_a_record_that_somebody_has_changed_is_refused(data):
    give()
    (path,) = data.glob("perflogs/extenci/evidence/*.json")
    record = json.loads(path.read_text()) | {"shows": 1}
    path.write_text(json.dumps(record))
    code, text = run("verdict")
    assert code == 2 and "shows" in text and str(path) in text


def copied(data, monkeypatch, key, keys):
    """The site with other keys of a criterion."""
    folder = data / "sites" / "extenci"
    folder.mkdir(parents=True)
    for path in (sites.folder() / "extenci").glob("*"):
        text = path.read_text().replace(f"{key}:\n", f"{key}:\n  {keys}\n")
        (folder / path.name).write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(folder.parent))


def test_evidence_expires_if_the_criterion_names_an_age(data, monkeypatch):
    copied(data, monkeypatch, KEY, "max_age: 4w")
    give()
    one = verdict(again=True)
    assert (one["verdict"], one["findings"][0]["kind"]) == ("PENDING", "too_old")


def test_no_persons_word_stands_for_what_a_check_measures(data, monkeypatch):
    copied(data, monkeypatch, "EXT-IPERF-INT", "answered_by: evidence")
    with pytest.raises(Exception, match="check TcpBandwidth answers"):
        sites.load("extenci")


def test_evidence_alone_passes_no_measured_criterion(data):
    made = Campaign(sites.load("extenci"))
    made.pairs("psc", "PathMtu.device", 9000, program="ping")
    made.write(data / "perflogs")
    give()
    assert verdict("EXT-IPERF-INT")["verdict"] == "INCOMPLETE"


# ---- a procedure, by its steps

COLUMNS = "system,step,begin,end,done"
UPGRADE = "extenci,upgrade,2026-01-02T10:00Z,2026-01-02T11:30Z,yes"
BACK = "extenci,back to 2.15,2026-01-02T12:00Z,2026-01-02T12:45Z,{}"


def steps(data, *rows):
    (data / "steps.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
    keys = ("--by", "J. Doe", "--on", "2026-01-02")
    return run("evidence", "EXT-ASSESS-MAINTAIN", "--file", "steps.csv", *keys)


@pytest.mark.parametrize(
    "done, decided, shown",
    [
        ("yes", "PASS", "steps.csv: 2 of 2 steps in 2.25 h"),
        ("no", "FAIL", "steps.csv: 1 of 2 steps in 2.25 h, not done: back to 2.15"),
    ],
)
def test_a_procedure_is_judged_by_its_recorded_steps(data, done, decided, shown):
    assert steps(data, UPGRADE, BACK.format(done))[0] == 0
    one = verdict("EXT-ASSESS-MAINTAIN", again=True)
    assert one["verdict"] == decided
    file, _, rest = shown.partition(":")
    text = one["findings"][0]["text"]
    assert file in text
    assert text.endswith(rest)


@pytest.mark.parametrize(
    "rows, why",
    [
        ([], "no step"),
        ([UPGRADE, UPGRADE], "the same as line 2"),
        ([UPGRADE.replace("extenci", "magellan")], "a step of 'magellan'"),
        ([UPGRADE.replace("T11:30", "T09:30")], "the step ends before it begins"),
        ([UPGRADE.replace("yes", "nearly")], "done"),
    ],
)
def test_a_mistake_in_the_steps_is_told_and_nothing_is_recorded(data, rows, why):
    code, text = steps(data, *rows)
    assert (code, why in text) == (2, True), text
    assert not (data / "perflogs").exists()


def test_of_a_file_without_steps_each_mistake_is_a_line(data):
    (data / "survey.bin").write_bytes(b"\xff\xfe\x00")
    for file in ("survey.pdf", "survey.bin", "missing.csv", "."):
        code, text = give(id="EXT-ASSESS-TROUBLE", file=file, shows="")
        assert (code, {line.startswith(file) for line in text.splitlines()}) == (2, {True}), text


def test_what_is_read_from_the_file_is_not_given(data):
    code, text = give(id="EXT-ASSESS-TROUBLE", shows="0 count")
    assert (code, "Evidence.undone is read from the file. Leave it out" in text) == (2, True)
