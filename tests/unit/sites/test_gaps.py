"""A gap is a value that is still to be filled in: lint lists it, and nothing counts it as given."""

import shutil

import pytest
from click.testing import CliRunner
from clone import SITES
from rows import rows

from siteproof.cli.lint import lint
from siteproof.sites import load
from siteproof.sites.site import examine


def a_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    return shutil.copytree(SITES / "example", tmp_path / "example")


example = pytest.fixture(name="example")(a_copy)


def edit(folder, file, old, new):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


def mistakes():
    _, documents = examine("example")
    return [str(one) for document in documents for one in document.sorted_mistakes()]


def test_a_gap_is_a_key_that_is_not_given(example):
    edit(example, "system.yaml", "sockets: 2", "sockets: !gap from the data sheet")
    site = load("example")
    assert site.hardware_of("compute").sockets is None
    (gap,) = site.gaps
    assert gap.where.endswith("system.yaml:7")
    assert gap.what == "hardware.blade.sockets: from the data sheet"


def test_lint_lists_each_gap_and_ends_in_their_number(example):
    edit(example, "system.yaml", "sockets: 2", "sockets: !gap from the data sheet")
    (example / "criteria.yaml").write_text("E-NEW: !gap what the contract requires of HPL\n")
    done = CliRunner().invoke(lint, ["--system", "example"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[-1] == "1 site, no mistake, 2 gaps"
    assert sum(line.startswith("siteproof: gap: ") for line in lines) == 2


@rows("key", ["source", "at_least", "nodes"])
def test_a_criterion_with_a_gap_is_not_in_force(tmp_path, monkeypatch, key):
    example = a_copy(tmp_path, monkeypatch)
    keys = {
        "description": "d",
        "metric": "Stream.triad",
        "nodes": "[compute]",
        "at_least": "65 GB/s",
        "source": "s",
    } | {key: "!gap fill it in"}
    (example / "criteria.yaml").write_text(
        "\n".join(["E-NEW:", *(f"  {name}: {text}" for name, text in keys.items())])
    )
    assert mistakes() == []
    assert load("example").criteria == {}


def test_what_is_given_next_to_a_gap_is_checked(example):
    (example / "criteria.yaml").write_text(
        "E-NEW: {description: d, metric: Stream.tried, at_least: !gap x, source: !gap y}"
    )
    (line,) = mistakes()
    assert "unknown metric 'Stream.tried' (did you mean 'Stream.triad'?)" in line


def test_a_gap_for_the_metric_excuses_no_other_key(example):
    (example / "criteria.yaml").write_text("E-NEW: {metric: !gap which, at_lest: 3, nodes: [no]}")
    found = "\n".join(mistakes())
    assert "missing key 'description' in E-NEW" in found
    assert "missing key 'source' in E-NEW" in found
    assert "unknown key 'at_lest' (did you mean 'at_least'?)" in found
    assert "unknown role 'no'" in found
    assert "unknown metric" not in found


def test_a_gap_for_the_bound_of_a_baseline_excuses_no_other_key(example):
    (example / "baselines.yaml").write_text(
        "system: example\nB-NEW: {metric: Stream.tried, at_least: !gap x, source: s, taken: !gap y}"
    )
    (line,) = mistakes()
    assert "unknown metric 'Stream.tried'" in line


def test_a_key_that_must_be_given_cannot_be_a_gap_in_the_system(example):
    edit(example, "system.yaml", "role: compute", "role: !gap which")
    assert any("missing key 'role'" in line for line in mistakes())


@rows("text", ["!gap", "!gap ''", "!gap [a, b]", "!gap {a: b}"])
def test_a_gap_without_a_text_is_a_mistake(tmp_path, monkeypatch, text):
    example = a_copy(tmp_path, monkeypatch)
    edit(example, "system.yaml", "sockets: 2", f"sockets: {text}")
    assert len(mistakes()) == 1


def test_a_gap_and_a_value_are_a_key_given_twice(example):
    edit(example, "system.yaml", "sockets: 2", "sockets: !gap a\n    sockets: 2")
    assert "a second time" in mistakes()[0]
