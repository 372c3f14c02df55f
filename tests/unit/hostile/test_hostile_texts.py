"""What a node says of itself stands in reports and exports as text, and as nothing else."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal

import pytest
from asked import ask
from fleets import broken, header, names, run_of

from siteproof.record import samples
from siteproof.record.samples import Sample
from siteproof.report import html

pytestmark = pytest.mark.deep

SCRIPT = "<script>alert(1)</script>"
TEXTS = (
    SCRIPT,
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "a | b | c",
    "| --- | --- |",
    "line\nline\r\nline",
    "\x1b[31mred\x1b]8;;http://x\x07",
    "\u202etxet\u2066",
    "=cmd|' /C calc'!A1",
    "@SUM(1+1)",
    "[link](javascript:alert(1))",
    "![](http://x/y)",
    "# title\n\n---",
    "{{ 7 * 7 }} {% raw %}",
    "%s %(x)s {0}",
    "[bold red]x[/]",
    "x" * 10_000,
    "\ud800",
    "&amp; ]]> <!--",
)


GROUPS = [TEXTS[at : at + 5] for at in range(0, len(TEXTS), 5)]


@pytest.fixture(params=GROUPS, ids=["markup", "control and cells", "templates", "length"])
def nodes(request, here):
    """The nodes that say a text of a session wherever a sample has room for one, a job each."""
    found = dict(zip(names(8)[3:], request.param, strict=False))
    for node, text in found.items():
        keep(here, node, text)
    return found


def keep(here, node, text):
    found = run_of(
        dict.fromkeys(names(3), 100.0),
        3,
        job=node,
        campaign=text,
        environment=text,
        conditions={"program": "stream", "blas_warning": text, text: text},
        provenance={"kernel": text, "suite": text},
    )
    head = found[0].header
    found[0] = replace(found[0], dims={"node": "n001", text: text})
    found += [
        replace(broken(node, "generic", why=text), header=head),
        Sample(head, "n002", "Stream.triad", Decimal(1), "MB/s", own_conditions={"a": text}),
    ]
    samples.write(here, head, found)


def is_plain(told):
    return all(c.isprintable() or c == "\n" for c in told)


def test_no_text_steers_a_terminal(nodes):
    why = [["why", node] for node in nodes]
    for words in (["verdict"], ["nodes"], ["compare", "s0002", "latest"], *why):
        code, told = ask(*words)
        assert code in (0, 1, 2, 3), (words, told)
        assert is_plain(told), words


def test_a_page_holds_no_element_of_anybody_else(nodes, tmp_path):
    for name in ("page.html", "page.md"):
        code, told = ask("report", "--output", str(tmp_path / name))
        assert code in (0, 1, 3), told
    page = (tmp_path / "page.html").read_text()
    script = (html.HERE / "page.js").read_text()
    assert (
        page.count(f"<script>{script}</script>") == 1
    )  # the page's own, which the CSP names by its hash
    page = page.replace(f"<script>{script}</script>", "")
    assert not re.search(
        r"<script|<img|onerror=alert\(1\)>|<svg/onload|javascript:alert\(1\)\"", page
    )
    assert is_plain(page.replace("\t", ""))
    lines = (tmp_path / "page.md").read_text().splitlines()
    code = {at for at, line in enumerate(lines) if line.startswith("    ") and not lines[at - 1]}
    shown = [line for at, line in enumerate(lines) if at not in code]  # code has no elements
    assert not any(re.search(r"(?<!\\)<(script|img|svg/)", line) for line in shown)
    tables = [line for line in lines if line.startswith("|")]
    for one, other in zip(tables, tables[1:], strict=False):
        if re.fullmatch(r"[|:\- ]+", other) and other != one:
            assert len(re.findall(r"(?<!\\)\|", one)) == len(re.findall(r"(?<!\\)\|", other))


def test_no_text_breaks_what_programs_read(nodes, tmp_path):
    for kind in ("junit", "openmetrics"):
        file = tmp_path / kind
        code, told = ask("export", kind, "--output", str(file))
        assert code in (0, 1, 2, 3), told
        assert is_plain(file.read_text()), kind
    ET.parse(tmp_path / "junit")  # noqa: S314  our own
    for line in (tmp_path / "openmetrics").read_text().splitlines():
        assert re.match(r'# |[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? ', line), line
    code, told = ask("verdict", "--json")
    assert json.loads(told)
    code, told = ask("history", "--sql", "SELECT why, environment FROM samples", "--csv")
    cells = [cell for row in csv.reader(io.StringIO(told)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]


def test_a_session_name_that_is_a_path_is_no_name(here):
    for key in ("session", "check", "job", "system", "partition"):
        for name in ("../../x", "/etc/passwd", "a/b", "..", ".hidden", "a b", "x" * 300):
            head = header(3)
            path = here / "here/compute/s0003.Stream.1.jsonl"
            path.write_bytes(samples.dump(replace(head, **{key: name}), []))
            with pytest.raises(samples.UserError, match=f"'{key}'"):
                samples.read_header(path)
