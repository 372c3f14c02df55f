"""Descriptions of many nodes: what all of them share is read once, and not once a node."""

from fleets import header
from stages_made import of_descriptions

from siteproof.collect import stages
from siteproof.parsers import values
from siteproof.record import descriptions
from siteproof.record.descriptions import Updates

SHARED = {f"sysctl.number{n}": str(n) for n in range(50)} | {"bios.version": "1.2"}
NODES = [f"n{n}" for n in range(64)]


def described(perflogs, **other):
    head = header(1, descriptions.CHECK)
    kept = {node: SHARED | {"host.name": node} for node in NODES}
    kept["n7"] |= other
    return head, descriptions.write(perflogs, head, kept)


def test_a_name_that_all_nodes_share_is_looked_at_once(tmp_path):
    _, path = described(tmp_path)
    asked = []
    found = descriptions.read(path, lambda name: asked.append(name) or name == "bios.version")
    assert found == {node: {"bios.version": "1.2"} for node in NODES}
    assert sorted(asked) == sorted([*SHARED, *["host.name"] * len(NODES)])


def test_a_field_that_a_node_alone_lacks_stays_missing(tmp_path):
    head = header(1, descriptions.CHECK)
    kept = dict.fromkeys(NODES, SHARED) | {"n7": {"bios.version": "1.3"}}
    path = descriptions.write(tmp_path, head, kept)
    assert descriptions.read(path) == kept
    assert descriptions.read(path, lambda name: name == "sysctl.number1") == {
        node: {} if node == "n7" else {"sysctl.number1": "1"} for node in NODES
    }


def test_an_update_of_one_node_is_found_among_the_fields_of_all(tmp_path):
    old = header(0)
    head, _ = described(tmp_path, **{"bios.version": "1.3"})
    first = header(0, descriptions.CHECK)
    descriptions.write(tmp_path, first, dict.fromkeys(NODES, SHARED))
    updates = Updates([old, first, head], tmp_path)
    assert updates.after(old, ["n7"]) == ("bios.version", "1.2", "1.3")
    assert updates.after(old, ["n8"]) is None


def test_texts_that_no_two_nodes_share_come_back_as_they_were(tmp_path):
    head = header(1, descriptions.CHECK)
    kept = {"n1": {"a": "x", "b": "1"}, "n2": {"a": "y", "b": "1"}, "n3": {"c": "z"}}
    descriptions.write(tmp_path, head, kept)
    assert descriptions.read(descriptions.path_of(tmp_path, head)) == kept


def test_the_output_of_a_node_is_cut_into_lines_once(tmp_path, monkeypatch):
    made = of_descriptions(tmp_path)
    texts = [path.read_text() for path in sorted(made.stage.glob("raw/*/stdout"))]
    cut, harmless = [], values._harmless
    monkeypatch.setattr(values, "_harmless", lambda line: cut.append(line) or harmless(line))
    values.harmless.cache_clear()
    assert {s.status for s in stages.collect(made.stage, made.perflogs)} == {"ok"}
    assert len(cut) <= sum(len(text.split("\n")) for text in texts)
