"""What a reader, a screen reader or a browser finds on an HTML page."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}
ADDRESSES = {"href", "src", "srcset", "action", "data", "poster", "xlink:href", "background"}


class Page(HTMLParser):
    """A page taken apart. Raises AssertionError where elements are not nested as they should."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.headings: list[tuple[int, str]] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.leads: dict[str, str] = {}
        self.in_lead = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        held = {name: value or "" for name, value in attrs}
        self.tags.append((tag, held))
        self.ids += [held["id"]] if "id" in held else []
        self.addresses += [held[name] for name in ADDRESSES & held.keys()]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append((int(tag[1]), ""))
        if tag == "p" and held.get("class") == "lead":
            self.in_lead = self.ids[-2]
            self.leads[self.in_lead] = ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"
        if tag == "p":
            self.in_lead = ""

    def handle_data(self, data):
        if {"style", "script"} & set(self.open):
            return
        self.words.append(data)
        if self.in_lead:
            self.leads[self.in_lead] += data
        if self.headings and self.open and self.open[-1] == f"h{self.headings[-1][0]}":
            level, text = self.headings[-1]
            self.headings[-1] = level, text + data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        """What is read, in one line."""
        return " ".join("".join(self.words).split())

    def lead(self, section: str) -> str:
        """The sentence at the begin of a chapter."""
        return " ".join(self.leads[f"section-{section}"].split())
