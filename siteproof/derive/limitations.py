"""What limits the value of a measurement, and its sentence: the conditions `*_warning` of a sample.

A sample keeps the sentence, because a perflog is read by people, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Limit(Enum):
    """The kinds, as sentences with the details of each.

    Those of UDP have no numbers: a report prints the same sentence once for many nodes.
    """

    SOCKET_BUFFER = (
        "TCP buffers of at most {limit} bytes, the path holds {under_way}: one stream cannot fill "
        "it"
    )
    SENDER = "the sender did not fill the link: it is the limit, and not the network"
    SENDER_BUSY = (
        "the sender did not fill the link, as its processor was busy: it is the limit, and not "
        "the network"
    )
    SENDER_MAY_BE = "the sender's processor was busy: it may be the limit"
    RECEIVER_SOCKET = (
        "datagrams came through the network and found the receiver's socket full: the loss is "
        "not the network's alone"
    )
    RECEIVER_MAY_BE = (
        "datagrams were lost while the receiver's processor was busy: it may be the limit"
    )
    DISCARDED_UNKNOWN = (
        "the number of lost datagrams that the receiver itself discarded is not known"
    )
    BURST_RATE = "bursts of {burst} packets were sent at {rate} Mb/s, expected {expected} Mb/s"
    SILENT_LOSS = "larger packets are lost without an error message, which can stall TCP"
    DEVICE_MTU = "the client's own MTU is {own}, expected {expected}"
    CRASHED = "its ranks crashed at first ({end}); this is the value of the second attempt"
    KERNEL_CHOSEN = (
        "{variables} in the environment chose the kernel of the BLAS: {kernel} does not use "
        "{unused}, which the processor offers."
    )
    KERNEL_OF_MKL = (
        "MKL does not use all of this processor: its kernel {kernel} does not use {unused}, "
        "which the processor offers."
    )
    KERNEL_UNKNOWN = (
        "The BLAS did not know this processor: its kernel {kernel} does not use {unused}, which "
        "the processor offers."
    )


@dataclass(frozen=True)
class Limitation:
    """One of them, with its details."""

    kind: Limit
    details: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.kind.value.format(**self.details)
