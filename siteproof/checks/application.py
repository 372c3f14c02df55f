"""ApplicationCheck: a program of users on all cores of each node, whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping

from reframe.core.builtins import run_after

from siteproof.checks.job import DERIVED_LIMIT
from siteproof.checks.per_node import PerNodeCheck
from siteproof.sites import job_keys


class ApplicationCheck(PerNodeCheck, special=True):
    """The rate of an application on one node.

    A check defines, in addition to what PerNodeCheck needs: `problems`, by mode what its script
    reads of the problem's size; `solved`, by mode the conditions that its output must then have;
    `references`, of a metric the known answer and its tolerance, both in the metric's unit.
    """

    derive = "apps.application"
    steering = job_keys.OF_LIBRARIES
    clean = True
    shared_scripts = (*PerNodeCheck.shared_scripts, "mpi.sh", "application.sh")
    time_limit = DERIVED_LIMIT

    minutes: Mapping[str, int] = {"quick": 5, "maintenance": 20, "acceptance": 60}  # of a node
    problems: Mapping[str, Mapping[str, str]] = {}
    solved: Mapping[str, Mapping[str, str]] = {}
    references: Mapping[str, tuple[str, str]] = {}

    @run_after("init")
    def choose_time_limit(self) -> None:
        """By the mode, where the user sets none."""
        if self.derives_limit():
            self.time_limit = f"{self.minutes[self.mode]}m"

    def settings(self) -> dict[str, str]:
        """The size of the problem, and the node's cores where the site knows them."""
        return {**self.problems[self.mode], **self.hardware_variables()}

    def facts(self) -> dict[str, object]:
        """The cores, what must have been solved, and the known answers."""
        return {**self.hardware_facts(), **self.answer(self.mode)}

    @classmethod
    def answer(cls, mode: str) -> dict[str, object]:
        """What must have been solved in a mode, and the known answers."""
        return {
            "solved": dict(cls.solved.get(mode, {})),
            "references": {metric: list(known) for metric, known in cls.known(mode).items()},
        }

    @classmethod
    def known(cls, mode: str) -> Mapping[str, tuple[str, str]]:
        """The known answers, and their tolerances."""
        return cls.references
