"""What can go wrong, and with which exit code."""


class TestbedError(Exception):
    """The testbed failed: one line, exit code 1."""

    code = 1


class UsageError(TestbedError):
    """A mistake of the user: one line, exit code 2."""

    code = 2
