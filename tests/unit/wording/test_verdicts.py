"""How many criteria are answered, and for what the others wait, in words."""

from siteproof.wording.verdicts import awaited_parts


def test_what_criteria_wait_for_is_a_sentence():
    for counts, words in (
        ({"answered": 3, "measurement": 0, "inputs": 1}, "3 answered, 1 waits for inputs"),
        ({"measurement": 1, "inputs": 2}, "1 waits for a measurement, 2 for inputs"),
        ({"evidence": 2, "decide_nothing": 1}, "2 wait for evidence, 1 decides nothing here"),
        ({"answered": 1, "decide_nothing": 4}, "1 answered, 4 decide nothing here"),
    ):
        assert awaited_parts(counts) == words, (counts, words)
