"""Node events as sacctmgr prints them: text in, records out.

`sacctmgr -nP show event`, with times in seconds since 1970 (SLURM_TIME_FORMAT=%s), so that no
daylight saving matters. An event may still last, and events of a node may overlap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from siteproof import nodesets
from siteproof.errors import harmless
from siteproof.slurm.spelling import Flag, NodeState, node_state

EVENTS_FORMAT = "Cluster,NodeName,TimeStart,TimeEnd,State,StateRaw,Reason"
_LINE = re.compile(
    r"([^|\n]{1,250})\|([^|\n]{0,250})\|([0-9]{1,11})\|([0-9]{1,11}|Unknown)\|"
    r"([^|\n]{0,100})\|([0-9]{0,10})\|(.*)"
)
MAX_REASON = 200  # letters


@dataclass(frozen=True)
class NodeEvent:
    """A time in which a node had a state. node: empty for the cluster's own events.

    start, end: seconds since 1970; end: None while it lasts. registered: of the cluster's own
    events, whether its controller was known to slurmdbd in that time, and not disconnected.
    """

    node: str
    start: int
    end: int | None
    state: NodeState
    reason: str = ""
    registered: bool = False

    @property
    def down(self) -> bool:
        """Whether the node took no job: down, drained, failing, rebooting or in maintenance."""
        return not self.state.usable or Flag.MAINTENANCE in self.state.flags

    @property
    def backwards(self) -> bool:
        """Whether it ends before it starts, as where a clock was set back."""
        return self.end is not None and self.end < self.start


@dataclass(frozen=True)
class EventList:
    """Events in the order in which they were printed, and how many lines were not understood."""

    events: tuple[NodeEvent, ...]
    strange: int = 0

    @property
    def of_nodes(self) -> list[NodeEvent]:
        """The events of nodes."""
        return [event for event in self.events if event.node]

    @property
    def of_cluster(self) -> list[NodeEvent]:
        """Registrations and disconnections of the controller."""
        return [event for event in self.events if not event.node]


def parse_events(text: str) -> EventList:
    """Read `sacctmgr -nP show event format=EVENTS_FORMAT`.

    A reason comes last and may have several lines, so a line that is no event belongs to the
    reason before it.
    """
    events: list[NodeEvent] = []
    strange = 0
    for line in text.splitlines():
        event = _event(line)
        if event:
            events.append(event)
        elif not events or "|" in line:  # no reason of ours has one, and a cut line has
            strange += 1
    return EventList(tuple(events), strange)


def _event(line: str) -> NodeEvent | None:
    match = _LINE.fullmatch(line)
    if not match or not nodesets.is_name(match[2]):
        return None
    node, start, reason = match[2], int(match[3]), harmless(match[7])[:MAX_REASON]
    end = None if match[4] in ("Unknown", "0") else int(match[4])
    state = node_state(match[5] or "UNKNOWN")
    return NodeEvent(node, start, end, state, reason, not node and match[6] == "0")
