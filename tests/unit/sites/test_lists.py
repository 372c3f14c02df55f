"""Lists in a site: each entry once, and a gap in a list moves no line number."""

import copy
import shutil

import pytest
import yaml
from clone import SITES

from siteproof.sites.key_types import REPEATED
from siteproof.sites.site import examine

FILES = ("system.yaml", "criteria.yaml", "baselines.yaml", "waivers.yaml")


@pytest.fixture
def fullest(tmp_path, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    return shutil.copytree(SITES / "fullest", tmp_path / "fullest")


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


@pytest.mark.parametrize(("file", "path"), LISTS, ids=lambda part: ".".join(part[-2:]))
def test_an_entry_of_a_list_is_there_once(fullest, file, path):
    data = copy.deepcopy(read(file))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]].append(place[path[-1]][0])
    (fullest / file).write_text(yaml.safe_dump(data, sort_keys=False))
    found = [line for line in mistakes() if "twice" in line]
    if {*path} & {*REPEATED}:
        assert found == []
    else:
        (line,) = found
        assert f"{file}:" in line and path[0] in line and "each once" in line


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


@pytest.mark.parametrize(
    "option", ["--mem={size", "--mem=size}", "--mem={}", "--mem={0}", "--mem={a.b}", "--mem={a!r}"]
)
def test_a_resource_has_plain_names_in_braces(fullest, option):
    text = (fullest / "system.yaml").read_text()
    assert "--mem={size}" in text
    (fullest / "system.yaml").write_text(text.replace("--mem={size}", option))
    (line,) = mistakes()
    assert "brace" in line and "--mem={size}" in line
