"""What a plain ReFrame test has measured: a test of the centre's own, without Siteproof's classes.

Its samples are written where it runs with our settings, and its perflogs can be imported. Both have
the same names: `Test %n=4` is the check `Test` with the dimension n.
"""

from __future__ import annotations

from siteproof.errors import harmless

TEST = "plain_test"  # provenance: the test's file; no other samples have it
REFERENCE = "reference "  # provenance: its beginning, before the variable


def named(display_name: str) -> tuple[str, dict[str, str]]:
    """The test's class and its parameters, from `Stream %threads=4`, as ReFrame displays it."""
    check, *parameters = display_name.split(" %")
    pairs = [parameter.partition("=") for parameter in parameters]
    return check, {harmless(key): harmless(value) for key, _, value in pairs}


def reference(value: object, lower: object, upper: object, unit: str) -> str:
    """ReFrame's reference as its 3.x perflogs print it; empty where there is none.

    lower, upper: shares by which a value may differ; None: no limit.
    """
    if lower is None and upper is None:
        return ""
    shown = ["null" if limit is None else f"{limit}" for limit in (lower, upper)]
    return harmless(f"{value} (l={shown[0]}, u={shown[1]}) {unit}".strip())
