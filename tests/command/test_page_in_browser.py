"""Pages in a real browser: on a narrow and a wide screen, light and dark, and printed on A4."""

import shutil

import browser
import pytest
from record import shared

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="NOT TESTED: no Chromium")
PAGES = {  # of recorded campaigns
    "year": ("year", ("--system", "here", "--campaign", "winter")),
    "testbed": ("campaign", ("--system", "testbed", "--campaign", "after")),
    "one": ("thishost", ("--system", "thishost")),
    "published": ("extenci", ("--system", "extenci")),
}
OF_WEIGHT = ("critical", "serious", "moderate")
MAX_SHEETS = 9  # of paper, for eight nodes
LEAST_WIDTH = 0.75  # of the screen, that each chapter uses


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages."""
    made = tmp_path_factory.mktemp("page")
    for name, (of, words) in PAGES.items():
        world = shared(of)
        world.asked(("report", *words, "--output", f"{name}.html"))
        (world.data / f"{name}.html").replace(made / f"{name}.html")
    return made


@pytest.fixture(scope="module")
def page(folder):
    """One browser for all tests."""
    with browser.opened(folder) as page:
        yield page


@pytest.mark.parametrize("screen", browser.SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_width_no_error_and_tables_that_all_sort(page, folder, name, screen):
    browser.show(page, folder / f"{name}.html", screen)
    found = page.evaluate(browser.SHAPE)
    assert found["out"] == []
    assert found["low"] == []
    assert found["width"] == found["room"] == browser.SCREENS[screen][0]
    assert (found["ground"] == "rgb(255, 255, 255)") is (screen != "dark")
    assert page.evaluate(browser.SORT) == []
    assert page.evaluate("errors") == []
    if screen == "light":
        narrow = {name: used for name, used in found["used"].items() if used < LEAST_WIDTH}
        assert narrow == {}


@pytest.mark.skipif(not browser.AXE.exists(), reason="NOT TESTED: no axe-core (npm, setup/test)")
@pytest.mark.parametrize(("name", "screen"), zip(PAGES, [*browser.SCREENS, "dark"], strict=True))
def test_axe_finds_nothing_of_weight(page, folder, name, screen):
    browser.show(page, folder / f"{name}.html", screen)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate(browser.AXE.read_text())
    found = browser.told(page, browser.CHECK)
    assert [one for one in found if one.startswith(OF_WEIGHT)] == []


def test_on_a_phone_no_name_of_a_column_stands_without_a_value(page, folder):
    browser.show(page, folder / "testbed.html", "phone")
    cells = "[...document.querySelectorAll('.wide td')]"
    shown = "!cell.textContent && cell.checkVisibility()"
    assert page.evaluate(f"{cells}.filter((cell) => {shown}).length") == 0


def test_a_table_sorts_by_enter_and_by_space(page, folder):
    browser.show(page, folder / "year.html", "light")
    page.evaluate("document.querySelector('main thead button').focus()")
    sorted_by = "document.activeElement.closest('th').getAttribute('aria-sort')"
    for text, order in (("\r", "ascending"), (" ", "descending")):
        key = {"key": {"\r": "Enter"}.get(text, text), "text": text}
        page.send("Input.dispatchKeyEvent", type="keyDown", **key)
        page.send("Input.dispatchKeyEvent", type="keyUp", **key)
        assert page.evaluate(sorted_by) == order


@pytest.mark.parametrize("screen", ["light", "phone"])
def test_the_first_screen_has_the_verdict_the_nodes_and_what_got_worse(page, folder, screen):
    browser.show(page, folder / "testbed.html", screen)
    seen = page.evaluate(
        "[...document.querySelectorAll('header, #summary > *, #summary caption')].filter("
        "(one) => one.getBoundingClientRect().top < innerHeight - 20)"
        ".map((one) => one.innerText).join('\\n')"
    )
    for words in ("FAIL", "stay out", "node002", "Worse since before", "Not tested: "):
        assert words in seen


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="NOT TESTED: no pdftotext")
def test_a_print_is_short_and_no_text_stands_alone(page, folder):
    browser.show(page, folder / "testbed.html", "light")
    assert len(browser.sheets(browser.pdf(page))) <= MAX_SHEETS
    browser.show(page, folder / "year.html", "light")
    sheets = browser.sheets(browser.pdf(page))
    first = next(n for n, text in enumerate(sheets) if "1 Criteria" in text)
    assert 0 <= first <= 1
    sheet = next(text for text in sheets if "Acceptance sheet" in text)
    assert "4 requirements, those above" in " ".join(sheet.split())
    signed = next(text for text in sheets if "the operator" in text)
    assert "the vendor" in signed
    assert [text for text in sheets if len(text.split("\n")) < 6] == []
