#!/usr/bin/env python3
"""docs/page.png: the first screen of the page on the test bed's campaign, in a real browser.

    python tests/golden/picture.py            exit code 1 if it shows another page than today's
    python tests/golden/picture.py --write    take it anew

The picture carries the digest of what it shows: two browsers draw the same page a little
differently, so pictures are not compared.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

import browser  # noqa: E402
import shown  # noqa: E402
from PIL import Image, PngImagePlugin  # noqa: E402
from record import CLONE, shared  # noqa: E402

PICTURE = CLONE / "docs/page.png"
WORDS = ("report", "--system", "testbed", "--campaign", "after", "--output", "picture.html")
DIGEST = "siteproof-page"  # the name of the text in the picture
LOOKS = [CLONE / "siteproof/report" / name for name in ("style.css", "page.js")]


def page() -> Path:
    """The page, written by the command."""
    world = shared("campaign")
    world.asked(WORDS)
    return world.data / WORDS[-1]


def digest(path: Path) -> str:
    """Of the texts of a page, and of its style."""
    texts = [shown.text_of(path.read_text(encoding="utf-8"))]
    return shown.sha256("".join([*texts, *(one.read_text(encoding="utf-8") for one in LOOKS)]))


def is_of_today(path: Path) -> bool:
    """Whether the picture was taken of this page."""
    with Image.open(PICTURE) as picture:
        return picture.info.get(DIGEST) == digest(path)


def take(path: Path, target: Path) -> None:
    """Write the picture of a page."""
    with tempfile.TemporaryDirectory() as folder:
        with browser.opened(Path(folder)) as chromium:
            browser.show(chromium, path, "light")
            raw = Path(folder) / "raw.png"
            raw.write_bytes(browser.picture(chromium))
        with Image.open(raw) as picture:
            texts = PngImagePlugin.PngInfo()
            texts.add_text(DIGEST, digest(path))
            few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
            few.save(target, pnginfo=texts, optimize=True)


def main() -> int:
    """Compare or write; the exit code."""
    path = page()
    if "--write" in sys.argv:
        take(path, PICTURE)
    print(f"{PICTURE.name}: {'of' if is_of_today(path) else 'not of'} today's page")
    return int(not is_of_today(path))


if __name__ == "__main__":
    sys.exit(main())
