"""Whether the paths of a shared file system are the same from every node."""

import reframe as rfm
from reframe.core.builtins import run_after, variable

from siteproof.checks import FileSystemCheck, loading
from siteproof.errors import UserError
from siteproof.parsers import namespace
from siteproof.sites.catalogue import MODES

DEEPEST = 64


@rfm.simple_test
class Namespace(FileSystemCheck):
    """Each node lists a folder that must not change meanwhile: -S Namespace.folder=PATH.

    It lists as many levels of folders as have at most `max_paths` paths. The listing is kept next
    to the samples.
    """

    descr = "Paths of a shared file system, as each node lists them"
    tags = {"storage"}
    script = "namespace.sh"
    parsers = {"find": namespace}
    derive = "host.namespace"
    metrics = ("paths",)
    headline = ("paths",)
    only_shared = True
    mebibytes = dict.fromkeys(MODES, 0)
    seconds_of_turn = {"quick": 20, "maintenance": 40, "acceptance": 60}

    folder = variable(str, value="")  # below the file system's path; empty: all of it
    depth = variable(int, value=8)  # levels of folders at most
    max_paths = variable(int, value=10_000)  # paths

    @run_after("init")
    def refuse_wrong_limits(self) -> None:
        """What the script could not use."""
        loading.refuse_number(self, "depth", 1, DEEPEST)
        loading.refuse_number(self, "max_paths", 1, namespace.MAX_PATHS)
        if self.folder.startswith("/") or ".." in self.folder.split("/"):
            allowed = "a path below that of the file system, such as shared/data"
            loading.refuse(UserError("-S folder", f"'{self.folder}' is not a valid path", allowed))

    def written(self) -> float:
        """Nothing."""
        return 0

    def settings(self) -> dict[str, str]:
        """What is listed, and how much of it."""
        limits = {"DEPTH": str(self.depth), "MAX_PATHS": str(self.max_paths)}
        return {**super().settings(), "FOLDER": self.folder, **limits}

    def facts(self) -> dict[str, object]:
        """A condition of the samples."""
        return {"folder": self.folder or "."}
