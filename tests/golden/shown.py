"""What a page of the report shows, as text that a diff is readable of."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_MADE = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_BLOCKS = {
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "li",
    "tr",
    "caption",
    "figcaption",
    "summary",
    "dt",
    "dd",
    "title",
    "div",
    "section",
    "details",
    "header",
    "footer",
    "nav",
    "pre",
    "text",
}
_HEADINGS = {
    "title": "% ",
    "h1": "# ",
    "h2": "## ",
    "h3": "### ",
    "h4": "#### ",
    "li": "- ",
    "caption": "caption: ",
    "figcaption": "figure: ",
    "summary": "summary: ",
}
_UNSEEN = {"style", "script"}


def sha256(text: str) -> str:
    """The first 16 digits, which are enough to see a change."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest(drawing: str) -> str:
    """What identifies an SVG: its numbers to one digit, so that no last bit of a library counts."""
    bare = _MADE.sub("", drawing)
    rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".replace("-0.0", "0.0"), bare)
    named = _named_by_order(rounded)
    return (
        f"drawing of {len(re.findall('<path|<use|<rect|<circle|<line|<text', named))} parts, "
        f"sha256 {sha256(named)}"
    )


def _named_by_order(drawing: str) -> str:
    """Ids that a library draws by chance become their place in the file."""
    names: dict[str, str] = {}
    for name in re.findall(r'\bid="([^"]+)"', drawing):
        names.setdefault(name, f"id{len(names)}")
    return re.sub(
        r'(id="|href="#|url\(#)([^")]+)',
        lambda found: found[1] + names.get(found[2], found[2]),
        drawing,
    )


class _Text(HTMLParser):
    """One line a block, cells between bars, a drawing as its title and digest."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.line = ""
        self.lead = ""
        self.unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A block begins a line; a link or an image says where it leads."""
        known = dict(attrs)
        if tag in _UNSEEN:
            self.unseen += 1
        elif tag in _BLOCKS:
            self.end_line()
            self.lead = _HEADINGS.get(tag, "")
        elif tag in ("td", "th"):
            self.line += "| "
        elif tag == "br":
            self.end_line()
        elif tag == "a" and (known.get("href") or ""):
            self.line += f"<{_address(known['href'] or '')}>"
        elif tag == "img":
            source = known.get("src") or ""
            self.line += f"[image {known.get('alt') or ''} sha256 {sha256(source)}]"
        for key in ("title", "aria-label"):
            if known.get(key):
                self.line += f"[{key}: {known[key]}] "

    def handle_endtag(self, tag: str) -> None:
        """A block's end ends its line."""
        if tag in _UNSEEN:
            self.unseen -= 1
        elif tag in _BLOCKS:
            self.end_line()
        elif tag in ("td", "th"):
            self.line += " "

    def handle_data(self, data: str) -> None:
        """What is read."""
        if not self.unseen:
            self.line += data

    def end_line(self) -> None:
        """Keep a line, if there is anything on it."""
        text = " ".join(self.line.split())
        if text:
            self.lines.append(self.lead + text)
        self.line, self.lead = "", ""


def _address(address: str) -> str:
    """Where a link leads; of a table that the page carries its digest, of a program nothing."""
    kind, _, _ = address.partition(",")
    if not address.startswith("data:"):
        return address
    return kind if kind.startswith("data:text/plain") else f"{kind}, sha256 {sha256(address)}"


def text_of(page: str) -> str:
    """The text of a page of HTML, line by line."""
    page = re.sub(r"<svg\b.*?</svg>", _as_text, page, flags=re.DOTALL)
    reader = _Text()
    reader.feed(page)
    reader.end_line()
    return "\n".join(reader.lines) + "\n"


def _as_text(found: re.Match[str]) -> str:
    """A drawing as its words, in order, and its digest."""
    drawing = found[0]
    words = re.findall(
        r"<(?:text|title|desc)\b[^>]*>(.*?)</(?:text|title|desc)>", drawing, re.DOTALL
    )
    said = "; ".join(re.sub(r"<[^>]+>", " ", word).strip() for word in words)
    return f"<p>[{digest(drawing)}: {said}]</p>"
