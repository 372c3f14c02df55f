"""A table of cases as one test: all rows run, and those that fail are named together.

    @rows("said, means", [("idle", "ui"), ("down", "o")])
    def test_each_state_is_known(said, means): ...

As pytest.mark.parametrize, where a row costs so little that a test of its own would cost more. A
test that takes `tmp_path` or `monkeypatch` has one of its own for each row; all rows share other
fixtures. A row that skips fails, as it would take the others with it: leave it out of the table.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

LONGEST = 200  # characters of a row that are shown


def rows(names: str, table: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One test of all rows of a table. names: of the columns, with commas."""
    columns = [name.strip() for name in names.split(",")]
    held = [tuple(row) if len(columns) > 1 else (row,) for row in table]
    assert held, "a test without a row would test nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        known = inspect.signature(test)
        assert set(columns) <= set(known.parameters), f"{test.__name__} does not take {names}"

        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            wrong: list[BaseException] = []
            for number, row in enumerate(held):
                given = {**fixtures, **dict(zip(columns, row, strict=True))}
                with pytest.MonkeyPatch.context() as own:
                    if "tmp_path" in fixtures:
                        given["tmp_path"] = fixtures["tmp_path"] / str(number)
                        given["tmp_path"].mkdir()
                    if "monkeypatch" in fixtures:
                        given["monkeypatch"] = own
                    try:
                        test(**given)
                    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                        error.add_note(f"row {number}: {names} = {str(row)[:LONGEST]}")
                        wrong.append(error)
            if len(wrong) == 1:
                raise wrong[0]
            if wrong:
                raise BaseExceptionGroup(f"{len(wrong)} of {len(held)} rows", wrong)

        others = [one for name, one in known.parameters.items() if name not in columns]
        whole.__signature__ = known.replace(parameters=others)  # type: ignore[attr-defined]
        return whole

    return decorate
