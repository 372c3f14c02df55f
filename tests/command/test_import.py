"""Published figures become samples: as printed, marked, once; and a bad file changes nothing."""

import json

import pytest

from siteproof import sites
from siteproof.compare.published import results
from siteproof.errors import UserErrors
from siteproof.record.sessions import Sessions
from siteproof.sites import manual
from siteproof.sites.site_tables import Published, period

HEAD = "system,date,campaign,metric,value,unit,statistic,node,conditions,source,note\n"
LINE = "thishost,2016-08-04,a,Stream.triad,113.1,GB/s,mean,,,Table 2,\n"


@pytest.fixture
def bring(world):
    """Imports a CSV of these lines."""
    world.data.mkdir()

    def write(*lines, head=HEAD, name="old.csv", raw=None):
        path = world.folder / name
        path.write_bytes(raw if raw is not None else (head + "".join(lines)).encode())
        return world.inside("import", path, "--apply")

    return write


def kept(world, system="thishost"):
    return Sessions(world.data / "perflogs", system).of(lambda _: True)


def files(world):
    return {p: p.read_bytes() for p in (world.data / "perflogs").rglob("*") if p.is_file()}


# ---- what a line becomes


def test_a_figure_keeps_its_digits_its_unit_its_date_and_its_source(world, bring):
    line = (
        "thishost,2016-08-04/2016-08-05,before,Stream.triad,113.10,GB/s,maximum,localhost,"
        'threads=24; program=stream,"PTI, Table 2","one, two"\n'
    )
    assert bring(line).code == 0
    (one,) = kept(world)
    assert (str(one.value), one.unit, one.node) == ("113.10", "GB/s", "localhost")
    assert one.header.campaign == "before"
    assert one.header.time == "2016-08-05T00:00:00+00:00"
    assert one.conditions == {
        "mode": "published",
        "published": "maximum",
        "threads": "24",
        "program": "stream",
    }
    assert one.header.provenance == {
        "imported": "old.csv",
        "date": "2016-08-04/2016-08-05",
        "source": "PTI, Table 2",
    }
    assert one.why == "one, two"


PERIODS = {
    "2016-08-04": ("2016-08-04", "2016-08-04"),
    "2016-02": ("2016-02-01", "2016-02-29"),
    "2010": ("2010-01-01", "2010-12-31"),
    "2016-12/2017-01-03": ("2016-12-01", "2017-01-03"),
}


def test_a_date_may_be_as_vague_as_its_source():
    found = {text: tuple(map(str, period(text))) for text in PERIODS}
    assert found == PERIODS


def test_importing_twice_changes_nothing_and_a_corrected_file_is_told(world, bring):
    other = LINE.replace("Stream.triad", "Hpl.gflops").replace("GB/s", "GFLOPS")
    assert "2 values; files of samples: 2 new" in bring(LINE, other).out
    before = files(world)
    assert "old.csv: 2 values; files of samples: 2 unchanged; next: " in bring(LINE, other).out
    assert files(world) == before
    told = bring(LINE.replace("113.1", "113.2")).out
    assert "changed: perflogs/thishost/published/20160804T000000Z-a.Stream.old.jsonl" in told
    assert "no longer in the CSV, remove it by hand: perflogs/thishost/published/" in told
    assert sorted(str(s.value) for s in kept(world)) == ["113.1", "113.2"]


def test_a_mean_and_a_maximum_of_one_day_are_two_samples(world, bring):
    assert bring(LINE, LINE.replace("mean", "maximum")).code == 0
    found = kept(world)
    assert {s.conditions["published"] for s in found} == {"mean", "maximum"}
    assert len({s.key for s in found}) == 2


def test_remarks_blank_lines_quotes_a_bom_and_any_order_of_columns(world, bring):
    text = (
        "\ufeff# by hand\r\n\r\nunit,value,metric,date,system,source,statistic\r\n"
        'GB/s,113.1,Stream.triad,2016,thishost,"Table 2,\r\nleft",one value\r\n# end\r\n'
    )
    assert bring(raw=text.encode()).code == 0
    assert kept(world)[0].header.provenance["source"] == "Table 2, left"


# ---- what is refused


BAD_LINES = [
    ([LINE.replace("113.1", "fast")], "old.csv:2: 'fast' is not a value in value"),
    ([LINE.replace("113.1", "166>")], "old.csv:2: '166>' is not a value in value"),
    ([LINE.replace("113.1", "1-2-3")], "old.csv:2: '1-2-3' is not a value in value"),
    ([LINE.replace("113.1", "nan")], "old.csv:2: 'nan' is not a value"),
    ([LINE.replace("113.1", "1e99")], "old.csv:2: '1e99' is not a value"),
    ([LINE.replace("113.1", "")], "old.csv:2: no value"),
    ([LINE.replace("GB/s", "GFLOPS")], "old.csv:2: 'GFLOPS' is not a unit of Stream.triad in unit"),
    ([LINE.replace("mean", "avg")], "old.csv:2: unknown value 'avg' in statistic. Allowed: mean"),
    (
        [LINE.replace("Stream.triad", "Stream.tirad")],
        "old.csv:2: unknown metric 'Stream.tirad' (did you mean 'Stream.triad'?)",
    ),
    ([LINE.replace("thishost", "thathost")], "old.csv:2: unknown system 'thathost'"),
    ([LINE.replace("thishost", "../../etc")], "old.csv:2: unknown system '../../etc'"),
    ([LINE.replace(",a,", ",../x,")], "old.csv:2: '../x' is not valid"),
    (
        [LINE.replace("2016-08-04", "2016-02-30")],
        "old.csv:2: '2016-02-30' is not a valid date in date",
    ),
    ([LINE.replace("2016-08-04", "2016-08-04/2016-08-01")], "ends before it begins"),
    ([LINE.replace("2016-08-04", "9999")], "lies in the future"),
    ([LINE.replace("mean,,", "mean,node9,")], "old.csv:2: unknown node 'node9' in node"),
    ([LINE.replace("mean,,,", "mean,,threads,")], "old.csv:2: 'threads' is not a condition"),
    ([LINE.replace("mean,,,", "mean,,n=1,")], "old.csv:2: unknown condition 'n'"),
    ([LINE.replace("mean,,,", "mean,,program=xhpl,")], "old.csv:2: unknown program 'xhpl'"),
    ([LINE.replace("mean,,,", "mean,,,,")], "old.csv:2: 12 cells under 11 columns"),
    ([LINE, LINE], "old.csv:3: the same as line 2"),
    ([LINE, '"open,2016'], "bad CSV: unexpected end of data"),
    ([LINE, "x\x00y\n"], "old.csv:3: a control character"),
    (["\x1b[2J" + LINE], "old.csv:2: a control character"),
    ([], "old.csv:1: no value"),
]


def test_a_bad_line_is_named_and_nothing_is_written(world, bring):
    good = LINE.replace("2016-08-04", "2015-01-01")
    for lines, told in BAD_LINES:
        done = bring(*([good] if lines else []), *lines)
        # The good line before it moves a bad one by a line.
        place = (
            told.replace(":3:", ":4:").replace("line 2", "line 3").replace(":2:", ":3:")
            if lines
            else told
        )
        assert (done.code, place in done.err) == (2, True), (place, done)
        assert "Traceback" not in done.said
        assert files(world) == {}, place


BAD_FILES = [
    (b"", "old.csv:1: no line with the names"),
    (b"\xff\xfe\x00", "old.csv:1: bytes that are not UTF-8"),
    (b"system;date;metric\n", "old.csv:1: unknown column 'system;date;metric'"),
    (HEAD.replace("value", "valeu").encode(), "unknown column 'valeu' (did you mean 'value'?)"),
    (HEAD.replace("node", "unit").encode(), "old.csv:1: column 'unit' twice"),
    (b"system,metric\n", "old.csv:1: no column 'date'"),
    (HEAD.encode() + b'"' + b"x" * 200_000, "old.csv:2: bad CSV: field larger than field limit"),
]


def test_a_file_that_is_no_table_of_figures_is_refused(world, bring):
    for raw, told in BAD_FILES:
        done = bring(raw=raw)
        assert (done.code, told in done.err) == (2, True), (told, done)
        assert files(world) == {}, told


def test_a_file_that_is_not_there_is_refused(world):
    done = world.inside("import", "nowhere.csv")
    assert (done.code, "nowhere.csv: no such file or folder" in done.err) == (2, True)
    done = world.inside("import", "--system", "thishost", "--apply")
    assert (done.code, "site thishost has no published.csv" in done.err) == (2, True)


def test_all_mistakes_of_a_file_are_told_at_once(world, bring):
    done = bring(LINE.replace("mean", "avg"), LINE.replace("113.1", "x"))
    assert len(done.err.splitlines()) == 2


# ---- what a site publishes


def test_the_published_file_of_a_site_is_part_of_lint(world):
    path = world.sites / "thishost" / Published.FILE
    path.write_text(HEAD + LINE.replace("thishost", "testbed"))
    done = world.inside("lint", "--system", "thishost")
    assert (done.code, "of 'testbed' in system" in done.out) == (2, True)
    path.write_text(HEAD + LINE)
    assert world.inside("lint", "--system", "thishost").code == 0
    world.data.mkdir()
    assert world.inside("import", "--system", "thishost", "--apply").code == 0
    assert len(kept(world)) == 1


def test_the_fullest_example_has_every_column():
    text = (sites.folder().parent / "tests/unit/sites/sites/fullest/published.csv").read_text()
    assert text.splitlines()[1].split(",") == [key.place for key in manual.keys("published.csv")]


def test_a_published_mean_answers_no_criterion_on_nodes(world, bring):
    world.site(
        criteria="HERE: {metric: Stream.triad, at_least: 1 GB/s, description: Fast, "
        "source: contract}\n"
    )
    assert bring(LINE, LINE.replace("mean,,", "one value,localhost,")).code == 0
    done = world.inside("verdict", "--campaign", "a", "--json")
    (found,) = [c for c in json.loads(done.out)["criteria"] if c["id"] == "HERE"]
    assert found["verdict"] == "INCOMPLETE"
    assert "per-node values not published" in done.out
    assert done.code == 3


def test_a_published_maximum_of_the_system_is_told_and_answers_nothing(world, bring):
    world.site(
        criteria="HERE: {metric: Ior.read_max, subject: system, at_least: 1 MB/s, "
        "description: Fast, source: contract}\n"
    )
    assert bring(LINE.replace("Stream.triad", "Ior.read_max")).code == 0
    (found,) = json.loads(world.inside("verdict", "--campaign", "a", "--json").out)["criteria"]
    (why,) = found["findings"]
    assert (found["verdict"], why["kind"], why["value"]) == ("INCOMPLETE", "published", "113.1")
    assert why["details"] == {"source": "mean", "own": 1, "keeps": "yes", "by_rounding": 0}


def test_table_2_of_the_seeds_as_printed(monkeypatch):
    """Dates, units and maxima as Table 2 of PTI-TR16-005 has them."""
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    rows = results.read_published(sites.folder() / "jetstream-tacc" / Published.FILE).values()
    tuned = {(r.campaign, r.metric): r for r in rows if r.campaign.endswith("tuning")}
    rates = [r for r in rows if "Table 2" in r.source and r.statistic != "landmark"]
    assert len(rates) == 18
    assert {r.unit for r in rates} == {"MB/s"}
    assert {r.statistic for r in rates if r.campaign.endswith("tuning")} == {"maximum"}
    assert {r.statistic for r in rates if r.date < "2016-07"} == {"mean"}
    single = [tuned[c, "IorSingle.read"] for c in ("before-tuning", "after-tuning")]
    assert single[0].date == single[1].date
    assert "the date is that of the row before tuning" in single[1].note


def test_another_system_than_that_of_the_file_is_refused(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    with pytest.raises(UserErrors, match="no value of testbed in published.csv"):
        results.read_published(sites.folder() / "jetstream-tacc" / Published.FILE, "testbed")


def test_what_jetstream_states_of_its_tuning_is_compared_by_two_commands(world):
    world.site("jetstream-tacc")
    world.data.mkdir()
    assert world.inside("import", "--system", "jetstream-tacc", "--apply").code == 0
    done = world.inside(
        "compare", "before-tuning", "after-tuning", "--system", "jetstream-tacc", "--plain"
    )
    rows = (line.split("\t") for line in done.out.splitlines())
    lines = {row[1]: " │ ".join((row[0], *row[2:7])) for row in rows}
    for metric, told in {
        "Ior.write_max": "better (one value) │ 885 │ 1253 │ MB/s │ +41.6 % │ unknown",
        "IorSingle.read": "worse (one value) │ 239 │ 95 │ MB/s │ -60.3 % │ unknown",
        "IorSingle.write": "worse (one value) │ 96 │ 68 │ MB/s │ -29.2 % │ unknown",
        "Ior.read_max": "undecidable (one value) │ 14611 │ 14217 │ MB/s │ -2.7 % │ unknown",
    }.items():
        assert told == lines[metric]
    assert done.code == 1


def test_a_figure_under_two_files_names_would_be_two_values(world, bring):
    assert bring(LINE).code == 0
    before = files(world)
    done = bring(LINE, name="copy.csv")
    assert done.code == 2
    assert "Stream.triad of a was imported before, from old.csv" in done.err
    assert files(world) == before
    assert bring(LINE.replace("113.1", "97"), name="copy.csv").code == 0
