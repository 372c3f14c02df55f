"""What others may have written is read by siteproof/files alone; each other place says why.

A name of a function stands for all that it opens or parses. A reason that is needed no longer
fails, too.
"""

import ast
from functools import cache
from pathlib import Path

import pytest
import sources
from clone import TOP

READERS = {"open", "read_text", "read_bytes", "load", "loads", "fdopen", "scandir", "memmap"}
MODULES = {"json", "gzip", "yaml", "os", "tomllib", "pickle", "np", "numpy", "tarfile", "zipfile"}
BARE = {"open", "NodeSet", "RangeSet"}
YAML = {"load", "safe_load", "compose", "parse", "full_load", "unsafe_load"}
WHY = {
    "siteproof/services/desktop.py:browser": "what Chromium writes, in a private folder",
    "siteproof/services/desktop.py:_ended": "of what it has written there",
    "siteproof/services/runner.py:_in_child": "/dev/null",
    "siteproof/services/runner.py:_live": "/dev/null",
    # the reader itself, and what it stands on
    "siteproof/files.py:named": "the reader",
    "siteproof/files.py:_step": "the reader",
    "siteproof/files.py:_root": "the reader",
    "siteproof/files.py:names": "the reader",
    "siteproof/files.py:write": "a file of its own, made anew",
    "siteproof/files.py:append": "no link, no wait; nothing but the last byte is read",
    "siteproof/files.py:_must_give_way": "no link, no wait; the caller looks what is there",
    "siteproof/record/samples.py:_is_of_another": "a stream of what files.write has opened",
    "siteproof/record/manifest.py:_folders": "names of files only",
    "siteproof/record/manifest.py:id": "a set that parse has counted",
    "siteproof/files.py:loads": "the reader",
    "siteproof/nodesets.py:parse": "counted before they are made",
    "siteproof/nodesets.py:numbers": "counted before they are made",
    "siteproof/nodesets.py:_twice": "the parts of a set that was counted",
    # what was opened by the reader
    "siteproof/record/samples.py:_opened": "a stream of what files.opened has opened",
    "siteproof/record/samples.py:_loads": "a line of at most 1 MiB, of flat objects of texts",
    "siteproof/record/descriptions.py:read": "bytes that the reader gave, unpacked up to a limit",
    "siteproof/history/foreign/formats.py:_loaded": "its NaN are figures; depth is looked at",
    "siteproof/history/tables.py:_check": "a stream of what the reader has opened, for its digest",
    # names of files, whose content goes through the reader
    "siteproof/record/samples.py:_folders": "names of files only",
    "siteproof/record/samples.py:_in_folder": "names of files only",
    "siteproof/history/refresh.py:_folders": "names of files only",
    # texts that we have made, or that a pattern has let pass
    "siteproof/history/refresh.py:_join": "objects of texts that samples.py has read",
    "siteproof/history/values.py:failures": "rows of our history: objects of texts",
    "siteproof/history/values.py:_kind": "rows of our history: objects of texts",
    "siteproof/report/past.py:_same": "rows of our history: objects of texts",
    "siteproof/trend/lines.py:_stored": "rows of our history: objects of texts",
    "siteproof/trend/propose.py:_sample": "rows of our history: objects of texts",
    "siteproof/cli/plan.py:_described": "what our own process prints",
    "siteproof/cli/plan.py:_memory": "memory of our own process, for what it prints",
    "siteproof/installed.py:why_not": "the clone's own files, before a library is imported",
    # pure parsers: text of a limited size in, and nothing but readings out
    "siteproof/parsers/values.py:load": "numbers stay text, depth is an error of the output",
    # our own package and clone
    "siteproof/checks/data_folder.py:_ask": "a file of the package",
    "siteproof/checks/session.py:_packages": "a table of the clone",
    "siteproof/cli/__init__.py:_commands": "files of the package",
    "siteproof/report/html.py:page": "a file of the package",
    "siteproof/report/value_tables.py:attached": "a file of the package",
    "siteproof/report/recompute.py:main": "runs without Siteproof, on a file that its user names",
    "siteproof/history/tables.py:version": "files of the package",
    # YAML of a site, from a text that the reader gave
    "siteproof/sites/schema/yamlfile.py:_compose": "a text of at most 2 MB; its depth is seen",
    "siteproof/sites/schema/yamlfile.py:_check_depth": "events: no depth, no alias is followed",
    "siteproof/trend/baselines.py:apply": "a file that has just been linted",
    "siteproof/spack/registered.py:joined": "a text of at most 2 MB; aliases stay one object",
    # written, or locked
    "siteproof/history/tables.py:write": "a file of its own, in a folder of this user",
    "siteproof/history/tables.py:_drain": "a pipe from our own thread",
    "siteproof/history/extract.py:_copy": "a file of its own, made anew",
    "siteproof/spack/build.py:run": "no link, no wait; nothing is read",
    "siteproof/files.py:no_link": "no link, no wait; nothing is read",
    "siteproof/locks.py:_draft": "a file of its own, made anew",
    "siteproof/locks.py:_create_without_links": "a file of its own, made anew",
    "siteproof/locks.py:_fill": "a file of its own, made anew",
    "siteproof/locks.py:numbers": "names of files only",
    "siteproof/locks.py:_start_of": "the kernel's /proc",
    "siteproof/locks.py:_line": "the kernel's /proc",
    "siteproof/record/manifest.py:watched": "the kernel's /proc",
    "siteproof/record/manifest.py:still_runs": "the kernel's /proc",
    # the scratch folder of a service's test, which this process has made for itself
    "siteproof/services/http.py:put": "a file of its own, made anew",
    "siteproof/services/http.py:get": "a file of its own, with a limit",
    "siteproof/services/irods.py:put": "a file of its own, made anew",
    "siteproof/services/irods.py:get": "a file of its own, with a limit",
    "siteproof/services/irods.py:_opened": "a data object at the service, not a file here",
    "siteproof/services/s3.py:put": "a file of its own, made anew",
    "siteproof/services/s3.py:get": "a file of its own, with a limit",
    "siteproof/services/s3.py:etag": "a file of its own, made anew",
    "siteproof/services/sftp.py:begin": "a file of its own, with a limit",
    "siteproof/services/ssh.py:login": "a file of its own, with a limit",
    "siteproof/services/transfers.py:random_file": "a file of its own, made anew",
    "siteproof/services/transfers.py:run": "files of its own, with a limit",
    "siteproof/services/transfers.py:beginning": "a file of its own, of which a part is read",
    "siteproof/services/transfers.py:checksum": "a file of its own, of which no byte is kept",
}


@cache
def found() -> dict[str, list[str]]:
    """Where something is opened or parsed: file and function, and the calls."""
    places: dict[str, list[str]] = {}
    for path in (*sources.of("siteproof", "checks"), TOP / "reframe_settings.py"):
        for call in (n for n in sources.nodes(path) if isinstance(n, ast.Call)):
            if name := _reads(call):
                place = f"{path.relative_to(TOP)}:{_function(path, call)}"
                places.setdefault(place, []).append(name)
    return places


def _reads(call: ast.Call) -> str:
    """What a call opens or parses with; empty: it does not."""
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in BARE and (call.args or call.keywords) else ""
    if not isinstance(call.func, ast.Attribute):
        return ""
    base = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    name = call.func.attr
    if base in ("files", "safe", "source", "places", "nodesets"):
        return ""
    if base == "yaml":
        return f"yaml.{name}" if name in YAML else ""
    if name in ("load", "loads"):
        return f"{base}.{name}" if base in MODULES else ""
    return f"{base}.{name}" if name in READERS | {"GzipFile", "raw_decode"} else ""


def _function(path: Path, call: ast.Call) -> str:
    """The innermost function that a call stands in."""
    around = [
        (node.lineno, node.name)
        for node in sources.nodes(path)
        if isinstance(node, ast.FunctionDef) and any(call is below for below in ast.walk(node))
    ]
    return max(around)[1] if around else "module"


@pytest.mark.deep
def test_what_others_may_have_written_is_read_by_one_reader():
    new = {place: calls for place, calls in found().items() if place not in WHY}
    assert not new, "use siteproof.files and siteproof.nodesets, or say why not"


def test_each_reason_is_still_needed():
    assert set(WHY) <= set(found())
    assert all(WHY.values())
