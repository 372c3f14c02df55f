"""History: what is below perflogs, to be asked in SQL."""

from dataclasses import replace
from datetime import datetime

import fleets
import pytest
import years
from batches import columns, rows
from clone import FOREIGN

from siteproof import history
from siteproof.history import views
from siteproof.history.foreign import figures, formats
from siteproof.record import samples


def keep(perflogs, found):
    """Write samples, one file a header; the paths."""
    heads = {s.header.session + s.header.check: s.header for s in found}.values()
    return [samples.write(perflogs, head, [s for s in found if s.header == head]) for head in heads]


def test_it_holds_every_sample_with_its_context(tmp_path):
    keep(tmp_path, fleets.good() + [fleets.broken("n003", "timeout", run=2)])
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT count(*), sum(base) FROM samples WHERE status = 'ok'") == [
            (8, 8 * 100e6)
        ]
        assert h.sql(
            "SELECT node, metric, value, digits, why FROM samples WHERE status = 'timeout'"
        ) == [("n003", "Stream.*", None, None, "because")]
        assert h.sql("SELECT time, samples FROM runs ORDER BY time") == [
            (datetime(2026, 11, 2), 8),
            (datetime(2026, 11, 3), 1),
        ]
        assert h.refused == []


def test_a_broken_file_is_left_out_whole_and_named(tmp_path):
    (path,) = keep(tmp_path, fleets.good())
    (other,) = keep(tmp_path, fleets.good(run=2))
    path.write_text(path.read_text().replace('"metric"', '"metri"', 4))
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT DISTINCT file FROM samples") == [(str(other.relative_to(tmp_path)),)]
        assert len(h.refused) == 1
        assert h.refused[0].startswith(f"{path}:2: sample without node or metric")


def test_a_made_up_year_is_the_same_each_time_and_holds_what_was_planted(tmp_path):
    planted = {
        "steps": [years.Step("Hpl.gflops", 6, -0.5, ("n002",))],
        "gaps": [years.Gap(3, 4, ("n001",), "Stream.triad", "timeout"), years.Gap(5, 5)],
        "changes": [years.Change(6, "kernel", "6.1.0-13")],
        "slow": {"n003": 0.3},
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
        before, after = (
            h.sql(
                f"SELECT avg(value) FROM samples WHERE node = 'n002' AND "
                f"metric = 'Hpl.gflops' AND time {sign} ?",
                [years.time_of(6)],
            )[0][0]
            for sign in ("<", ">=")
        )
        assert 0.4 < after / before < 0.6
        assert h.sql(
            "SELECT DISTINCT provenance ->> 'kernel', count(*) FROM runs GROUP BY 1 ORDER BY 1"
        ) == [("6.1.0-12", 20), ("6.1.0-13", 16)]
        assert h.sql(
            "SELECT count(DISTINCT series), count(DISTINCT metric) FROM samples WHERE status = 'ok'"
        ) == [(6, 6)]


def foreign_file(perflogs, name="StreamTest.log"):
    """A recorded perflog of plain ReFrame, as `siteproof import` keeps it."""
    path = perflogs / "here" / "imported" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((FOREIGN / "4.10-default" / "StreamTest.log").read_bytes())
    return path


def test_what_plain_reframe_has_measured_stands_beside_our_own(tmp_path):
    keep(tmp_path, fleets.good())
    path = foreign_file(tmp_path)
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT source, count(*) FROM samples GROUP BY ALL ORDER BY ALL") == [
            ("reframe", 4),
            ("siteproof", 8),
        ]
        held = columns(rows(path, site="here", name="here/imported/StreamTest.log"))
        for column in (c.name for c in views.SAMPLES):
            found = h.sql(f"SELECT {column} FROM samples WHERE source = 'reframe'")
            expected = (
                held[column].astype("datetime64[us]").tolist()
                if column == "time"
                else (held[column].tolist())
            )
            assert sorted(str(value) for (value,) in found) == sorted(map(str, expected)), column


@pytest.mark.parametrize("size", [1, formats._TOGETHER])
def test_a_foreign_file_that_breaks_off_is_left_out_whole(tmp_path, monkeypatch, size):
    keep(tmp_path, fleets.good())
    path = foreign_file(tmp_path, "a.log")
    foreign_file(tmp_path, "b.log")
    whole = figures.content

    def breaks_off(file, *limit):
        if file == path:
            raise OSError(5, "Input/output error")
        return whole(file, *limit)

    monkeypatch.setattr(figures, "content", breaks_off)
    monkeypatch.setattr(formats, "_TOGETHER", size)
    with history.open_history(tmp_path) as h:
        assert h.refused == [f"{path}: cannot be read: Input/output error"]
        assert h.sql("SELECT DISTINCT file FROM samples WHERE source = 'reframe'") == [
            ("here/imported/b.log",)
        ]
        assert h.sql("SELECT count(*) FROM runs WHERE file LIKE '%a.log'") == [(0,)]


def test_published_figures_are_told_apart(tmp_path):
    keep(tmp_path, fleets.run_of({"": 41.5}, mode="published", partition="published"))
    with history.open_history(tmp_path) as h:
        assert h.sql("SELECT source, mode, value FROM samples") == [
            ("published", "published", 41.5)
        ]


def series_of(tmp_path, *samples_):
    """The numbers of the samples' series, in the order of their nodes."""
    keep(
        tmp_path,
        [
            replace(s, header=replace(s.header, session=f"s{i}"), node=f"n{i:02}")
            for i, s in enumerate(samples_)
        ],
    )
    with history.open_history(tmp_path) as h:
        return [number for (number,) in h.sql("SELECT series FROM samples ORDER BY node")]


def test_a_series_is_what_may_be_compared(tmp_path):
    (one,) = fleets.run_of({"n1": 1})
    heads = [
        replace(one.header, **change)
        for change in (
            {"mode": "acceptance"},
            {"time": "2026-12-01T00:00:00+00:00", "campaign": "c"},
            {"mode": "quick"},
            {"environment": "mkl"},
            {"conditions": {"program": "likwid-bench"}},
        )
    ]
    numbers = series_of(
        tmp_path,
        one,
        *(replace(one, header=head) for head in heads),
        replace(one, dims={"peer": "n2"}, trial=3),
        replace(one, dims={"size": "8"}),
        replace(one, metric="Stream.copy"),
        replace(one, own_conditions={"swap": "on"}),
        replace(one, own_conditions={"blas_warning": "slow", "memory_share": "0.8"}),
    )
    same = [numbers[i] for i in (0, 1, 2, 6, 10)]
    assert len(set(same)) == 1
    assert len(set(numbers)) == len(numbers) - 4


def test_a_slow_query_prints_no_bar_into_the_answer():
    with history.connect() as connection:
        assert connection.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [
            (False,)
        ]
