"""A YAML file as plain data that knows its lines; every mistake in it is collected, not raised.

A value with the tag `!gap` is one that nobody has given yet: its text is what to fill in. The key
is left out of the data, as if it were not written, and Document.gaps has its place and its text.

All scalars stay the text that the person wrote ("806.4", "off", "001"), except below the keys
`reframe` and `extras`, whose content is handed on verbatim and therefore has YAML's own types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from siteproof import files
from siteproof.errors import UserError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCT = yaml.constructor.SafeConstructor()
_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, Callable[[yaml.ScalarNode], Any]] = {
    f"{_TAG}int": _CONSTRUCT.construct_yaml_int,
    f"{_TAG}float": _CONSTRUCT.construct_yaml_float,
    f"{_TAG}bool": _CONSTRUCT.construct_yaml_bool,
}
_TEXT_TAGS = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "timestamp", "value")}
_NULL = f"{_TAG}null"
GAP = "!gap"
_LEFT_OUT = object()  # what a gap is read as; no mapping or list takes it
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
VERBATIM = ("reframe", "extras")
MAX_BYTES = 2_000_000  # a thousand times a site of 347 nodes
MAX_NODES = 200_000  # after aliases are followed: the limit that stops a YAML bomb
MAX_DEPTH = 40
MAX_TOLD = 500  # characters of a mistake
MAX_MISTAKES = 1000  # of one file that are named; the others are counted

ENDLESS = ("while scanning a simple key", "while scanning a quoted", "while parsing a flow")

Loc = tuple[Any, ...]


class Stop(Exception):
    """The file cannot be read any further."""


class Document:
    """One file: its data (None if unreadable), the line of each key, and its mistakes so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data: Any = None
        self.mistakes: list[UserError] = []
        self.untold = 0  # mistakes after the first MAX_MISTAKES, which are only counted
        self.warnings: list[UserError] = []
        self.gaps: dict[Loc, str] = {}
        self._lines: dict[Loc, int] = {(): 1}
        self._spoilt: set[Loc] = set()
        self._empty: set[Loc] = set()

    def line(self, loc: Loc) -> int:
        """The line of a key, or of the nearest key around it."""
        while loc not in self._lines:
            loc = loc[:-1]
        return self._lines[loc]

    def place(self, loc: Loc, line: int) -> None:
        """Remember the line of a key."""
        self._lines[loc] = line

    @property
    def count(self) -> int:
        """How many mistakes there are so far."""
        return len(self.mistakes) + self.untold

    @property
    def is_full(self) -> bool:
        """Whether further mistakes are only counted."""
        return len(self.mistakes) >= MAX_MISTAKES

    def add(
        self,
        loc: Loc,
        what: str,
        allowed: str | Iterable[str] = (),
        hint: str = "",
        *,
        line: int = 0,
        inside: bool = False,
    ) -> None:
        """Note a mistake at a key, unless it is only the consequence of one at the same key.

        line: the one to show, if it is not the key's. inside: the mistake is the key itself, so it
        is reported at the mapping that has it.
        """
        if self.spoilt(loc):
            return
        if self.is_full:
            self.untold += 1
            return
        place = clip(_keys(loc[:-1] if inside else loc)) or self.path.name
        where = f"{shown(self.path)}:{line or self.line(loc)}"
        text = what if len(what) <= MAX_TOLD else f"{what[:MAX_TOLD]}..."
        self.mistakes.append(UserError(where, f"{text} in {place}", allowed, hint))

    def warn(self, loc: Loc, what: str) -> None:
        """Note what is possible and not plausible, unless the key has a mistake."""
        if not self.spoilt(loc):
            where = f"{shown(self.path)}:{self.line(loc)}"
            place = clip(_keys(loc)) or self.path.name
            self.warnings.append(UserError(where, f"{what} in {place}"))

    def gap_below(self, loc: Loc) -> bool:
        """Whether a key, or one below it, is a gap."""
        return any(gap[: len(loc)] == loc for gap in self.gaps)

    def listed_gaps(self) -> list[UserError]:
        """Each gap with its place and what to fill in, in the order of the lines."""
        gaps = sorted(self.gaps.items(), key=lambda gap: self.line(gap[0]))
        return [
            UserError(f"{shown(self.path)}:{self.line(loc)}", f"{clip(_keys(loc))}: {text}")
            for loc, text in gaps
        ]

    def spoil(self, loc: Loc) -> None:
        """Remember that a key is wrong, so that no other mistake is noted at it."""
        self._spoilt.add(loc)

    def spoilt(self, loc: Loc) -> bool:
        """Whether a key, or one around it, is known to be wrong."""
        return any(loc[:n] in self._spoilt for n in range(1, len(loc) + 1))

    def note_empty(self, below: Loc) -> None:
        """Note keys without a value whose value may be left out: what was meant is not known."""
        for loc in sorted(self._empty, key=self.line):
            if loc[: len(below)] == below:
                self.add(loc, "an empty value", hint="Give a value, or remove the key")
                self.spoil(loc)

    def sorted_mistakes(self) -> list[UserError]:
        """The mistakes in the order of their lines, each once; how many more there are."""
        unique = {str(error): error for error in self.mistakes}
        found = sorted(unique.values(), key=lambda e: int(e.where.rpartition(":")[2]))
        if self.untold:
            found.append(UserError(shown(self.path), f"{self.untold} more mistakes"))
        return found


def _keys(loc: Loc) -> str:
    """The keys on the way to a place, with dots between."""
    return ".".join(part for part in loc if isinstance(part, str))


def shown(path: Path) -> Path:
    """The path for a message: relative if it is below the current folder."""
    cwd = Path.cwd()
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path


def clip(text: object) -> str:
    """The text, shortened so that a mistake stays one readable line."""
    words = " ".join(_UNPRINTABLE.sub("?", str(text)).split())
    return words if len(words) <= 60 else f"{words[:57]}..."


def read(path: Path) -> Document:
    """Read a file that must hold one mapping. Never raises: see Document.mistakes."""
    document = Document(path)
    try:
        root = _compose(document)
        document.data = _Reader(document).plain(root, (), typed=False)
    except Stop:
        return document
    if not isinstance(document.data, dict):
        document.add((), "not a mapping of keys", hint="Write 'KEY: value' lines")
        document.data = None
    return document


def _compose(document: Document) -> yaml.Node:
    text = text_of(document)
    try:
        _check_depth(document, text)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        # What has no end is noticed a line or more below the one where it begins.
        begins = str(error.context).startswith(ENDLESS)
        mark = (begins and error.context_mark) or error.problem_mark or error.context_mark
        what = f"bad YAML: {clip(error.problem or error.context)}"
        document.add((), what, line=mark.line + 1 if mark else 1)
    except yaml.reader.ReaderError as error:
        document.add((), f"bad YAML: {clip(error.reason)}")
    else:
        if root is not None:
            return root
        document.add((), "no content", "a mapping of keys, or '{}'")
    raise Stop


def _check_depth(document: Document, text: str) -> None:
    """Refuse what would overflow the C stack of libyaml's composer: events use none."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                document.add((), "nested too deeply", f"at most {MAX_DEPTH} levels", line=line)
                raise Stop
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def text_of(document: Document, most: int = MAX_BYTES) -> str:
    """The file's text, of at most so many bytes. Raises Stop after noting the mistake."""
    try:
        raw = files.read_named(document.path, most)
    except FileNotFoundError:
        hint = "Create it with the content '{}'" if document.path.suffix == ".yaml" else ""
        document.add((), "no such file", hint=hint)
        raise Stop from None
    except OSError as error:
        document.add((), f"cannot be read: {error.strerror}")
        raise Stop from None
    except UserError as error:
        too_large = f"more than {most} bytes" if isinstance(error, files.TooLarge) else ""
        document.add((), too_large or error.what)
        raise Stop from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        document.add((), "bytes that are not UTF-8", hint="Save it as UTF-8", line=line)
        raise Stop from None
    if match := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        document.add((), "a control character", hint="Remove it", line=line)
        raise Stop
    return text


class _Reader:
    """Turns YAML's nodes into data and notes the line of each key."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._budget = MAX_NODES
        self._open: set[int] = set()

    def plain(self, node: yaml.Node, loc: Loc, *, typed: bool) -> Any:
        self._budget -= 1
        if id(node) in self._open:
            self._stop(node, loc, "an alias that contains itself")
        if self._budget < 0:
            self._stop(node, loc, f"more than {MAX_NODES} values, aliases followed")
        if len(loc) > MAX_DEPTH:  # by way of aliases
            self._stop(node, loc, "nested too deeply")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
                return self._mapping(node, loc, typed=typed)
            if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
                return self._sequence(node, loc, typed=typed)
            return self._scalar(node, loc, typed=typed)
        finally:
            self._open.discard(id(node))

    def _stop(self, node: yaml.Node, loc: Loc, what: str) -> None:
        self._document.add(loc[:3], what, line=node.start_mark.line + 1)
        raise Stop

    def _mapping(self, node: yaml.MappingNode, loc: Loc, *, typed: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, loc, line)
            if key is None:
                continue
            if key in result or (*loc, key) in self._document.gaps:
                first = self._document.line((*loc, key))
                what = f"key '{clip(key)}' a second time (first on line {first})"
                self._document.add(loc, what, line=line)
                continue
            self._document._lines[(*loc, key)] = line
            below = typed or key in VERBATIM
            value = self.plain(value_node, (*loc, key), typed=below)
            if value is _LEFT_OUT:
                continue
            result[key] = value
            if value_node.tag == _NULL and value_node.value == "":  # a written null is a value
                self._document._empty.add((*loc, key))
        return result

    def _key(self, node: yaml.Node, loc: Loc, line: int) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag in _TEXT_TAGS:
            text: str = node.value
            if not _UNPRINTABLE.search(text):
                return text
        is_merge = getattr(node, "value", "") == "<<"
        what = "a merge key '<<'" if is_merge else "a key that is not plain text"
        self._document.add(loc, what, hint="Write each key out", line=line)
        return None

    def _sequence(self, node: yaml.SequenceNode, loc: Loc, *, typed: bool) -> list[Any]:
        result: list[Any] = []
        for index, item in enumerate(node.value):
            # A gap is no item: its place is that of YAML, counted from below 0.
            place = -1 - index if item.tag == GAP else len(result)
            self._document._lines[(*loc, place)] = item.start_mark.line + 1
            value = self.plain(item, (*loc, place), typed=typed)
            if value is not _LEFT_OUT:
                result.append(value)
        return result

    def _scalar(self, node: yaml.Node, loc: Loc, *, typed: bool) -> Any:
        if node.tag == _NULL and isinstance(node, yaml.ScalarNode):
            return None
        line = node.start_mark.line + 1
        if node.tag == GAP and isinstance(node, yaml.ScalarNode) and loc:
            return self._gap(node, loc, line)
        if node.tag not in _TEXT_TAGS or not isinstance(node, yaml.ScalarNode):
            allowed = "plain values, or !gap 'what is to be filled in'"
            self._document.add(loc, f"YAML tag '{clip(node.tag)}'", allowed, line=line)
            self._document.spoil(loc)
            return None
        if _UNPRINTABLE.search(node.value):
            self._document.add(loc, "a control character", hint="Remove it", line=line)
            self._document.spoil(loc)
            return None
        if typed and node.tag in _TYPES:
            try:
                return _TYPES[node.tag](node)
            except (ValueError, KeyError):
                return node.value
        return node.value

    def _gap(self, node: yaml.ScalarNode, loc: Loc, line: int) -> object:
        """Note a gap: its text is what is to be filled in, so it must have one."""
        text = " ".join(_UNPRINTABLE.sub("?", node.value).split())
        if not text:
            self._document.add(
                loc, "a gap without a text", hint="Say what is to be filled in", line=line
            )
            self._document.spoil(loc)
        self._document.gaps[loc] = text if len(text) <= MAX_TOLD else f"{text[:MAX_TOLD]}..."
        return _LEFT_OUT
