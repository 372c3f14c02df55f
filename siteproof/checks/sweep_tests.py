"""From the sweep files to ReFrame's test classes."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from reframe.core.builtins import parameter, variable
from reframe.core.meta import make_test

from siteproof.checks import loading
from siteproof.errors import UserError, UserErrors
from siteproof.sites.schema import yamlfile
from siteproof.sweeps import caps, reading
from siteproof.sweeps.reading import SweepFile, classes
from siteproof.sweeps.tools import TOOLS


def make(module: str) -> list[type]:
    """A test for each sweep file, as a class of that module; a mistake in one ends the run."""
    try:
        found = reading.load()
    except (UserError, UserErrors) as error:
        loading.refuse(error)
    return [_test(sweep, module) for sweep in found.values()]


def _test(sweep: SweepFile, module: str) -> type:
    tool = TOOLS[sweep.sweep.tool]
    try:
        base = getattr(import_module(tool.module), tool.check)
    except (ImportError, AttributeError) as error:
        loading.refuse(UserError(yamlfile.shown(sweep.path), f"tool {sweep.sweep.tool}: {error}"))
    body = {
        "descr": sweep.sweep.description,
        "sweep_file": sweep,
        "measures": tool.check,
        "headline": (),
        "walk": parameter(classes(sweep.points)),
        "tags": {"sweep"},
    }
    # Every axis of every tool, so that a cap that is no axis of this sweep can be refused.
    known = set(base.var_space)
    only_caps = [name for name in caps.NAMES if name not in known]
    body |= {name: variable(str, value="") for name in only_caps}
    body["only_caps"] = only_caps
    home = str(Path(inspect.getfile(import_module(tool.module))).parent)
    test: type = make_test(sweep.test, (base,), body, module=module, custom_prefix=home)
    return test
