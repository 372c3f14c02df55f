"""`siteproof export`: what is written where, whole or not at all."""

import json
import os
import xml.etree.ElementTree as ET

import pytest
import test_export_json
import test_export_junit
import test_export_openmetrics
from fleets import furnish, names, run_of
from fleets import good as fine

FORMS = ("junit", "openmetrics", "json")


@pytest.fixture
def here(world):
    made = furnish(world)
    made.ask = lambda *words, **v: made.inside(*words, "--system", "here", **v)
    made.keep(run_of({**dict.fromkeys(names(8), 100), "n004": 50}))
    return made


def test_junit_says_what_the_verdict_says(here):
    top = ET.fromstring(here.ask("export", "junit").out.encode())
    assert (top.get("tests"), top.get("failures"), top.get("errors")) == ("2", "1", "0")
    asked = ET.fromstring(here.ask("export", "junit", "--per-node").out.encode())
    assert (asked.get("tests"), asked.get("failures")) == ("10", "2")


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_replaced_as_a_whole_and_the_last_line_answers(here, form):
    file = here.folder / "out.txt"
    file.write_text("old")
    file.chmod(0o600)
    kept = file.open()
    done = here.ask("export", form, "--output", file)
    assert (done.code, done.out) == (0, f"{file}: verdict on here: 1 FAIL\n")
    assert kept.read() == "old", "who reads the old file reads it to its end"
    assert [path.name for path in here.folder.glob("*t*") if path.is_file()] == ["out.txt"]
    assert not list(here.folder.glob(".*"))
    assert file.read_text().startswith({"junit": "<?xml", "json": "{"}.get(form, "# TYPE"))
    assert file.stat().st_mode & 0o444 == 0o444, "the monitoring's user reads it"


def test_a_file_that_cannot_be_written_is_one_line(here):
    for where in (here.folder / "none" / "x", here.folder):
        assert "--output" in here.ask("export", "openmetrics", "--output", where).refused()
    line = here.run("sh", "-c", "siteproof export junit --system here >/dev/full").refused()
    assert "No space left on device" in line


def test_a_pipe_stays_a_pipe_and_a_link_a_link(here):
    pipe = here.folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    assert here.ask("export", "junit", "--output", pipe).code == 0
    assert os.read(reader, 5) == b"<?xml"
    os.close(reader)
    assert pipe.is_fifo()
    link = here.folder / "link.xml"
    link.symlink_to("real.xml")
    assert here.ask("export", "junit", "--output", link).code == 0
    assert link.is_symlink()
    assert (here.folder / "real.xml").read_text().startswith("<?xml")


def test_a_campaign_is_chosen_as_for_the_verdict(here):
    here.keep(fine(run=2, campaign="after"))
    read = json.loads(here.ask("export", "json", "--campaign", "after").out)
    assert (read["samples_of"], read["exit_code"]) == ("campaign after", 0)
    assert (
        "no sample of 'nothing'"
        in here.ask("export", "openmetrics", "--campaign", "nothing").refused()
    )


def test_letters_that_a_terminal_does_not_know_are_written_all_the_same(here):
    criteria = here.sites / "here/criteria.yaml"
    criteria.write_text(
        criteria.read_text().replace("description: d", "description: 'é→'"), encoding="utf-8"
    )
    few = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    top = ET.fromstring(here.siteproof("export", "junit", "--system", "here", **few).out.encode())
    assert "C-TRIAD: é→" in [case.get("name") for case in top.iter("testcase")]
    read = json.loads(here.ask("export", "json").out)  # which is ASCII in any case
    assert read["criteria"][0]["description"] == "é→"


def test_before_the_first_run_everything_is_written(here):
    empty = here.folder / "empty"
    empty.mkdir()
    done = here.ask("export", "openmetrics", SITEPROOF_DATA=str(empty))
    assert (done.code, done.out.splitlines()[-1]) == (0, "# EOF")
    assert 'siteproof_exit_code{system="here"} 3' in done.out


def test_what_was_really_measured_is_exported_in_each_form(good):
    done = good.reframe("-r", "-n", "Stream", "--mode", "maintenance")
    assert done.code == 0, str(done)
    read = test_export_json.check("verdict", good.siteproof("export", "json").out)
    top = test_export_junit.read(good.siteproof("export", "junit").out)
    values = test_export_openmetrics.read(good.siteproof("export", "openmetrics").out)
    (stream,) = [c for c in read["criteria"] if c["id"] == "HERE-STREAM"]
    (node,) = stream["nodes"]
    assert (stream["verdict"], node["unit"]) == ("PASS", "MB/s")
    told = test_export_junit.case(top, "HERE-STREAM").find("system-out").text
    assert f"value: {node['value']} MB/s by likwid-bench" in told
    assert test_export_openmetrics.of(
        values, "stream_triad_bytes_per_second", node="localhost"
    ) == [pytest.approx(node["number"] * 1e6)]
