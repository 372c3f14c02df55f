"""The docs as a site, read from the disk: each reader has a way, and the search answers."""

import os
import subprocess

import browser
import pytest
from clone import TOP, wait_for

MKDOCS = TOP / ".venv/docs/bin/mkdocs"
pytestmark = [
    pytest.mark.skipif(not MKDOCS.exists(), reason="NOT TESTED: 'make docs' was not run"),
    pytest.mark.skipif(not browser.CHROMIUM, reason="NOT TESTED: no Chromium"),
]
SEARCH = """(() => {
  const field = document.querySelector(".md-search__input");
  field.focus();
  field.value = "quarantine";
  field.dispatchEvent(new Event("keyup"));
})()"""
FOUND = "document.querySelectorAll('.md-search-result__link').length"
HEADS = "[...document.querySelectorAll('.md-nav--primary .md-nav__item--section > label')]"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [MKDOCS, "build", "--strict", "-f", TOP / "setup/mkdocs/mkdocs.yml", "-d", folder]
    subprocess.run(words, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser.opened(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.mark.parametrize("screen", browser.SCREENS)
def test_the_widest_pages_fit_the_screen(page, site, screen):
    for name in ("index", "operator", "reference/keys", "siteproof/checks/adapter.py"):
        browser.show(page, site / f"{name}.html", screen)
        assert page.evaluate("document.documentElement.scrollWidth") == browser.SCREENS[screen][0]
        assert page.evaluate("errors") == []


def test_the_colours_are_those_of_the_machine_also_after_they_change(page, site):
    grounds = []
    for screen in ("light", "dark", "light"):
        browser.show(page, site / "index.html", screen)
        grounds.append(page.evaluate("document.body.dataset.mdColorScheme"))
    assert grounds == ["default", "slate", "default"]


def test_the_ways_of_the_readers_come_first(page, site):
    browser.show(page, site / "index.html", "light")
    heads = page.evaluate(f"{HEADS}.map((one) => one.innerText.trim())")
    assert heads[0] == "Install Siteproof and describe a system"
    assert heads[4:] == ["What is measured", "Rules", "Reference"]


def test_the_search_answers_from_the_disk(page, site):
    browser.show(page, site / "index.html", "light")
    page.evaluate(SEARCH)
    wait_for(lambda: page.evaluate(FOUND))
    assert page.evaluate("errors") == []
