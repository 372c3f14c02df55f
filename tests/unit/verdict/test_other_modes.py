"""What only another mode answers, and had met, is counted with its day and decides nothing."""

import nets
from rows import rows

from siteproof import sites
from siteproof.errors import ExitCode
from siteproof.verdict import judgement
from siteproof.wording import verdicts

KEYS = "description: d, subject: pair, links: [lan], source: s"
METRIC = "metric: TcpBandwidth.throughput"
LONG = "conditions: {duration: {at_least: 300}}"
EVENING = f"C-SHORT: {{{KEYS}, {METRIC}, at_least: 1 Gb/s}}\n"
PAIRS = ("n1>s1", "s1>n1", "n2>s1", "s1>n2")


def judged(tmp_path, monkeypatch, criterion, found):
    if "metric" not in criterion:
        criterion = f"{METRIC}, {criterion}"
    folder = nets.write_site(
        tmp_path, count=2, criteria=f"{EVENING}C-LONG: {{{KEYS}, {criterion}}}"
    )
    monkeypatch.setenv("SITEPROOF_SITES", str(folder))
    return judgement.judge_samples(sites.load("here"), found, "all of it")


def run(number, mode, seconds, value=5, pairs=PAIRS):
    """A job that measured these pairs in one mode for so many seconds."""
    head = nets.head(number, mode=mode)
    head = nets.head(number, mode=mode, conditions={**head.conditions, "duration": f"{seconds}"})
    return [nets.replace(nets.ok(pair, value, number), header=head) for pair in pairs]


def of_udp(found):
    return [nets.replace(one, metric="UdpBandwidth.throughput") for one in found]


TODAY = run(25, "maintenance", 5)


@rows(
    "criterion, before, code, counted",
    [
        (f"at_least: 1 Gb/s, {LONG}", run(1, "acceptance", 300), ExitCode.PASS, 1),
        # measured lately: it is simply a PASS
        (f"at_least: 1 Gb/s, {LONG}", run(23, "acceptance", 300), ExitCode.PASS, 0),
        # not met, never measured, or not on each pair
        (f"at_least: 9 Gb/s, {LONG}", run(1, "acceptance", 300), ExitCode.INCOMPLETE, 0),
        (f"at_least: 1 Gb/s, {LONG}", [], ExitCode.INCOMPLETE, 0),
        (
            f"at_least: 1 Gb/s, {LONG}",
            run(1, "acceptance", 300, pairs=PAIRS[:1]),
            ExitCode.INCOMPLETE,
            0,
        ),
        # the evening has not measured it at all, and may have answered it
        (
            "at_least: 1 b/s, metric: UdpBandwidth.throughput, conditions: {at_once: 1}",
            [
                nets.replace(one, metric="UdpBandwidth.throughput")
                for one in run(1, "acceptance", 9)
            ],
            ExitCode.INCOMPLETE,
            0,
        ),
        # maintenance should have measured it
        (
            "at_least: 1 Gb/s, conditions: {duration: {at_least: 300}, mode: maintenance}",
            run(1, "maintenance", 300),
            ExitCode.INCOMPLETE,
            0,
        ),
        ("at_least: 1 Gb/s, conditions: {mode: acceptance}", run(1, "acceptance", 15), 0, 1),
    ],
)
def test_only_what_another_mode_had_met_does_not_decide(
    tmp_path, monkeypatch, criterion, before, code, counted
):
    result = judged(tmp_path, monkeypatch, criterion, [*before, *TODAY])
    assert result.exit_code == code
    assert len(result.of_other_modes) == verdicts.awaited(result)["mode"] == counted


def test_it_is_named_with_the_modes_that_answer_it_and_the_day(tmp_path, monkeypatch):
    found = [*run(1, "acceptance", 300), *TODAY]
    result = judged(tmp_path, monkeypatch, f"at_least: 1 Gb/s, {LONG}", found)
    day = found[0].header.time[:10]
    line = f"1 criterion is answered by acceptance only, last on {day}: C-LONG"
    assert verdicts.other_modes_lines(result) == [line]


def test_after_an_acceptance_it_decides(tmp_path, monkeypatch):
    found = [*run(1, "acceptance", 300), *run(25, "acceptance", 15)]
    result = judged(tmp_path, monkeypatch, f"at_least: 1 Gb/s, {LONG}", found)
    assert (result.exit_code, result.of_other_modes) == (ExitCode.INCOMPLETE, [])
