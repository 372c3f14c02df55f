"""The fast way into the history: it accepts only what samples.read accepts, and as it reads it."""

import fleets
import pytest
import years
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from siteproof import history
from siteproof.errors import UserError
from siteproof.history import refresh, tables, views
from siteproof.record import samples
from siteproof.record.samples import Sample

ONE = fleets.header(1, conditions={"program": "stream", "n": "1000"}, provenance={"suite": "1"})
PLAIN = st.text(
    st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), max_size=6
)
ODD = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ['a"b', "a\\b", "é", "\x1b[0m", "\x7f", "\u2028"]
)
NUMBERS = st.decimals(-(10**9), 10**9, places=3).map(str)
ODD_NUMBERS = st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?", fullmatch=True)
UNITS = st.sampled_from(["MB/s", "MiB/s", "GFLOPS", "s", "us", "%", "count"])


def lines(texts, numbers):
    """Samples as checks make them, good and bad ones."""
    objects = st.dictionaries(texts, texts, max_size=2) | st.just({"peer": "n2", "n": "1001"})
    more = {"trial": st.integers(0, 3), "dims": objects, "own_conditions": objects}
    return st.lists(
        st.one_of(
            st.builds(Sample, st.just(ONE), texts, texts, numbers, UNITS, **more),
            st.builds(Sample, st.just(ONE), texts, texts, texts, st.just("text"), **more),
            st.builds(
                Sample,
                st.just(ONE),
                texts,
                texts,
                why=texts,
                status=st.sampled_from(samples.STATUSES[1:]),
            ),
        ),
        max_size=4,
    )


PIECES = st.sampled_from(
    [
        *('"', "\\", "\n", "\r", "{", "}", ",", ":", " ", "0", "-", "e", "E", ".", "1e5"),
        *("NaN", "Infinity", "null", "true", '"unit":"MB/s"', '"node":"x",', '"status":"ok"'),
        *('"trial":1', '"trial":true', '"dims":{"a":"b"}', '"dims":{"a":"b","a":"c"}'),
        *('"conditions":{}', "é", "\0", "\x7f", "\u2028", "0.0000001", "00", "+1", "1_0", "٣"),
        *('"value":1,', '"x":[],', "\ud800"),
    ]
)


@pytest.fixture(scope="module")
def connection():
    """A database, as it is before anything has been read."""
    with history.connect() as made:
        refresh.prepare(made)
        tables.clear(made)
        yield made


def table(connection, table, query=None):
    told = views.names(table)
    return sorted(
        connection.execute(
            f"SELECT {told} FROM ({query or f'SELECT * FROM new_{table}'})"
        ).fetchall(),
        key=str,
    )


def read(connection, paths, is_fast):
    """What a reading of some files gives, by the way that is asked for."""
    listed = [
        refresh.Listed(path, f"here/compute/{path.name}", turn)
        for turn, path in enumerate(paths, start=1)
    ]
    hold = refresh.plain_body if is_fast else (lambda data: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh, "plain_body", hold)
        patch.setattr(samples, "must_lie_at", lambda _path, _header: None)
        query, refused = refresh.read(connection, listed)
    return [
        table(connection, "samples", query),
        table(connection, "runs"),
        set(table(connection, "contexts")),
        refused,
    ]


def passes(connection, path):
    """Whether the fast way takes a file."""
    try:
        text, head = refresh.plain_body(path.read_bytes()), samples.read_header(path)
    except UserError:
        return False
    return text is not None and refresh.parse(connection, {1: head}, {1: text}) != {}


EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), PIECES), max_size=3)
FILES = st.tuples(lines(PLAIN, NUMBERS) | lines(ODD, ODD_NUMBERS), st.just([]) | EDITS)
EDGES = [
    ([], [(1.0, 0, "\n")]),
    *(
        ([Sample(ONE, "n1", "S.t", digits, "s")], [])
        for digits in ("0.0000001", "0.0000000", "-0.000001", "-0", "1E+5", "1e5", "0012")
    ),
    ([Sample(ONE, "n1", "S.t", "12.50", "s"), Sample(ONE, "n2", "S.t", "7", "s")], []),
]


@pytest.mark.deep
@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(FILES, min_size=8, max_size=8))
@example(EDGES)
def test_both_ways_in_give_the_same_rows_and_refuse_the_same_files(connection, tmp_path, files):
    paths = [tmp_path / f"x{number}" for number in range(len(files))]
    for path, (found, edits) in zip(paths, files, strict=True):
        data = samples.dump(ONE, found).decode()
        for place, length, piece in edits:
            at = round(place * len(data))
            data = data[:at] + piece + data[at + length :]
        path.write_bytes(data.encode("utf-8", "surrogatepass"))
    one, other = read(connection, paths, True), read(connection, paths, False)
    assert one == other
    count, refused = 0, {}
    for path in paths:
        try:
            count += len(samples.read(path))
        except UserError as error:
            refused[f"here/compute/{path.name}"] = [str(error)]
    assert len(one[0]) == count
    assert one[3] == refused
    event(f"{sum(passes(connection, path) for path in paths[:2])} of 2 went the fast way")


@pytest.mark.deep
def test_what_checks_write_goes_the_fast_way(connection, tmp_path):
    years.write(
        tmp_path,
        nodes=3,
        runs=2,
        metrics=years.ALL,
        gaps=[years.Gap(1, 1, ("n002",), status="timeout")],
    )
    paths = sorted(tmp_path.rglob("*.jsonl"))
    assert len(paths) == 14
    assert all(passes(connection, path) for path in paths)
