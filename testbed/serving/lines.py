"""What goes wrong between a service and its users, whatever the service is: the relay does it."""

import values
from errors import UsageError

from serving.place import Place

FAULTS = {
    "hang": "connections are taken, and nothing is answered",
    "down": "connections are closed at once",
    "slow-line": "the line carries little each way (--value 800kbit)",
    "killed-in-the-middle": "each connection ends after some bytes (--value 5MB)",
}


def fault(place: Place, name: str, value: str) -> bool:
    """Make the line go wrong, if it is one of these faults."""
    if name not in FAULTS:
        return False
    place.behave(mode(name, value))
    return True


def mode(name: str, value: str) -> str:
    """What the relay is told. Raises UsageError if it is no value of the fault."""
    if name == "slow-line":
        return f"slow {_rate(value)}"
    if name == "killed-in-the-middle":
        return f"cut {_bytes(value)}"
    return name


def _rate(text: str) -> int:
    """Bytes per second, of bits per second in tc's words or of bytes per second."""
    if text.endswith("bit"):
        return values.rate(text) // 8
    number = values.size(text or "100kB")
    if number < 1:
        raise UsageError(f"'{text}' is out of range for a rate; for example 100kB")
    return number


def _bytes(text: str) -> int:
    number = values.size(text or "5MB")
    if not number:
        raise UsageError(f"'{text}' is out of range for a size; for example 5MB")
    return number
