"""Alters the first byte of each file that is written below a folder: corrupter.py FOLDER READY.

READY is a file that it makes once it looks.
"""

import os
import sys
import time
from pathlib import Path

EVERY = 0.002  # seconds


def main() -> None:
    """Look for new files for ever; before whoever reads them, on a machine that does much else."""
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    done: set[tuple[int, int]] = set()
    ready = Path(sys.argv[2])
    while True:
        seen: set[tuple[int, int]] = set()
        for folder, _, names in os.walk(sys.argv[1]):
            for name in names:
                _alter(Path(folder, name), done, seen)
        if not ready.exists():
            ready.touch()
        done &= seen  # the number of a file that is gone may be that of the next one
        time.sleep(EVERY)


def _alter(path: Path, done: set[tuple[int, int]], seen: set[tuple[int, int]]) -> None:
    try:
        stat = path.stat()
        seen.add((stat.st_dev, stat.st_ino))
        if not stat.st_size or (stat.st_dev, stat.st_ino) in done:
            return
        with path.open("r+b", buffering=0) as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 0xFF]))
        done.add((stat.st_dev, stat.st_ino))
    except OSError:
        pass


if __name__ == "__main__":
    main()
