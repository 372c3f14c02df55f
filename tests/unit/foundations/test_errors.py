"""What the text of a user's mistake is made of."""

from siteproof.errors import UserError


def test_only_place_and_mistake():
    assert str(UserError("a.yaml:3", "unknown key 'x'")) == "a.yaml:3: unknown key 'x'"


def test_a_list_of_allowed_values_and_one_description_of_them():
    assert str(UserError("a", "b", ["x", "y"])) == "a: b. Allowed: x, y."
    assert str(UserError("a", "b", "1 to 9")) == "a: b. Allowed: 1 to 9."


def test_nothing_is_allowed_where_no_value_is_known():
    assert str(UserError("a", "b", [])) == str(UserError("a", "b", "")) == "a: b"


def test_a_hint_is_a_sentence_of_its_own():
    assert str(UserError("a", "b", hint="'siteproof sites' lists them")) == (
        "a: b. 'siteproof sites' lists them."
    )
    assert str(UserError("a", "b", ["x"], "Try again")) == "a: b. Allowed: x. Try again."


def test_one_line_without_control_characters():
    assert str(UserError("a", "b\n\x1b[31m", hint="c\nd")) == "a: b ?[31m. c d."
