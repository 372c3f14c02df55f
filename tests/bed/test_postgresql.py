"""`siteproof export sql` into a real PostgreSQL: idempotent, whole or not at all, each its own."""

import re
import subprocess

import postgres
import pytest
from clone import TOP
from fleets import furnish, names, run_of

from siteproof.export import sql
from siteproof.history import extract, views
from siteproof.history.tables import canonical

pytestmark = [pytest.mark.services, pytest.mark.tool("PostgreSQL")]
PAGE = (TOP / "docs/shared-data.md").read_text()
RIGHTS, *QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
HOSTILE = "a\tb\nc\r\\.\n\\! touch {}\n'; DROP TABLE x; --\\N \0 \\u0000 \udc80 \x1b[31m é"
WAIVER = "W: {nodes: n004, waives: C-TRIAD, problem: p, owner: o, expires: 2999-12-31}"
MOMENTS = ("made", "as_of")  # of an answer, of which each export has others


@pytest.fixture(scope="module")
def cluster():
    with postgres.centre(sql.create(), RIGHTS + RIGHTS.replace("north", "south")) as made:
        yield made


@pytest.fixture
def centre(cluster):
    yield cluster
    cluster.psql("-q", data="".join(f"TRUNCATE siteproof.{one.name};" for one in sql.tables()))


@pytest.fixture
def here(world):
    made = furnish(world)
    made.sql = lambda *words, centre="north": made.ask("export", "sql", "--centre", centre, *words)
    made.keep(run_of({**dict.fromkeys(names(8), 100), "n004": 50}))
    return made


def rows(centre):
    """Each row of each table as text, without the moments of an export."""
    found = []
    for table in sql.tables():
        columns = ", ".join(f'"{name}"' for name in table.names if name not in MOMENTS)
        found += [
            (table.name, *row)
            for row in centre.ask(f"SELECT {columns} FROM siteproof.{table.name} ORDER BY 1, 2, 3")
        ]
    return sorted(found)


def send(here, centre, *words, role="north"):
    done = here.sql(*words, centre=role)
    assert done.code == 0, done
    return centre.psql(data=done.out, role=role)


def test_all_is_there_and_twice_is_once(here, centre):
    send(here, centre)
    first = rows(centre)
    assert [row[0] for row in first].count("samples") == 8
    assert centre.ask("SELECT verdict, worst ->> 'node' FROM siteproof.criteria") == [
        ["FAIL", "n004"]
    ]
    assert centre.ask("SELECT node FROM siteproof.nodes WHERE state = 'FAILED'") == [["n004"]]
    again = send(here, centre)
    assert "INSERT 0 8" not in again, "what has not changed is not written again"
    assert rows(centre) == first


def test_what_is_cut_off_leaves_nothing(here, centre):
    whole = here.sql().out.splitlines(keepends=True)
    for line in range(3, len(whole), 7):
        centre.psql(data="".join(whole[:line]) + whole[line][: len(whole[line]) // 2], code=None)
    assert rows(centre) == []


def test_two_centres_and_two_login_nodes_of_each_at_once(here, centre):
    streams = {name: here.sql(centre=name).out for name in ("north", "south")}
    started = []
    for name in ("north", "south") * 4:
        file = here.folder / name
        file.write_text(streams[name])
        argv = ["psql", "-X", "-h", centre.folder, "-U", name, "-d", "postgres", "-f", file]
        started.append(
            subprocess.Popen([*map(str, argv)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        )
    assert [(one.communicate()[1], one.returncode) for one in started] == [(b"", 0)] * 8
    assert centre.ask("SELECT centre, count(*) FROM siteproof.samples GROUP BY 1 ORDER BY 1") == [
        ["north", "8"],
        ["south", "8"],
    ]


def test_nobody_writes_the_rows_of_another_centre(here, centre):
    send(here, centre, role="south")
    before = rows(centre)
    forged = here.sql(centre="south").out.replace("\t50.00\t", "\t99.00\t")
    assert "row-level security" in centre.psql(data=forged, role="north", code=3)
    assert rows(centre) == before


def test_an_answer_is_of_its_newest_session_and_a_waiver_changes_it(here, centre):
    send(here, centre)
    here.keep(run_of({"n004": 100}, 2))
    send(here, centre)
    asked = "SELECT newest, verdict FROM siteproof.criteria ORDER BY 1"
    assert centre.ask(asked) == [["s0001", "FAIL"], ["s0002", "PASS"]]
    here.keep(run_of({"n004": 40}, 3))
    send(here, centre)
    (here.sites / "here/waivers.yaml").write_text(WAIVER)
    send(here, centre)
    assert centre.ask(asked)[2:] == [["s0003", "PASS"]]
    assert centre.ask("SELECT newest, node FROM siteproof.units WHERE waived") == [
        ["s0003", "n004"]
    ]


def test_what_a_file_no_longer_has_is_gone_and_other_files_stay(here, centre):
    here.keep(run_of(dict.fromkeys(names(8), 100), 2))
    send(here, centre)
    file = max(here.samples())
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    send(here, centre, "--since", "2026-11-03")
    assert centre.ask("SELECT session, count(*) FROM siteproof.samples GROUP BY 1 ORDER BY 1") == [
        ["s0001", "8"],
        ["s0002", "7"],
    ]


@pytest.fixture
def hostile(here, monkeypatch):
    """What no reader has made harmless: the file that it would make, and the text."""
    target = here.folder / "run-by-psql"
    text, read = HOSTILE.format(target), extract.rows
    place = {column.name: number for number, column in enumerate(views.SAMPLES, 1)}

    def rows(history, view, wanted):
        for row in map(list, read(history, view, wanted)):
            if view == "samples":
                row[place["why"]], row[place["dims"]] = text, canonical({text: text})
            yield row

    monkeypatch.setattr(extract, "rows", rows)
    return target, text


def test_a_text_of_a_node_is_data(here, centre, hostile):
    target, text = hostile
    send(here, centre)
    query = "SELECT encode(convert_to(jsonb_build_array({}) ->> 0, 'UTF8'), 'hex') FROM {}"
    keys = "siteproof.samples, jsonb_each_text(dims) AS pair"
    for column in ("why", "pair.key", "pair.value"):
        found = centre.ask(query.format(column, keys))
        assert {bytes.fromhex(cell).decode() for (cell,) in found} == {
            text.replace("\0", "\ufffd").replace("\udc80", "?")
        }
    assert not target.exists()


def test_where_a_table_is_missing_psql_runs_none_of_the_data(here, centre, hostile):
    data = here.sql().out.replace("CREATE TEMP TABLE", "CREATE TEMP TABEL")
    assert "syntax error" in centre.psql(data=data, role="north", code=3)
    assert not hostile[0].exists()


def test_a_role_that_may_not_make_the_tables_gets_one_line_and_an_error(centre):
    told = centre.psql("-q", data=sql.create().replace("siteproof", "other"), role="north", code=3)
    assert told.splitlines() == ["ERROR:  permission denied for database postgres"]


def test_tables_that_are_there_are_made_again_without_a_word(centre):
    command = ["psql", "-X", "-q", "-h", centre.folder, "-U", "postgres", "-d", "postgres"]
    done = subprocess.run(command, input=sql.create(), text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_medians_of_the_page_are_of_values_that_may_be_compared(here, centre):
    send(here, centre)
    centre.psql(data="UPDATE siteproof.samples SET series = 1, base = 7 WHERE node = 'n001'")
    assert sorted(row[-1] for row in centre.ask(QUERIES[2])) == ["100000000", "7"]


def test_the_queries_of_the_page_are_answered_by_the_newest(here, centre):
    found = []
    for run, value in enumerate([40, 100, 40], 1):
        here.keep(run_of({**dict.fromkeys(names(8), 100), "n004": value}, run))
        send(here, centre)
        found.append([len(centre.ask(query)) for query in QUERIES])
    assert found == [[1, 1, 1], [0, 0, 2], [1, 1, 3]]
