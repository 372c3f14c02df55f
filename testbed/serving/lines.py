"""What goes wrong between a service and its users, whatever the service is: the relay does it."""

from serving.place import Place

FAULTS = {
    "hang": "connections are taken, and nothing is answered",
    "down": "connections are closed at once",
    "slow-line": "the line carries few bytes a second (--value 100000)",
    "killed-in-the-middle": "each connection ends after some bytes (--value 5000000)",
}


def fault(place: Place, name: str, value: str) -> bool:
    """Make the line go wrong, if it is one of these faults."""
    modes = {
        "hang": "hang",
        "down": "down",
        "slow-line": f"slow {value or 100_000}",
        "killed-in-the-middle": f"cut {value or 5_000_000}",
    }
    if name not in modes:
        return False
    place.behave(modes[name])
    return True
