"""Constraints on the points: A OP B, where A and B are products of axes and numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from siteproof import units
from siteproof.errors import Mistake, UserError, hint

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_SPLIT = re.compile(r"(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.{}-]*")
_ALLOWED = "A OP B such as 'transfer <= block' or 'tasks * block >= 4 GiB'; OP: " + ", ".join(
    _OPERATORS
)


class Constraint:
    """One constraint. Raises a mistake of pydantic's if the text is not one."""

    def __init__(self, text: str) -> None:
        found = _SPLIT.fullmatch(text.strip())
        if not found or len(text) > 200:
            raise Mistake(f"'{text}' is not a constraint", _ALLOWED)
        self.text, self.holds_between = text, _OPERATORS[found[2]]
        self.left, self.right = (
            [_factor(part.strip(), text) for part in side.split("*")]
            for side in (found[1], found[3])
        )

    def check_names(self, known: Iterable[str]) -> None:
        """Raises a mistake if it names an axis that no point has."""
        names = set(known)
        for factor in (*self.left, *self.right):
            if isinstance(factor, str) and factor not in names:
                raise Mistake(
                    f"'{factor}' in '{self.text}' is not an axis{hint(factor, names)}",
                    ", ".join(sorted(names)),
                )

    def holds(self, point: Mapping[str, str]) -> bool:
        """Whether a point meets it; a constraint on an axis that the point lacks is met."""
        left, right = _product(self.left, point), _product(self.right, point)
        if left is None or right is None:
            return True
        return self.holds_between(left, right)


def _factor(part: str, text: str) -> str | Fraction:
    """An axis' name, a number, or the bytes of a size."""
    if re.fullmatch(r"[0-9]{1,19}", part):
        return Fraction(part)
    if _NAME.fullmatch(part):
        return part
    try:
        return units.parse(part).to("B")
    except UserError:
        raise Mistake(f"'{part}' in '{text}' is neither an axis nor a number", _ALLOWED) from None


def _product(factors: Iterable[str | Fraction], point: Mapping[str, str]) -> Fraction | None:
    """The value of a side; None if the point lacks an axis, or its value is not a number."""
    product = Fraction(1)
    for factor in factors:
        if isinstance(factor, str):
            value = point.get(factor, "")
            if not re.fullmatch(r"[0-9]+", value):
                return None
            product *= int(value)
        else:
            product *= factor
    return product
