"""A page in a real browser without a screen: headless Chromium, where the machine has one."""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clone import TOP
from served import job

from siteproof.services import desktop as chromium
from siteproof.services.desktop import Browser

CHROMIUM = next(filter(None, map(shutil.which, chromium.NAMES)), None)
AXE = TOP / "tests/axe/node_modules/axe-core/axe.min.js"  # installed by setup/test
SCREENS = {"light": (1440, 900, "light"), "dark": (1440, 900, "dark"), "phone": (390, 844, "light")}
# What goes wrong in a page, from its begin on: `errors`.
WATCH = """window.errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
console.error = (...words) => errors.push(words.join(" "));"""
# An element sticks out where neither it nor anything around it scrolls, or is clipped on purpose.
SHAPE = """(() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const room = document.documentElement.clientWidth;
  const held = (one) => {
    for (let at = one; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (["auto", "scroll"].includes(style.overflowX) || style.clipPath !== "none") return true;
    }
    return false;
  };
  const name = (one) => one.tagName + "." + one.className + " " + one.textContent.slice(0, 60);
  const out = [...document.body.querySelectorAll("*")].filter(
    (one) => one.getBoundingClientRect().right > room + 1 && !held(one));
  const low = [...document.querySelectorAll(".box")].filter(
    (one) => one.scrollHeight > one.clientHeight + 20);
  const used = [...document.querySelectorAll("main > section")].map((one) => {
    const ends = [...one.querySelectorAll("p, li, table, figure, svg")].map(
      (part) => Math.min(part.getBoundingClientRect().right, one.getBoundingClientRect().right));
    return [one.id, (Math.max(...ends) - one.getBoundingClientRect().left) / one.offsetWidth];
  });
  return { out: out.map(name), low: low.map(name), used: Object.fromEntries(used), room,
    width: document.documentElement.scrollWidth,
    ground: getComputedStyle(document.documentElement).backgroundColor };
})()"""
# Each table with three rows or more is sorted by each of its columns, with both keys.
SORT = """(() => {
  const wrong = [];
  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies[0].rows.length < 3) continue;
    const buttons = table.querySelectorAll("thead th button");
    if (!buttons.length) wrong.push((table.id || table.textContent.slice(0, 60)) + ": no button");
    for (const button of buttons) {
      const order = () => [...table.tBodies[0].rows].map((row) => row.rowIndex);
      const count = order().length;
      button.click();
      const sorted = button.closest("th").getAttribute("aria-sort");
      if (sorted !== "ascending" || order().length !== count) wrong.push(button.textContent);
    }
  }
  return wrong;
})()"""
RULES = '{ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }'
CHECK = f"""axe.run({{ exclude: [['svg']] }}, {RULES}).then((found) => found.violations.map((one) =>
  `${{one.impact}} ${{one.id}}: ${{one.nodes.length}}, ${{one.nodes[0].html.slice(0, 160)}}`))"""


@contextmanager
def opened(folder: Path) -> Iterator[Browser]:
    """A browser with one empty page."""
    with chromium.browser(
        job(folder, kind="web", address="http://127.0.0.1/", timeout="60 s")
    ) as page:
        page.prepare(WATCH)
        yield page


def show(page: Browser, path: Path, screen: str) -> None:
    """Load a page on a screen of SCREENS."""
    width, height, colour = SCREENS[screen]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.send("Emulation.setDeviceMetricsOverride", **size)
    page.send("Emulation.setTouchEmulationEnabled", enabled=False)
    page.send("Emulation.setScrollbarsHidden", hidden=True)
    wanted = [{"name": "prefers-color-scheme", "value": colour}]
    page.send("Emulation.setEmulatedMedia", features=wanted)
    page.go(path.as_uri())
    while page.evaluate("document.readyState") != "complete":
        time.sleep(0.02)


def told(page: Browser, script: str) -> Any:
    """The value of a promise."""
    words = {"expression": script, "awaitPromise": True, "returnByValue": True}
    return page.send("Runtime.evaluate", **words)["result"].get("value")


def pdf(page: Browser) -> bytes:
    """The print of the page."""
    return base64.b64decode(page.send("Page.printToPDF", preferCSSPageSize=True)["data"])


def picture(page: Browser) -> bytes:
    """The screen as PNG."""
    return base64.b64decode(page.send("Page.captureScreenshot")["data"])


def sheets(printed: bytes) -> list[str]:
    """The text of each page of a print."""
    words = ["pdftotext", "-layout", "-", "-"]
    ran = subprocess.run(words, input=printed, capture_output=True, check=True, timeout=60)
    return ran.stdout.decode().split("\f")[:-1]
