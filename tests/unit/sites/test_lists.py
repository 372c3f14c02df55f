"""Lists in a site: each entry once, and a gap in a list moves no line number."""

import shutil

import pytest
import yaml
from clone import SITES
from rows import rows

from siteproof.sites.key_types import REPEATED
from siteproof.sites.site import examine

FILES = ("system.yaml", "criteria.yaml", "baselines.yaml", "waivers.yaml")


def a_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    return shutil.copytree(SITES / "fullest", tmp_path / "fullest")


fullest = pytest.fixture(name="fullest")(a_copy)


def mistakes():
    _, documents = examine("fullest")
    return [str(one) for document in documents for one in document.sorted_mistakes()]


def lists_of(held, path=()):
    """The path of every list with entries, but none below a verbatim block."""
    if isinstance(held, dict):
        for key, value in held.items():
            if key != "reframe":
                yield from lists_of(value, (*path, key))
    elif isinstance(held, list) and held:
        yield path


def read(file):
    return yaml.load((SITES / "fullest" / file).read_text(), yaml.BaseLoader)


LISTS = [(file, path) for file in FILES for path in lists_of(read(file))]


@pytest.mark.deep
def test_an_entry_of_a_list_is_there_once(fullest):
    wrong = []
    for file, path in LISTS:
        whole = read(file)
        place = whole
        for key in path[:-1]:
            place = place[key]
        place[path[-1]].append(place[path[-1]][0])
        before = (fullest / file).read_text()
        (fullest / file).write_text(yaml.safe_dump(whole, sort_keys=False))
        found = [line for line in mistakes() if "twice" in line]
        (fullest / file).write_text(before)
        told = [f"{file}:" in line and path[0] in line and "each once" in line for line in found]
        if told != ([] if {*path} & {*REPEATED} else [True]):
            wrong.append((file, path, found))
    assert wrong == []


def test_a_gap_in_a_list_moves_no_line_number(fullest):
    before, line, after = (
        (fullest / "system.yaml").read_text().partition("    modules: [site/2024]\n")
    )
    items = ["!gap a first", "!gap a second", "site/2024", "!gap a third", "'-bad'"]
    held = f"{before}    modules:\n" + "".join(f"    - {item}\n" for item in items) + after
    (fullest / "system.yaml").write_text(held)
    first = before.count("\n") + 2
    (told,) = mistakes()
    assert f"system.yaml:{first + 4}: '-bad' is not" in told
    _, documents = examine("fullest")
    gaps = [str(gap) for document in documents for gap in document.listed_gaps()]
    assert [gap.split(":")[1] for gap in gaps] == [str(first), str(first + 1), str(first + 3)]


@rows(
    "option", ["--mem={size", "--mem=size}", "--mem={}", "--mem={0}", "--mem={a.b}", "--mem={a!r}"]
)
def test_a_resource_has_plain_names_in_braces(tmp_path, monkeypatch, option):
    fullest = a_copy(tmp_path, monkeypatch)
    text = (fullest / "system.yaml").read_text()
    assert "--mem={size}" in text
    (fullest / "system.yaml").write_text(text.replace("--mem={size}", option))
    (line,) = mistakes()
    assert "brace" in line and "--mem={size}" in line
