"""`siteproof history`: what it says, what it answers, what it writes, and what it refuses."""

import csv
import json

import duckdb
import fleets
import pytest
import years
from click.testing import CliRunner

from siteproof.cli.history import history as command
from siteproof.errors import UserError
from siteproof.history import extract, open_history, views

HOSTILE = '=HYPERLINK("x")\x1b[31m'


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two weeks of twenty nodes, which no test changes."""
    folder = tmp_path_factory.mktemp("data")
    write(folder)
    return folder


def write(folder):
    years.write(
        folder / "perflogs",
        nodes=20,
        runs=14,
        metrics=years.ORDINARY[:2],
        steps=[years.Step("Stream.triad", 9, -0.2, ("n017",))],
        changes=[years.Change(9, "kernel", "6.1.0-13")],
        campaigns={13: "window"},
    )


def use(folder, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(folder))
    monkeypatch.setenv("SITEPROOF_CACHE", str(folder / "cache"))
    return folder


@pytest.fixture
def data(made, monkeypatch):
    """The common folder in use."""
    return use(made, monkeypatch)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the test's own in use."""
    write(tmp_path)
    return use(tmp_path, monkeypatch)


def run(*words):
    """Output, and exit code or what was refused."""
    done = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=True)
    if isinstance(done.exception, UserError):
        return str(done.exception), 2
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output, done.exit_code


def answer(query):
    out, code = run("--sql", query, "--json")
    assert code == 0, out
    return json.loads(out)


def test_it_says_what_is_there(data):
    out, code = run()
    assert code == 0
    assert "here" in out
    assert "2025-11-21" in out
    assert "2025-12-04" in out
    store, last = out.splitlines()[-2:]
    assert store.startswith("store: " + str(data / "cache"))
    assert last.startswith("history: 560 samples in 14 files, 0 refused; next: ")
    found = json.loads(run("--json")[0])
    assert found["systems"] == [
        {
            "system": "here",
            "source": "siteproof",
            "files": 14,
            "samples": 560,
            "failed": 0,
            "nodes": 20,
            "metrics": 2,
            "first": "2025-11-21",
            "last": "2025-12-04",
        }
    ]


def test_without_any_sample_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    told, code = run()
    last = "history: 0 samples in 0 files, 0 refused; next: siteproof history --columns\n"
    assert (told.splitlines(keepends=True)[-1], code) == (last, 0)


def test_a_refused_file_is_named_and_the_exit_code_says_so(own):
    path = own / "perflogs/here/compute/bad.jsonl"
    path.write_text("?\n")
    for words in ((), ("--rebuild",), ("--sql", "SELECT 1"), ("--export", own / "x.csv")):
        out, code = run(*words)
        assert code == 3
        assert f"refused: {path}:1: broken line" in out
    assert json.loads(run("--json")[0])["refused"][0].startswith(f"{path}:1")


def test_the_examples_of_the_help_answer(data):
    text = CliRunner().invoke(command, ["--help"]).output.replace("\n  ", "\n")
    for question in views.QUESTIONS:
        assert question.sql in text, question.title
        assert answer(question.sql.replace(views.SINCE, "2025-11-30")), question.title


def test_the_examples_find_what_was_planted(data):
    kernels = answer(views.KERNEL.sql)
    assert [(k["kernel"], k["first"][:10]) for k in kernels] == [
        ("6.1.0-12", "2025-11-21"),
        ("6.1.0-13", "2025-11-30"),
    ]
    worst = answer(views.CHANGED.sql.replace(views.SINCE, "2025-11-30"))[0]
    assert (worst["metric"], worst["node"]) == ("Stream.triad", "n017")
    assert -0.23 < worst["change"] < -0.17
    today = answer(views.TODAY.sql)[0]
    assert (today["metric"], today["node"]) == ("Stream.triad", "n017")
    assert len(answer(views.HISTORY.sql)) == 28


NO_ANSWER = [
    ("SELEC 1", "syntax error"),
    ("SELECT nope FROM samples", '"nope" not found'),
    ("SELECT * FROM nope", "nope does not exist"),
    ("", "not a single query"),
    ("SELECT 1; SELECT 2", "not a single query"),
    ("DROP VIEW samples", "not a single query"),
    ("COPY (SELECT 1) TO '/tmp/x'", "not a single query"),
    ("EXPLAIN SELECT 1", "not a single query"),
    ("SELECT now() AS x", "the column x has a zone. Convert it to UTC"),
    ("SET threads = 1", "not a single query"),
    ("ATTACH 'x.db'", "not a single query"),
    ("SELECT error('gone')", "gone"),
    ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
    ("SELECT * FROM read_csv('perflogs')", "disabled by configuration"),
    ("SELECT * FROM 'https://example.org/x.csv'", "disabled by configuration"),
    ("SELECT * FROM query('DROP VIEW samples')", "single SELECT"),
]


def test_a_mistake_in_a_query_is_one_line_and_no_query_reads_files_or_writes(data):
    for query, reason in NO_ANSWER:
        out, code = run("--sql", query)
        assert (code, reason in out) == (2, True), (query, out)
        assert out.startswith("--sql: "), query
        assert "\n" not in out, query
    assert answer("SELECT count(*) AS n FROM samples") == [{"n": 560}], "all is still there"


def test_no_query_writes_into_the_store(data):
    run()
    folder = next((data / "cache").iterdir())
    out, code = run("--sql", f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/x.csv'")
    assert (code, "not a single query" in out) == (2, True)
    assert not (folder / "x.csv").exists()


def test_an_answer_steers_no_terminal_and_no_sheet(data):
    out, _ = run("--sql", "SELECT chr(27) || '[31m' AS x, 1/0 AS y")
    assert "\x1b" not in out
    out, _ = run("--sql", "SELECT '=1+1' AS \"=x\", -5.5 AS y, '-5' AS z, '-x' AS a", "--csv")
    assert out == "'=x,y,z,a\n'=1+1,-5.5,-5,'-x\n"
    assert answer("SELECT 1/0 AS x, 'NaN'::DOUBLE AS y") == [{"x": "inf", "y": "nan"}]


def rows_of(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(path.open(newline="")))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{path}')")
        names = [c[0] for c in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_an_export_holds_the_samples_that_were_asked_for_in_order(data, tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    assert run(
        "--export",
        path,
        "--metric",
        "Stream.triad",
        "--node",
        "n[001-003]",
        "--since",
        "2025-11-25",
        "--system",
        "here",
    ) == (f"{path}: 30 samples\n", 0)
    found = rows_of(path)
    assert list(found[0]) == [c.name for c in views.SAMPLES]
    assert [row["node"] for row in found] == ["n001", "n002", "n003"] * 10
    with open_history(data / "perflogs") as opened:
        assert [float(row["base"]) for row in found] == [
            base
            for (base,) in opened.sql(
                "SELECT base FROM samples WHERE metric = 'Stream.triad' AND node <= 'n003' "
                "AND time >= '2025-11-25' ORDER BY time, node"
            )
        ]
    assert run("--export", path, "--campaign", "window")[0] == f"{path}: 40 samples\n"
    assert len(rows_of(path)) == 40
    assert list(tmp_path.iterdir()) == [path]


def test_a_sheet_gets_no_formula(own):
    found = fleets.run_of({"n1": 1}, metric="Stream.triad") + [
        fleets.broken("n2", "timeout", why=HOSTILE)
    ]
    fleets.samples.write(own / "perflogs", found[0].header, found)
    run("--export", own / "x.csv")
    assert {row["why"] for row in rows_of(own / "x.csv")} == {
        "",
        "'" + HOSTILE.replace("\x1b", "?"),
    }


REFUSED = [
    (["--export", "x.xls"], "has no known ending. Allowed: NAME.csv"),
    (["--export", "none/x.csv"], "is a folder, or its folder"),
    (
        ["--export", "x.csv", "--metric", "Stream.tria"],
        "no sample has 'Stream.tria' (did you mean 'Stream.triad'?). Allowed: ",
    ),
    (["--export", "x.csv", "--node", "m[1"], "bad node set"),
    (
        ["--export", "x.csv", "--campaign", "window", "--since", "2026-01-01"],
        "no sample matches all",
    ),
    (["--system", "there"], "no sample has 'there' (did you mean 'here'?). Allowed: here"),
    (["--since", "never"], "is not a valid time"),
    (["--sql", "SELECT 1", "--metric", "Stream.triad"], "cannot be combined with"),
    (["--sql", "SELECT 1", "--system", "here", "--since", "7d"], "cannot be combined with"),
    (["--csv"], "needs --sql"),
    (["--sql", "SELECT 1 AS a, 2 AS a", "--json"], "two columns are named a"),
]


def test_what_cannot_be_done_is_refused_and_nothing_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, reason in REFUSED:
        out, code = run(*words)
        assert (code, reason in out) == (2, True), (words, out)
        assert not list(tmp_path.iterdir()), words


def test_an_export_that_fails_leaves_the_file_as_it_was(data, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("before")
    with open_history(data / "perflogs") as opened:
        opened.connection.execute("SET enable_external_access = false")
        with pytest.raises(OSError, match="disabled by configuration"):
            extract.export(opened, path, extract.Wanted())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_every_column_has_its_sentence(data):
    out, code = run("--columns")
    assert code == 0
    for column in views.SAMPLES + views.RUNS:
        assert f"{column.name:<12} {column.kind:<10} {column.meaning}" in out
        assert column.meaning.endswith((".", "…"))
    with open_history(data / "perflogs") as opened:
        for view, held in views.VIEWS.items():
            assert [(row[0], row[1]) for row in opened.sql(f"DESCRIBE {view}")] == [
                (column.name, column.kind) for column in held
            ]
