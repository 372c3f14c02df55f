"""A file of plain ReFrame: a copy below perflogs, or one that a person imports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from siteproof import files

LARGEST = files.SAMPLES


@contextmanager
def stream(path: Path, limit: int = LARGEST) -> Iterator[BufferedReader]:
    """The file's bytes, in order. Raises OSError, UserError.

    Below perflogs its owner must be trusted, and no link is followed.
    """
    top = files.perflogs()
    own = path.is_relative_to(top)
    with files.opened(path, below=top, limit=limit) if own else files.named(path, limit) as handle:
        yield os.fdopen(handle, "rb", closefd=False)


def content(path: Path, limit: int = LARGEST) -> bytes:
    """All of it. Raises OSError, UserError."""
    with stream(path, limit) as opened:
        return files.rest(opened.read, limit)
