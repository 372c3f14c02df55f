"""ReFrame's perflogs, line by line: each different origin is read once."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from siteproof.history.foreign import layouts, origins
from siteproof.history.foreign.figures import File, Line
from siteproof.history.foreign.layouts import JOB, NODES, PRINTED, TIME, UNIX, Layout, bare
from siteproof.history.foreign.origins import MAX_KNOWN, Refused

_CONTROL = bytes({*range(32), 127} - {9})  # no test prints them; they control terminals


class Perflog:
    """A perflog. Raises UserError for a file without a line of names or a given format."""

    PART = ""  # what the number of a line counts, if not lines

    def __init__(self, file: File, data: bytes) -> None:
        self.file, self.data = file, data
        first = data.lstrip().partition(b"\n")[0].decode(errors="replace")
        given = file.options.format
        layout = _names(first) or (layouts.of_format(given) if given else None)
        if layout is None:
            raise layouts.neither(file.path)
        self._follow(layout)

    def _follow(self, layout: Layout) -> None:
        """Read the lines from here on by these columns."""
        self.layout = layout
        self.time, self.unix = layout.place(TIME, PRINTED), layout.place(UNIX)
        self.node, self.job = layout.place(NODES), layout.place(JOB)
        self.origin = lru_cache(MAX_KNOWN)(layout.origin)

    def parts(self) -> Iterator[tuple[int, Any]]:
        """The lines with their numbers."""
        return enumerate(io.BytesIO(self.data), start=1)

    def line(self, raw: bytes) -> Line | None:
        """The values of a line; None if it is empty or a line of names. Raises Refused."""
        text = _text(raw)
        if layout := _names(text):
            self._follow(layout)
            return None
        if not text:
            return None
        texts = self.layout.cut(text)
        origin = self.origin(tuple([texts[place] for place in self.layout.shared]), self.file.site)
        time = self._moment(texts)
        return Line(
            origin,
            time,
            time,
            "" if self.node is None else origins.node(texts[self.node]),
            "" if self.job is None else bare(texts[self.job]),
            [texts[place] for place in self.layout.variables.values()],
        )

    def _moment(self, texts: Sequence[str]) -> datetime:
        """When the job ended, in UTC. Raises Refused."""
        try:
            if self.unix is not None and (exact := bare(texts[self.unix])):
                return origins.instant(float(exact))
            return self.file.in_utc("" if self.time is None else texts[self.time])
        except ValueError:
            raise Refused("no time of the job's end") from None


def _names(text: str) -> Layout | None:
    """The layout of a line of names; None if it is another line."""
    return layouts.of_header(text) if TIME in text else None


def _text(raw: bytes) -> str:
    """A line without its end. Raises Refused for what is not plain text."""
    line = raw[:-1].removesuffix(b"\r")
    if not raw.endswith(b"\n"):
        raise Refused("its line has no end: cut short, or still being written")
    if not line.strip():
        return ""
    if len(line.translate(None, _CONTROL)) < len(line):
        raise Refused("it holds control characters")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None
