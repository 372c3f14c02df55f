"""What a site states of its nodes, field by field: the keys of `facts:`, and of one field's value.

A value comes from a node, so a pattern is a glob (`*`, `?`, `[abc]`), which takes a time linear in
the value's length, and never a regular expression.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from siteproof.sites.key_types import Model, Names, Rule, any_rule, blanks, mistake
from siteproof.sites.read_fields import Number, number_of
from siteproof.units import count

NODE = "{node}"
MAX_PATTERN, MAX_STARS = 200, 10  # characters of a glob, and wildcards in it
LONGEST = 2000  # characters of a value that can be as stated; parsers cut them at 500
RULES = ("exact", "pattern", "one_of", "about", "at_least", "at_most")


class Fact(Rule):
    """The value that a field must have; a plain text stands for `exact`, a list for `one_of`."""

    exact: str | None = Field(
        None,
        description="The value, as text; the number of blanks does not matter. {node} is the "
        "node's name, here and in the other texts.",
    )
    pattern: Names | None = Field(
        None, description="A glob that the whole value matches, or a list of such: '*E5-2680 v3*'."
    )
    one_of: list[str] | None = Field(None, description="The values allowed, as text.")
    about: str | None = Field(
        None, description="A number, with its unit if the field has one: 128 GiB. Needs tolerance."
    )
    tolerance: str | None = Field(None, description="How far `about` may be missed: 3 %.")
    at_least: str | None = Field(None, description="The lowest number allowed, with its unit.")
    at_most: str | None = Field(None, description="The highest number allowed, with its unit.")
    count: int | None = Field(
        None,
        ge=0,
        le=10**6,
        description="How many fields of this name have such a value; without it, all of them, "
        "and at least one. 0: there is no such field.",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Fact:
        given = [name for name in RULES if getattr(self, name) is not None]
        if len(given) > 1 and given != ["at_least", "at_most"]:
            raise mistake(f"both {' and '.join(given)}", f"one of {', '.join(RULES)}")
        if not given and self.count is None:
            raise mistake("no value", "a value, a list of values, count, " + ", ".join(RULES))
        if (self.about is None) != (self.tolerance is None):
            raise mistake("about and tolerance belong together", "both, or none of them")
        if self.pattern == []:
            raise mistake("an empty list", "at least one value")
        for text in (self.about, self.at_least, self.at_most):
            if text is not None and number_of(text) is None:
                raise mistake(f"'{text}' is not a number", "a number such as 24 or 128 GiB")
        return self

    @field_validator("pattern")
    @classmethod
    def _short_patterns(cls, patterns: list[str] | None) -> list[str] | None:
        for glob in patterns or ():
            if len(glob) > MAX_PATTERN or glob.count("*") > MAX_STARS:
                allowed = f"at most {MAX_PATTERN} characters and {MAX_STARS} times *"
                raise mistake("a pattern that is too long", allowed)
        return patterns

    @field_validator("tolerance")
    @classmethod
    def _is_share(cls, text: str | None) -> str | None:
        if text is not None and not 0 < _share(text) < 1:
            raise mistake(f"'{text}' is not a tolerance", "a share such as 3 %")
        return text

    def met_by(self, value: str, field: str, node: str) -> bool:
        """Whether a value as read of a field is as stated; `field` decides what kB means."""
        if len(value) > LONGEST:
            return False
        if self.pattern is not None:
            globs = [blanks(glob).replace(NODE, node) for glob in self.pattern]
            return any(fnmatchcase(blanks(value), glob) for glob in globs)
        texts = self.one_of if self.one_of is not None else [self.exact]
        if texts != [None]:
            return blanks(value) in [blanks(str(text)).replace(NODE, node) for text in texts]
        return self._number_met(value, field)

    def _number_met(self, value: str, field: str) -> bool:
        low, high = self._ends()
        if low is None and high is None:
            return True  # only counted
        found = number_of(value, field)
        if found is None or any(end and end.unit != found.unit for end in (low, high)):
            return False
        return (not low or low.value <= found.value) and (not high or found.value <= high.value)

    def _ends(self) -> tuple[Number | None, Number | None]:
        """The lowest and the highest number allowed; None: there is none."""
        middle = number_of(self.about or "")
        if middle is None:
            return number_of(self.at_least or ""), number_of(self.at_most or "")
        slack = middle.value * _share(self.tolerance or "")
        return Number(middle.value - slack, middle.unit), Number(middle.value + slack, middle.unit)

    def shown(self, node: str) -> str:
        """The rule in words, for a person: `8 times 16 GB, *`."""
        times = "" if self.count is None else count(self.count, "time")
        return f"{times} {self._rule()}".replace(NODE, node).strip()

    def _rule(self) -> str:
        if self.about is not None:
            return f"{self.about} +- {self.tolerance}"
        if self.at_least is not None or self.at_most is not None:
            bounds = ((">=", self.at_least), ("<=", self.at_most))
            return " and ".join(f"{sign} {text}" for sign, text in bounds if text is not None)
        texts = self.pattern or self.one_of or ([] if self.exact is None else [self.exact])
        return " or ".join(blanks(text) or "empty" for text in texts)


def _share(text: str) -> Fraction:
    """A share such as 3 %; 0 for what is none."""
    found = number_of(text)
    return found.value if found and found.unit == "share" else Fraction(0)


Stated = Annotated[Fact, any_rule(Fact)]


class FactSection(Model):
    """A section of the description of a node, and the facts that the site states of it."""

    description: str = Field("", description="What the section is about, for the report.")
    source: str = Field(description="The document and the paragraph that state it.")
    fields: dict[str, Stated] = Field(
        {},
        description="Expected values, by the name of a field that 'siteproof describe NODE' shows, "
        "or a glob of such names: nic.*.driver.",
    )
    not_stated: str = Field(
        "", description="Why no field is given: what the document states, and no node can show."
    )

    @model_validator(mode="after")
    def _some_fields(self) -> FactSection:
        if bool(self.fields) == bool(self.not_stated):
            what = "both fields and not_stated" if self.fields else "neither fields nor not_stated"
            raise mistake(what, "fields with their values, or not_stated with the reason")
        return self
