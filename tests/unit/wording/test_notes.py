"""Notes: the sentence of each is where it is made, and names nothing that is not given there."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import siteproof
from siteproof.record.finding import Kind, note
from siteproof.wording.findings import Span, full, sentence

MAKERS = {"note": set(), "_note": {"check", "metric"}, "_of_place": {"check", "metric"}}


def test_a_note_is_a_sentence_of_its_fields_and_details():
    text = "{count:n line} of {subject} left out{more: and %s more}"
    one = note(text, subject="n1", check="Hpl", count=1, more=None)
    assert (one.kind, one.subject, one.details) == (Kind.NOTE, "n1", (("count", 1),))
    assert full(one) == "Hpl: 1 line of n1 left out"
    three = note(text, subject="n1", check="Hpl", count=3)
    assert sentence(one, three) == "1 to 3 lines of n1 left out"


def test_what_stands_in_a_value_is_no_template():
    assert sentence(note("found {value}", value="{count} %s")) == "found {count} %s"


def test_a_note_names_only_what_it_is_given_in_forms_that_there_are():
    seen = 0
    for path in sorted(Path(siteproof.__file__).parent.rglob("*.py")):
        for call, given, texts in notes(ast.parse(path.read_text())):
            place = f"{path.name}:{call.lineno}"
            for _, name, form, _ in (part for text in texts for part in Formatter().parse(text)):
                assert name is None or name in given, (place, name)
                assert format(Span([1]), form or "") is not None, place
            seen += bool(texts)
    assert seen > 40


def notes(module: ast.Module) -> Iterator[tuple[ast.Call, set[str], list[str]]]:
    """Each call that makes a note, the names that it gives, and the parts of its text."""
    keys = set(texts_in(module))  # with ** they may be names
    for function in of(module, ast.FunctionDef):
        for call in of(function, ast.Call):
            own = MAKERS.get(getattr(call.func, "attr", getattr(call.func, "id", "")))
            if own is not None:
                named = {one.arg for one in call.keywords if one.arg}
                others = keys if len(named) < len(call.keywords) else set()
                yield call, own | named | others, parts(call, function)


def parts(call: ast.Call, function: ast.FunctionDef) -> list[str]:
    """The strings that its text is made of; a name stands for what was assigned to it last."""
    found = texts_in(call.args[0])
    for name in of(call.args[0], ast.Name):
        given = [
            (one.lineno, one.value)
            for one in of(function, ast.Assign)
            if one.lineno < call.lineno and ast.unparse(one.targets[0]) == name.id
        ]
        found += texts_in(*(value for _, value in sorted(given, key=lambda one: one[0])[-1:]))
    return found


def texts_in(*trees: ast.AST | None) -> list[str]:
    found = (one.value for tree in trees for one in of(tree, ast.Constant))
    return [one for one in found if isinstance(one, str)]


def of(tree: ast.AST | None, kind: type) -> list:
    return [one for one in ast.walk(tree) if isinstance(one, kind)] if tree else []
