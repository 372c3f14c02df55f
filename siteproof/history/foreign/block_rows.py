"""Cells of a block of a perflog to rows: the same for all lines at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import numpy as np

from siteproof.errors import harmless
from siteproof.history.foreign import columns, origins, times
from siteproof.history.foreign.arrays import Bytes, Ints, Objects
from siteproof.history.foreign.cells import NEWLINE, Grid, classes, gather, texts, whole
from siteproof.history.foreign.columns import NODES, TIME, UNIX, Layout, Variable
from siteproof.history.foreign.joined import Lines, Table
from siteproof.history.foreign.origins import Context, Refused
from siteproof.history.foreign.repair import NOT_A_CELL, strange
from siteproof.history.foreign.values import NONE, REFUSED, Figures, numbers

_EQUALS, _DELETE = ord("="), 127
_KINDS = 3  # of figures that are not refused
_MOST_CONTEXTS = 200_000  # remembered at a time: a column that never repeats fills no memory
NAIVE = "times without a zone are taken as {}"
SILENT = "lines of tests that measure nothing"


@dataclass(frozen=True)
class Known:
    """A context, and the names and units of its variables, as the layout has them."""

    context: Context
    variables: tuple[tuple[str, str], ...]


@dataclass
class State:
    """What reading a file gathers. site: for which it is imported. zone: of times without one."""

    table: Table
    site: str
    zone: ZoneInfo | None
    refused: list[tuple[int, str]] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    systems: set[str] = field(default_factory=set)
    known: dict[bytes, Known | str] = field(default_factory=dict)
    nodes: dict[bytes, int] = field(default_factory=dict)


def rows(state: State, lines: Grid, layout: Layout, numbers_of: Ints) -> None:
    """Add the lines' figures to the table, and what cannot be read to the refused."""
    why = np.full(len(numbers_of), "", dtype=object)
    _controlled(lines, why)
    values = [_assigned(lines, layout, variable) for variable in layout.variables]
    known, each = _contexts(state, lines, layout, [prefix for prefix, _ in values])
    for i, held in enumerate(known):
        if isinstance(held, str):
            why[(each == i) & (why == "")] = held
    figures = [numbers(gather(lines.text, *cells), cells[1] - cells[0]) for _, cells in values]
    silent = _silent(known, each, figures)
    node = _nodes(state, lines, layout, why)
    time = _times(state, lines, layout, why, ~silent)
    job = _jobs(lines, layout, why)
    for found in figures:
        for at in np.flatnonzero((found.kinds == REFUSED) & (why == "")):
            why[at] = f"'{found.digits[at][:40]}' is no number that a test gives"
    state.told[SILENT] += int((silent & (why == "")).sum())
    kept = np.flatnonzero((why == "") & ~silent)
    each = each[kept]
    head = np.array(
        [state.table.head(held.context) if isinstance(held, Known) else 0 for held in known]
    )
    state.table.add(
        Lines(numbers_of[kept], time[kept], time[kept], job[kept], head[each], node[kept]),
        [
            (_templates(state.table, known, each, found.kinds[kept], column), found.some(kept))
            for column, found in enumerate(figures)
        ],
    )
    state.refused += [(int(numbers_of[i]), why[i]) for i in np.flatnonzero(why != "")]


def _controlled(lines: Grid, why: Objects) -> None:
    """Refuse lines with control characters, which no test prints and a terminal obeys."""
    if lines.is_clean:
        return
    odd = np.flatnonzero((lines.text < 32) | (lines.text == _DELETE))
    odd = odd[~np.isin(lines.text[odd], (0, 9, NEWLINE, NOT_A_CELL[0]))]
    zero = np.flatnonzero(lines.text[: lines.ends[-1, -1]] == 0)
    for place in (*odd, *zero):
        i = int(np.searchsorted(lines.ends[:, -1], place))
        if i < len(why) and lines.first[i] <= place < lines.ends[i, -1]:
            why[i] = "it holds control characters"


def _assigned(
    lines: Grid, layout: Layout, variable: Variable
) -> tuple[tuple[Ints, Ints] | None, tuple[Ints, Ints]]:
    """Where the name and where the number of `copy=24939.4` stand; no name in `24939.4`."""
    starts, ends = lines.span(variable.value)
    if variable.value not in layout.assigned:
        return None, (starts, ends)
    equal = gather(lines.text, starts, ends) == _EQUALS
    at = np.where(equal.any(axis=1), equal.argmax(axis=1), -1)
    return (starts, np.maximum(starts, starts + at)), (starts + at + 1, ends)


# ---- contexts


def _contexts(
    state: State, lines: Grid, layout: Layout, prefixes: Sequence[tuple[Ints, Ints] | None]
) -> tuple[list[Known | str], Ints]:
    """The different contexts of the lines, or why one is none, and which is each line's."""
    groups = [gather(lines.text, *lines.span(a, b)) for a, b in layout.runs]
    groups += [gather(lines.text, *prefix) for prefix in prefixes if prefix]
    one, each = classes(groups)
    if len(state.known) > _MOST_CONTEXTS:
        state.known.clear()
    found = []
    for row in one:
        key = repr(layout.names).encode() + b"".join(
            group[row].tobytes().rstrip(b"\0") + b"\n" for group in groups
        )
        if key not in state.known:
            try:
                state.known[key] = _known(state, lines, layout, int(row), prefixes)
            except (Refused, UnicodeDecodeError) as error:
                state.known[key] = str(error) if isinstance(error, Refused) else "not UTF-8"
        found.append(state.known[key])
    return found, each


def _known(
    state: State,
    lines: Grid,
    layout: Layout,
    row: int,
    prefixes: Sequence[tuple[Ints, Ints] | None],
) -> Known:
    cells = {column: lines.cell(row, column).decode() for column in layout.context}
    held = columns.fields(layout, cells)
    if odd := strange(held):
        raise Refused(f"'{harmless(held[odd][:40])}' is no {odd}")
    variables = []
    for variable, prefix in zip(layout.variables, prefixes, strict=True):
        word = ""
        if prefix:
            word = lines.text[prefix[0][row] : prefix[1][row]].tobytes().decode()
        if variable.name and word not in ("", variable.name):
            raise Refused(f"'{harmless(word[:40])}' in the column of {variable.name}")
        name = variable.name or word or held.get("perf_var", "")
        if any(c in name for c in "=|") or len(name) > 200:
            raise Refused(f"'{harmless(name[:40])}' is no name of a variable")
        unit = "" if variable.unit is None else _unit(cells[variable.unit])
        variables.append((harmless(name), unit))
    context = origins.of(held, state.site, tuple(name for name, _ in variables))
    system = context.conditions.get("system", context.system)
    state.systems |= {system} if system else set()
    return Known(context, tuple(variables))


def _unit(cell: str) -> str:
    """A unit without `units=`, and empty where there is none."""
    text = cell.rpartition("=")[2].strip()
    return "" if text in ("null", "None") else text


def _templates(
    table: Table, known: Sequence[Known | str], each: Ints, kind: Ints, column: int
) -> Ints:
    pairs: Ints = each * _KINDS + kind
    ids = np.zeros(len(known) * _KINDS, dtype=np.int64)
    for pair in np.flatnonzero(np.bincount(pairs, minlength=len(ids))).tolist():
        held = known[pair // _KINDS]
        if isinstance(held, Known):  # the others' lines are refused
            ids[pair] = table.template(held.context, *held.variables[column], pair % _KINDS)
    return ids[pairs]


def _silent(known: Sequence[Known | str], each: Ints, figures: Sequence[Figures]) -> np.ndarray:
    """Lines of tests without a performance variable."""
    nothing = np.ones(len(each), dtype=bool)
    for column, found in enumerate(figures):
        unnamed = np.array([isinstance(k, Known) and not k.variables[column][0] for k in known])
        nothing &= (found.kinds == NONE) & unnamed[each]
    return nothing


# ---- nodes, times and jobs


def _nodes(state: State, lines: Grid, layout: Layout, why: Objects) -> Ints:
    column = layout.column(NODES)
    if column is None:
        return np.full(len(why), state.table.node(""))
    cells = gather(lines.text, *lines.span(column))
    one, each = classes([cells])
    found = np.zeros(len(one), dtype=np.int64)
    for i, word in enumerate(cells[one].view(f"S{cells.shape[1]}").ravel().tolist()):
        if word not in state.nodes:
            try:
                state.nodes[word] = state.table.node(origins.node(word.decode()))
            except UnicodeDecodeError:
                why[(each == i) & (why == "")] = "not UTF-8"
        found[i] = state.nodes.get(word, 0)
    if len(state.nodes) > _MOST_CONTEXTS:
        state.nodes.clear()
    return found[each]


def _times(state: State, lines: Grid, layout: Layout, why: Objects, wanted: np.ndarray) -> Ints:
    unix, local = layout.column(UNIX), layout.column(TIME)
    found = np.full(len(why), times.BAD)
    if local is not None:
        found, naive = times.of_texts(lines.text, *lines.span(local), state.zone)
        if naive and unix is None:
            state.told[NAIVE.format(state.zone or "UTC")] = 0
    if unix is not None:
        exact = times.of_seconds(gather(lines.text, *lines.span(unix)))
        if local is not None:
            apart = (found != times.BAD) & ~times.agree(exact, found)
            why[apart & (why == "") & wanted] = "its two times differ by more than a zone"
        found = np.where(exact == times.BAD, found if local is not None else exact, exact)
    why[(found == times.BAD) & (why == "") & wanted] = "no time at which the job ended"
    return found


def _jobs(lines: Grid, layout: Layout, why: Objects) -> Ints | Objects:
    """The jobs' numbers, without `jobid=`; texts where one is none."""
    column = layout.column("jobid")
    if column is None:
        return np.full(len(why), "", dtype=object)
    cells = _without(gather(lines.text, *lines.span(column)), b"jobid=")
    if (numbered := whole(cells)) is not None:
        return numbered
    odd = ((cells > 126) | ((cells <= 32) & (cells != 0))).any(axis=1)
    why[odd & (why == "")] = "no number of a job"
    cells[odd] = 0
    found = texts(cells).astype(object)
    found[np.isin(found, ("null", "None"))] = ""
    return found


def _without(cells: Bytes, word: bytes) -> Bytes:
    if not cells.shape[1] > len(word):
        return cells
    with_word = (cells[:, : len(word)] == list(word)).all(axis=1)
    if with_word.any():
        cells[with_word] = np.pad(cells[with_word][:, len(word) :], ((0, 0), (0, len(word))))
    return cells
