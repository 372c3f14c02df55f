"""`siteproof export sql` without a database: its columns, its cells, what it refuses."""

import pytest
from exported import judged, report, site
from fleets import furnish

from siteproof.cli.export import schema_of
from siteproof.export import documents, sql
from siteproof.history import views


def columns(name):
    (table,) = [one for one in sql.tables() if one.name == name]
    return {column.name: column.kind for column in table.columns}


def test_a_table_has_the_columns_of_the_view_or_the_keys_of_the_answer():
    for name, known in views.VIEWS.items():
        assert set(columns(name)) == {"centre", "row"} | {column.name for column in known}
    criterion = schema_of("verdict")["$defs"]["CriterionAnswer"]["properties"]
    kept = set(columns("criteria")) - {"centre", "system", "campaign", "newest"}
    assert kept == set(criterion) - {"age", "nodes"}


def test_a_column_has_the_type_of_its_values():
    units = columns("units")
    assert [units[name] for name in ("verdict", "number", "waived", "time", "dims", "row")] == [
        *("text", "double precision", "boolean", "timestamptz", "jsonb", "bigint")
    ]
    samples = columns("samples")
    assert [samples[name] for name in ("value", "series", "time", "conditions", "why")] == [
        *("double precision", "numeric(20)", "timestamptz", "jsonb", "text")
    ]


def test_a_row_is_a_line_and_a_cell_is_data(tmp_path, monkeypatch):
    one = judged(site(tmp_path, monkeypatch))
    row = [None] * (len(columns("runs")) - 1)
    row[0], row[1], row[-1] = 1, "a\tb\n\\.\0", '{"a":"\\u0000 \\\\u0000"}'
    of = {"centre": "north", "campaign": "", "newest": "s1", "place": 0}
    lines = "".join(sql.data(documents.verdict(one, report(one)), of, [row], [])).split("\n")
    first = lines[lines.index(next(line for line in lines if line.startswith("COPY "))) + 1]
    cells = first.split("\t")
    assert cells[:4] == ["north", "1", "a\\tb\\n\\\\.\ufffd", "\\N"]
    assert cells[-1] == '{"a":"\ufffd \\\\\\\\u0000"}'
    assert len(cells) == len(columns("runs"))


@pytest.mark.parametrize("words", [(), ("--centre", " "), ("--centre", "north", "--since", "soon")])
def test_a_mistake_is_one_line_and_no_part_of_a_stream(world, words):
    done = furnish(world).ask("export", "sql", *words)
    assert done.refused() and not done.out
