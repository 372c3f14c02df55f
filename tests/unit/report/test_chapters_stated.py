"""What the report prints of the facts that a site states of its nodes."""

from siteproof.nodes import described
from siteproof.record import finding
from siteproof.record.finding import Kind
from siteproof.report.chapters import description
from siteproof.sites import bought
from siteproof.sites.stated import FactSection
from siteproof.wording.findings import sentence, title

FACTS = {
    "3.1.3": FactSection(source="x", fields={"memory.total": "64", "cpu.cores": "8"}),
    "3.2.2": FactSection(source="x", fields={"bios.version": "1.1"}),
}


def results(**values):
    node = {"gpu.count": "0", "memory.total": "64", "cpu.cores": "8"}
    node |= {name.replace("__", "."): value for name, value in values.items()}
    return bought.compare(FACTS, node, {"bios": "no DMI table"})


def test_nodes_that_are_not_as_stated_share_a_row():
    wrong = results(memory__total="32")
    found = described.not_as_stated({"n1": wrong, "n3": wrong})
    (one,) = finding.of_many([one for one in found if one[0].kind is Kind.FACT_DIFFERS])
    why = "3.1.3: memory.total is 32, stated is 64"
    assert (title(one), one.subject, sentence(one)) == ("not as stated", "n[1,3]", why)


def test_each_section_counts_what_became_of_its_fields():
    table = description._sections({"n1": results(memory__total="32"), "n2": results()})
    assert table.columns == ("section", "as stated", "different", "missing", "not read")
    assert table.rows == [("3.1.3", "3", "1", "0", "0"), ("3.2.2", "0", "0", "0", "2")]
    assert table.note == "Fields of 2 nodes, by section."
