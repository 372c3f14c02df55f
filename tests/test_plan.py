"""What a run will cost, told before it starts."""

from pathlib import Path

from click.testing import CliRunner

from siteproof.cli.plan import plan

CLONE = Path(__file__).parents[1]


def planned(*words, monkeypatch, tmp_path):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    monkeypatch.setenv("RFM_CONFIG_FILES", str(CLONE / "reframe_settings.py"))
    done = CliRunner().invoke(plan, words)
    return done, " ".join(done.output.split())


def test_320_nodes_are_five_jobs_a_check_with_their_node_hours(monkeypatch, tmp_path):
    done, told = planned("--system", "jetstream-iu", "-n", "Stream", monkeypatch=monkeypatch,
                         tmp_path=tmp_path)
    assert done.exit_code == 0, done.output
    assert "5 jobs on 320 nodes, at most 53.3 node-hours, 0 GB" in told
    assert "iu-c[257-320]" in told
    assert str(tmp_path) in done.output.replace("\n", "")


def test_nothing_is_made_or_run(monkeypatch, tmp_path):
    planned("--system", "testbed", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_reframe_refuses_is_told_in_one_line(monkeypatch, tmp_path):
    done, _ = planned("--mode", "fast", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "unknown mode 'fast'" in str(done.exception)


def test_a_plan_without_a_check_is_a_mistake(monkeypatch, tmp_path):
    done, _ = planned("-n", "Nothing", monkeypatch=monkeypatch, tmp_path=tmp_path)
    assert "no check is selected" in str(done.exception)


def test_a_check_of_pairs_is_one_job_on_both_sides_of_its_link(monkeypatch, tmp_path):
    done, told = planned("--system", "testbed", "-n", "TcpBandwidth", monkeypatch=monkeypatch,
                         tmp_path=tmp_path)
    assert done.exit_code == 0, done.output
    assert "1 jobs on 8 nodes" in told
