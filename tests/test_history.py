"""History: what is below perflogs, to be asked in SQL."""

from datetime import datetime

import fleets

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
