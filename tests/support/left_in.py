"""What a script has left in a folder, whoever owns it: everything in it may be its owner's."""

from siteproof.collect import raw


def left_in(folder):
    """All of it, as it is collected."""
    return raw.read(raw.Result(raw.Stage.of(folder), folder))
