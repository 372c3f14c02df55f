"""What can go wrong, and with which exit code."""


class TestbedError(Exception):
    """Told to the user in one line; exit code 1: the testbed failed."""

    code = 1


class UsageError(TestbedError):
    """The user asked for what cannot be; exit code 2."""

    code = 2
