"""What changed besides the results: each fact once."""

from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.report.chapters.changes import besides


def changed(what, before, after, nodes="", check=""):
    details = {"what": what, "before": before, "after": after}
    return finding.of(Kind.CHANGED, details, check=check, subject=nodes)


def test_what_changed_alike_on_the_same_nodes_is_one_row():
    table = besides(
        [
            changed("HostParameters.nic.eth0.mtu", "9000", "1500", "n6"),
            changed("nic.eth0.mtu", "9000", "1500", "n6"),
            changed("nic.eth0.mtu", "9000", "1500", "n7"),
            changed("version", "1", "2", check="Hpl"),
        ]
    )
    assert table.rows == [
        ("n6", "HostParameters.nic.eth0.mtu, nic.eth0.mtu", "9000", "1500"),
        ("n7", "nic.eth0.mtu", "9000", "1500"),
        ("-", "Hpl version", "1", "2"),
    ]


def test_what_a_node_no_longer_reports_is_one_row():
    table = besides([changed("a", "1", "nothing", "n8"), changed("b", "2", "nothing", "n8")])
    assert table.rows == [("n8", "a, b", "2 values", "nothing")]


def test_a_digest_is_named_only_where_no_field_is():
    digest = changed("SystemDescription.digest", "aa", "bb", "n4")
    field = changed("package.munge", "1", "2", "n4")
    assert [row[1] for row in besides([digest, field]).rows] == ["package.munge"]
    assert [row[1] for row in besides([digest]).rows] == ["SystemDescription.digest"]
