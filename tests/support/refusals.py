"""What a call refuses, as a text: for loops over tables of what is refused."""

from collections.abc import Callable

from siteproof.errors import UserError


def refusal(
    call: Callable[..., object], *words: object, error: type[Exception] = UserError, **keys: object
) -> str:
    """What the error says; empty where nothing was refused."""
    try:
        call(*words, **keys)
    except error as refused:
        return str(refused)
    return ""
