"""Node sets: no group is looked up, no set fills the memory, and no node is lost."""

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from siteproof import nodesets
from siteproof.nodesets import MAX_NODES, checked, parse

names = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
hosts = st.lists(st.tuples(names, st.integers(0, 999)), min_size=1, max_size=30)


@given(hosts)
def test_a_folded_set_has_the_same_nodes(pairs):
    expected = {f"{name}{number:03}" for name, number in pairs}
    folded = str(NodeSet.fromlist(sorted(expected)))
    assert set(parse(folded)) == expected
    assert checked(folded) == parse(folded)


@given(st.text(alphabet="ab@[]0123456789-,!&^/ %*{}.", max_size=20))
def test_any_text_is_a_set_or_a_reason(text):
    try:
        nodes = checked(text)
    except ValueError as error:
        assert str(error)
    else:
        assert "@" not in text
        assert 0 < len(nodes) <= MAX_NODES


@given(names, st.integers(0, 50), st.integers(1, 50), st.integers(0, 50))
def test_a_node_that_is_named_twice_is_found(name, start, length, offset):
    first = f"{name}[{start}-{start + length}]"
    second = f"{name}[{start + offset}-{start + offset + length}]"
    overlap = len(range(offset, length + 1))
    if not overlap:
        assert len(checked(f"{first},{second}")) == 2 * (length + 1)
        return
    with pytest.raises(ValueError, match="more than once"):
        checked(f"{first},{second}")


def test_count():
    for text, count in (
        ("node[001-320]", 320),
        ("a[1-3]b[1-2]", 6),
        ("n[1-10]!n[2-9]", 2),
        ("n[1-10/2]", 5),
        ("localhost", 1),
        ("a.b-c_d", 1),
    ):
        assert len(checked(text)) == count, (text, count)


def test_what_is_no_set_of_nodes():
    for text in (
        *("@all", "a,@compute:x", "n@1", "n[1-100000000000]", "n[1-1000]m[1-1000]", "n[1-2"),
        *("n[2-1]", "", " ", "a b", "-n", "n[1-2]-", "n;reboot", "$(reboot)", "ä[1-2]"),
        *("n[1-3],n2", "%s"),
    ):
        assert refusal(checked, text, error=ValueError), text


def test_no_group_is_looked_up(monkeypatch):
    """Not even through the resolver that ClusterShell would use by itself."""

    def called(*args, **kwargs):
        raise AssertionError("a group was looked up")

    monkeypatch.setattr("ClusterShell.NodeUtils.UpcallGroupSource._upcall_read", called)
    for text in ("@all", "@x:y", "a,@b", "@*"):
        with pytest.raises(ValueError, match="groups are not looked up"):
            checked(text)


@given(
    names=st.lists(
        st.one_of(
            st.from_regex(r"[a-z_]{0,2}[0-9]{0,3}", fullmatch=True),
            st.from_regex(r"[ab12.-]{1,6}", fullmatch=True),
        ).filter(bool),
        max_size=12,
    )
)
def test_names_read_together_are_the_set_of_each_name_read_alone(names):
    alone = NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP)
    found = nodesets.of(iter(names))
    assert found == alone
    assert (str(found), list(found)) == (str(alone), list(alone))
