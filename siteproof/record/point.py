"""One point of a sweep, as its job's manifest keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KNOB = "knob."  # what the name of a tuning axis begins with
OWN = "own"  # a knob that is left as the machine has it
Values = dict[str, str]


@dataclass(frozen=True)
class Point:
    """One measurement of a sweep.

    values: of all axes and of what is fixed; sizes in bytes. dims: the names of those that the
    sweep varies. trial: its repetition from 1 on; 0 where there is one only.
    """

    values: Mapping[str, str]
    dims: Sequence[str]
    trial: int = 0

    @property
    def tasks(self) -> int:
        """Ranks in all."""
        return int(self.values["tasks"])

    @property
    def tasks_per_node(self) -> int:
        """Ranks on each node, at most."""
        return int(self.values["tasks_per_node"])

    @property
    def nodes(self) -> int:
        """Nodes that it needs."""
        return -(-self.tasks // self.tasks_per_node)

    @property
    def own_dims(self) -> Values:
        """The values of its axes: a sample's dimensions."""
        return {name: self.values[name] for name in self.dims if name in self.values}

    @property
    def fixed(self) -> Values:
        """The values that all points share: a sample's conditions."""
        return {name: value for name, value in self.values.items() if name not in self.dims}

    @property
    def knobs(self) -> Values:
        """The settings of the nodes that it needs, by name with `knob.`."""
        return {
            name: value
            for name, value in self.values.items()
            if name.startswith(KNOB) and value != OWN
        }

    def line(self, number: int, limit: int, combination: int) -> str:
        """The point as sweep.sh reads it. limit: seconds. combination: of its knobs; 0: none."""
        numbers = (limit, self.nodes, self.tasks, self.tasks_per_node, self.trial, combination)
        variables = [
            f"{name.upper()}={value}"
            for name, value in self.values.items()
            if name not in ("tasks", "tasks_per_node") and not name.startswith(KNOB)
        ]
        return " ".join([folder_of(number), *map(str, numbers), *variables])

    def __str__(self) -> str:
        dims = " ".join(f"{name}={value}" for name, value in self.own_dims.items())
        return f"{dims} trial={self.trial}" if self.trial else dims


def folder_of(number: int) -> str:
    """The name of a point's result folder."""
    return f"{number:05d}"
