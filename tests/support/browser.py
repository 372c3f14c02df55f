"""A page in a real browser without a screen: headless Chromium, where the machine has one."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)
DARK = "--blink-settings=preferredColorScheme=0"
# The page stands in a frame of that width: a window of the browser has a least width. An element
# sticks out where neither it nor anything around it scrolls, or is clipped on purpose.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe style="width:WIDEpx;height:900px;border:0"></iframe><pre id="found"></pre><script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  for (const one of page.querySelectorAll("details")) one.open = true;
  const held = (one) => {
    for (let at = one; at && at !== page.body; at = at.parentElement) {
      const style = view.getComputedStyle(at);
      if (["auto", "scroll"].includes(style.overflowX) || style.clipPath !== "none") return true;
    }
    return false;
  };
  const out = [...page.body.querySelectorAll("*")].filter(
    (one) => one.getBoundingClientRect().right > page.documentElement.clientWidth + 1 && !held(one)
  );
  const low = [...page.querySelectorAll(".box")].filter(
    (one) => one.scrollHeight > one.clientHeight + 20
  );
  const name = (one) => one.tagName + "." + one.className + " " + one.textContent.slice(0, 60);
  document.getElementById("found").textContent = JSON.stringify({
    width: page.documentElement.scrollWidth, room: page.documentElement.clientWidth,
    ground: view.getComputedStyle(page.documentElement).backgroundColor,
    out: out.map(name), low: low.map(name) });
});
frame.srcdoc = TEXT;
</script>"""


def _run(folder: Path, *words: str) -> str:
    assert CHROMIUM
    ran = subprocess.run(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'profile'}", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return ran.stdout


def measured(folder: Path, page: Path, width: int, *options: str) -> dict:
    """Width of the page, its ground, what sticks `out`, boxes too `low` for their table."""
    text = json.dumps(page.read_text()).replace("</", "<\\/")
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDE", str(width)).replace("TEXT", text))
    words = ("--window-size=1600,1000", "--virtual-time-budget=20000", "--dump-dom")
    shown = _run(folder, *options, *words, frame.as_uri())
    found = re.search(r'<pre id="found">(\{.*?\})</pre>', shown, re.DOTALL)
    assert found, shown[-2000:]
    return json.loads(html.unescape(found[1]))


def printed(folder: Path, page: Path) -> list[str]:
    """The text of each page of its print."""
    target = folder / "page.pdf"
    _run(folder, "--no-pdf-header-footer", f"--print-to-pdf={target}", page.as_uri())
    words = ["pdftotext", "-layout", str(target), "-"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout.split("\f")[:-1]
