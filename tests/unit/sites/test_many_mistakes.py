"""A file with more mistakes than anybody reads: all are counted, few are explained."""

from pathlib import Path

import pytest
from clone import SITES

from siteproof import errors
from siteproof.sites.schema import yamlfile
from siteproof.sites.site import examine

KEYS = 20_000
WIDE = "".join(f"unknown_{n}: value\n" for n in range(KEYS))
DEEP = "links:\n  far:\n" + "".join(f"    unknown_{n}: value\n" for n in range(KEYS))
CRITERIA = "".join(f"C-{n}: {{metrc: Stream.triad, source: a}}\n" for n in range(KEYS // 4))


@pytest.fixture
def hints(monkeypatch):
    """How often a name is compared with all that are allowed."""
    calls = []
    real = errors.get_close_matches

    def counted(name, *words, **keys):
        calls.append(name)
        return real(name, *words, **keys)

    monkeypatch.setattr(errors, "get_close_matches", counted)
    return calls


def of(tmp_path: Path, file: str, text: str) -> yamlfile.Document:
    for source in (SITES / "smallest").iterdir():
        (tmp_path / source.name).write_text(source.read_text())
    with (tmp_path / file).open("a") as stream:
        stream.write(text)
    _, documents = examine("smallest", tmp_path)
    return next(document for document in documents if document.path.name == file)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("file", "text", "least"),
    [
        ("system.yaml", WIDE, KEYS),
        ("system.yaml", DEEP, KEYS),
        ("criteria.yaml", CRITERIA, KEYS // 4),
    ],
    ids=["in one mapping", "in a link", "one in each of many criteria"],
)
def test_the_first_are_named_and_the_rest_is_counted(tmp_path, hints, file, text, least):
    document = of(tmp_path, file, text)
    told = document.sorted_mistakes()
    assert len(document.mistakes) == yamlfile.MAX_MISTAKES
    assert len(document.mistakes) + document.untold >= least
    assert told[-1].what == f"{document.untold} more mistakes"
    assert len(hints) <= yamlfile.MAX_MISTAKES


def test_a_file_with_few_mistakes_names_each(tmp_path, hints):
    document = of(tmp_path, "system.yaml", "unknown_1: value\nunknown_2: value\n")
    assert [m.what.partition(" in ")[0] for m in document.sorted_mistakes()] == [
        "unknown key 'unknown_1'",
        "unknown key 'unknown_2'",
    ]
    assert document.untold == 0
