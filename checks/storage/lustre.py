"""What a client of Lustre sees: its targets, security, packages and owners."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, variable

from siteproof.checks import FileSystemCheck, loading
from siteproof.errors import UserError
from siteproof.parsers import lustre
from siteproof.sites.catalogue import MODES

_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+*?_-]*")


@rfm.simple_test
class Lustre(FileSystemCheck):
    """Reads and writes nothing. The parser knows Lustre's tools by their manual; none ran here.

    Security flavours are shown to root only. Owners need a list: `owners` of the file system.
    """

    descr = "Targets, security, packages and owners of a Lustre file system"
    tags = {"storage"}
    script = "lustre.sh"
    parsers = {"lfs": lustre}
    derive = "host.lustre"
    metrics = ("osts_up",)
    headline = ("osts_up",)
    time_limit = "10m"
    only_kind = "lustre"
    mebibytes = dict.fromkeys(MODES, 0)

    packages = variable(str, value="lustre* kmod-lustre*")  # patterns of names, as rpm -qa takes
    owners = variable(str, value="")  # on the file system, below its path: lines PATH UID

    @run_after("init")
    def refuse_wrong_words(self) -> None:
        """What the script could not use: the list of owners lies on the file system itself."""
        if not all(map(_PATTERN.fullmatch, self.packages.split() or [""])):
            what = f"'{self.packages}' are not patterns of names"
            loading.refuse(UserError("-S packages", what, "'lustre* kmod-lustre*'"))
        if self.owners.startswith("/") or ".." in self.owners.split("/"):
            allowed = "a path below that of the file system, such as admin/owners"
            loading.refuse(UserError("-S owners", f"'{self.owners}' is not a valid path", allowed))

    def written(self) -> float:
        """Nothing."""
        return 0

    def settings(self) -> dict[str, str]:
        """Which packages and which list."""
        owners = self.owners or self.there.owners or ""
        return {**super().settings(), "PACKAGES": self.packages, "OWNERS": owners}
