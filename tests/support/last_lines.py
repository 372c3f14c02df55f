"""The answer of a command, without the next command that its last line ends with."""

import re


def answer_lines(text: str) -> list[str]:
    """The lines; the next command must be there, and is left out."""
    whole = re.fullmatch(r"(.*?)(; |\n)next: siteproof [^\n]+\n", text, re.DOTALL)
    assert whole, text
    return whole[1].splitlines()
