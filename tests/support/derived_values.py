"""Values that follow from a campaign: what commands say of them, and sites that are a copy."""

from __future__ import annotations

from typing import Any

import recomputed
from click.testing import CliRunner, Result

from siteproof import cli, files, sites
from siteproof.export import documents
from siteproof.export.documents import plain
from siteproof.verdict import judgement


def run(*words: str) -> Result:
    """`siteproof WORDS…` in this process."""
    done = CliRunner().invoke(cli.group, words, prog_name="siteproof")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


class Verdicts(dict[str, dict[str, Any]]):
    """Each criterion as `siteproof verdict --json` has it, made when it is asked for."""

    def __init__(self, judged: judgement.Judgement) -> None:
        super().__init__()
        self.judged = judged
        self.results = {one.id: one for one in judged.verdicts}

    def __missing__(self, key: str) -> dict[str, Any]:
        self[key] = plain(documents.criterion(self.judged, self.results[key]))
        return self[key]

    def words(self, keys) -> dict[str, str]:
        """The verdicts alone."""
        return {key: str(self.results[key].verdict) for key in keys}


def verdicts(system: str, again: bool = False) -> Verdicts:
    """The criteria of a system. again: the program that a page carries must find the same."""
    judged = judgement.judge_system(system)
    if again:
        recomputed.must_agree(judged, files.perflogs())
    return Verdicts(judged)


def of(system: str, key: str, again: bool = False) -> str:
    """The verdict on one criterion."""
    return verdicts(system, again).words([key])[key]


def emulate(folder, monkeypatch, site, conditions=""):
    """The site with another key of the criterion."""
    copy = folder / "sites" / site
    copy.mkdir(parents=True)
    for path in (sites.folder() / site).glob("*.*"):
        text = path.read_text()
        if conditions:
            text = text.replace("    mtu: 9000\n", "    mtu: 9000\n    emulated: netem\n", 1)
            text = text.replace(
                "  metric: TcpBandwidth.retention\n",
                f"  metric: TcpBandwidth.retention\n  conditions: {conditions}\n",
            )
        (copy / path.name).write_text(text)
    monkeypatch.setenv("SITEPROOF_SITES", str(copy.parent))
