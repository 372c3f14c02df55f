"""A page in a real browser: on a narrow and a wide screen, light and dark, and printed on A4."""

import shutil
from datetime import UTC, datetime

import browser
import pytest
from test_report import CRITERIA, world, write

from siteproof.report import assemble, html, material

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="NOT TESTED: no Chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with all of its chapters."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        write(world(folder, patch, criteria=CRITERIA))
        found = material.gather("here", name="winter")
        target = folder / "page.html"
        target.write_text(html.page(assemble.build(found), datetime.now(UTC)))
        found.close()
    return target


@pytest.mark.parametrize("options", [(), (browser.DARK,)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_sticks_out_of_a_screen_and_each_table_has_its_height(
    page, tmp_path, width, options
):
    found = browser.measured(tmp_path, page, width, *options)
    assert found["out"] == []
    assert found["low"] == []
    assert found["width"] == found["room"] == width
    assert (found["ground"] == "rgb(255, 255, 255)") is not bool(options)


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="NOT TESTED: no pdftotext")
def test_a_print_has_two_pages_of_summary_and_no_text_that_stands_alone(page, tmp_path):
    sheets = browser.printed(tmp_path, page)
    first = next(n for n, text in enumerate(sheets) if "1 Criteria" in text)
    assert 1 <= first <= 2
    assert "The newest value that meets the conditions counts" in sheets[first]  # the table's note
    sheet = next(text for text in sheets if "Acceptance sheet" in text)
    assert "4 requirements, those above" in " ".join(sheet.split())
    signed = next(text for text in sheets if "the operator" in text)
    assert "the vendor" in signed
    short = [text for text in sheets if len(text.split("\n")) < 6]
    assert short == []
