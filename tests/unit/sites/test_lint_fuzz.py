"""Whatever is written into a site's files: either a Site or mistakes in words, nothing else."""

import os
import string
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
import yaml
from clone import SITES
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from random_cases import cases

from siteproof.errors import UserErrors
from siteproof.sites import Site, load

FULLEST = SITES / "fullest"
FILES = {
    name: (FULLEST / name).read_text()
    for name in ("system.yaml", "criteria.yaml", "baselines.yaml")
}
ODD = (
    st.sampled_from(
        [
            *(None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", " ", "0", "-1 %"),
            *("1e300 GB/s", "1e999999999 GB/s", "nan", "80 % of peak", "% of", " of ", "nearest"),
            *("nearest 0 %", "none", "node[1-3", "@all", "n[1-99999999999]", "n[5-1]", "a,,b"),
            *("!", "^", "&", "n[1-3]&n2", "[]", "(", "(?P<", "\\", "\u2028", "\x00", "\ud800", "é"),
            *("generic", [], {}, [[]], [None], {"": ""}, {"at_least": "x"}, {"exact": None}),
            *({"one_of": []}, {"at_least": 1, "at_most": 2}),
        ]
    )
    | st.text(max_size=8)
    | st.text(alphabet=string.printable, max_size=8)
)


MARKS = [
    *(b"\n", b" ", b":", b"- ", b"[", b"{", b"&a ", b"*a", b"!!x ", b"'", b'"', b"#", b"|", b">"),
    *(b"%", b"@", b"? ", b"<<: ", b"---\n"),
]


def outcome(files):
    """What load() makes of the files: a Site, or the mistakes."""
    with TemporaryDirectory() as folder:
        site = Path(folder) / "fullest"
        site.mkdir()
        for name, content in files.items():
            (site / name).write_bytes(content)
        with mock.patch.dict(os.environ, {"SITEPROOF_SITES": folder}):
            try:
                return load("fullest")
            except UserErrors as error:
                return error


def check(files):
    found = outcome(files)
    if isinstance(found, Site):
        for promise in [*found.criteria.values(), *found.baselines.values()]:
            unit = found.catalogue[promise.metric].unit
            for role in found.roles_of(promise):
                promise.limits(unit, found.hardware_of(role))
        return
    assert found.errors
    for error in found.errors:
        line = str(error)
        assert "\n" not in line
        assert "PydanticUndefined" not in line
        line.encode()


def places(data, path=()):
    """Every place in a tree of data."""
    yield path
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from places(value, (*path, key))


def put(data, path, value):
    if not path:
        return value
    if isinstance(data, dict | list):
        data[path[0]] = put(data[path[0]], path[1:], value)
    return data


def replace_somewhere(data, draw):
    """The data with one value replaced, removed or renamed."""
    path = draw(st.sampled_from(list(places(data))))
    kind = draw(st.sampled_from(["replace", "remove", "rename"]))
    if kind == "replace" or not path:
        return put(data, path, draw(ODD))
    parent = data
    for part in path[:-1]:
        parent = parent[part]
    value = parent.pop(path[-1])
    if kind == "rename" and isinstance(parent, dict):
        parent[draw(st.text(max_size=6))] = value
    return data


fast = cases(50, suppress=(HealthCheck.data_too_large,))


@fast
@given(st.data())
@pytest.mark.deep
def test_another_value_in_place_of_one(data):
    name = data.draw(st.sampled_from(sorted(FILES)))
    tree = yaml.safe_load(FILES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        tree = replace_somewhere(tree, data.draw)
    text = yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass")
    check({**{n: t.encode() for n, t in FILES.items()}, name: text})


@fast
@given(st.data())
def test_other_characters_in_the_text(data):
    name = data.draw(st.sampled_from(sorted(FILES)))
    raw = bytearray(FILES[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(start, min(len(raw), start + 30)))
        raw[start:end] = data.draw(st.binary(max_size=4) | st.sampled_from(MARKS))
    check({**{n: t.encode() for n, t in FILES.items()}, name: bytes(raw)})
