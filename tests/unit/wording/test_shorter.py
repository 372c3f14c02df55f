"""A text is shortened at the end of a phrase, never within a value."""

from hypothesis import given
from hypothesis import strategies as st

from siteproof.wording.findings import shorten

MISSED = "Stream.triad: 147 GB/s misses the contract, which requires at least 165 GB/s, since .5"


def test_it_ends_with_a_whole_phrase():
    for text, room, left in (
        (MISSED, 100, MISSED),
        (
            MISSED,
            80,
            "Stream.triad: 147 GB/s misses the contract, which requires at least 165 GB/s",
        ),
        (MISSED, 60, "Stream.triad: 147 GB/s misses the contract"),
        ("Health: bad DIMM; Stream: bad DIMM", 30, "Health: bad DIMM"),
        ("n[1-2, 5-6, 8-9] and more of them", 14, "n[1-2, 5-6,..."),
        ("did not answer at all", 15, "did not answer"),
        ("Stream: memory is not enough", 20, "Stream"),
        ("overlong", 6, "ove..."),
    ):
        assert shorten(text, room) == left, (text, room, left)


@given(st.text("ab1.,;: [()]", max_size=60), st.integers(4, 70))
def test_it_is_never_longer_than_its_room(text, room):
    short = shorten(text, room)
    assert len(short) <= room
    assert text.startswith(short.removesuffix("..."))
