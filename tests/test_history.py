"""History: what is below perflogs, to be asked in SQL."""

from datetime import datetime

import fleets
import years

from siteproof import history, samples


def keep(perflogs, found):
    """Write samples, one file a header; the paths."""
    heads = {s.header.session + s.header.check: s.header for s in found}.values()
    return [samples.write(perflogs, head, [s for s in found if s.header == head])
            for head in heads]


def test_it_holds_every_sample_with_its_context(tmp_path):
    keep(tmp_path, fleets.good() + [fleets.broken("n003", "timeout", run=2)])
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT count(*), sum(base) FROM samples WHERE status = 'ok'") == [
            (8, 8 * 100e6)]
        assert h.sql("SELECT node, metric, value, digits, why FROM samples "
                     "WHERE status = 'timeout'") == [("n003", "Stream.*", None, None, "because")]
        assert h.sql("SELECT time, samples FROM runs ORDER BY time") == [
            (datetime(2026, 11, 2), 8), (datetime(2026, 11, 3), 1)]
        assert h.refused == []


def test_a_broken_file_is_left_out_whole_and_named(tmp_path):
    path, = keep(tmp_path, fleets.good())
    other, = keep(tmp_path, fleets.good(run=2))
    path.write_text(path.read_text().replace('"metric"', '"metri"', 4))
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT DISTINCT file FROM samples") == [(str(other.relative_to(tmp_path)),)]
        assert len(h.refused) == 1
        assert h.refused[0].startswith(f"{path}:2: sample without metric")


def test_a_made_up_year_is_the_same_each_time_and_holds_what_was_planted(tmp_path):
    planted = {
        "steps": [years.Step("Hpl.gflops", 6, -0.5, ("n002",))],
        "gaps": [years.Gap(3, 4, ("n001",), "Stream.triad", "timeout"), years.Gap(5, 5)],
        "changes": [years.Change(6, "kernel", "6.1.0-13")], "slow": {"n003": 0.3},
    }
    for name in "ab":
        years.write(tmp_path / name, nodes=4, runs=10, **planted)
    files = sorted((tmp_path / "a").rglob("*.jsonl"))
    assert len(files) == 9 * 4  # one session is missing, of four checks
    for path in files:
        assert (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes() == path.read_bytes()
        found = samples.read(path)
        assert samples.dump(found[0].header, found) == path.read_bytes()
    with history.open_history(tmp_path / "a") as h:
        assert h.sql("SELECT count(*) FROM samples WHERE status = 'timeout'") == [(2,)]
        before, after = (h.sql(f"SELECT avg(value) FROM samples WHERE node = 'n002' AND "
                               f"metric = 'Hpl.gflops' AND time {sign} ?", [years.time_of(6)])[0][0]
                         for sign in ("<", ">="))
        assert 0.4 < after / before < 0.6
        assert h.sql("SELECT DISTINCT provenance ->> 'kernel', count(*) FROM runs GROUP BY 1 "
                     "ORDER BY 1") == [("6.1.0-12", 20), ("6.1.0-13", 16)]
        assert h.sql("SELECT count(DISTINCT series), count(DISTINCT metric) FROM samples "
                     "WHERE status = 'ok'") == [(6, 6)]
