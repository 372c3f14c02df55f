"""The picture of the page in README.md."""

import browser
import picture
import pytest
from PIL import Image


def test_the_picture_of_the_readme_is_of_todays_page():
    assert picture.is_of_today(picture.page()), "python tests/golden/picture.py --write"


@pytest.mark.skipif(not browser.CHROMIUM, reason="NOT TESTED: no Chromium")
def test_the_picture_is_taken_by_the_script(tmp_path):
    path, target = picture.page(), tmp_path / "page.png"
    picture.take(path, target)
    with Image.open(target) as new, Image.open(picture.PICTURE) as old:
        assert new.size == old.size == browser.SCREENS["light"][:2]
        assert new.info[picture.DIGEST] == old.info[picture.DIGEST]
        assert len(new.getcolors()) > 10
