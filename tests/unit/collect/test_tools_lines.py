"""The line of a tool's output that is kept with a value: of one that misses a bound of the site."""

from decimal import Decimal
from time import process_time
from types import SimpleNamespace

import pytest
from clone import OUTPUTS
from rows import rows

from siteproof.checks import missing
from siteproof.collect import outcome
from siteproof.collect.raw import Execution, Raw
from siteproof.parsers import Reading
from siteproof.record import samples
from siteproof.record.manifest import Manifest
from siteproof.record.samples import Header, Sample
from siteproof.sites.promise import Criterion

STREAM = (OUTPUTS / "stream/5.10-2_threads.txt").read_text()


def judged(bounds):
    """The readings of a run of STREAM in a job with these bounds, by metric."""
    job = Manifest(
        session="20261121T120000Z-00001ab",
        system="here",
        partition="node",
        environment="system",
        check="Stream",
        mode="quick",
        expected="here",
        metrics=["triad"],
        parsers={"stream": "stream"},
        bounds=bounds,
    )
    left = Raw({}, {"program": "stream"}, STREAM, "")
    return {one.metric: one for one in outcome.judge(left, [], job)[1]}


def test_a_value_that_misses_a_bound_keeps_the_tools_line_and_no_other_value_does():
    found = judged({"triad": (1e18, None), "copy": (1.0, 1e18)})
    assert found["triad"].line.startswith(f"Triad: {found['triad'].value} ")
    assert found["copy"].line == found["add"].line == ""


@rows(
    "metric, value, text, line",
    [
        ("gflops", "34.75", "WR11C2R4  3000  3.475e+01\n", "WR11C2R4 3000 3.475e+01"),
        ("bandwidth", "1086.58", "512 1086.58\n1024 1086.58\n", ""),
        ("loss", "1", "10 packets, 1% packet loss\n1 of 2\n", "10 packets, 1% packet loss"),
        ("errors", "1", "1 of 2\n", ""),
        ("rate", "250.5", "rate\x1b[2J 250.5\n", "rate?[2J 250.5"),
        ("rate", "250.5", f"rate 250.5 {'x' * 300}\n", f"rate 250.5 {'x' * 148}…"),
    ],
)
def test_a_line_is_kept_where_only_one_has_the_value_or_names_the_metric(metric, value, text, line):
    reading = Reading(metric, Decimal(value), "MB/s")
    found = outcome.lines_with({reading.value}, [Execution({}, 0, text, "")])
    assert outcome.line_of(reading, found[reading.value]) == line


def test_the_outputs_are_read_once_however_many_values_miss_a_bound():
    text = "".join(f"{number}.5 MB/s\n" for number in range(2000))
    readings = [Reading("rate", Decimal(f"{number}.5"), "MB/s") for number in range(2000)]
    job, begin = SimpleNamespace(bounds={"rate": (1e18, None)}), process_time()
    found = outcome.with_lines(readings, [Execution({}, 0, text, "")], job)
    assert found[1234].line == "1234.5 MB/s"
    assert process_time() - begin < 1


def test_the_line_is_in_the_record():
    header = Header("s", "here", "node", "system", "Stream", "1", "2026-11-21T12:00:00+00:00")
    given = Sample(header, "n1", "Stream.triad", Decimal("9.5"), "MB/s", line="Triad: 9.5")
    text = samples.dump(header, [given]).decode().splitlines()[1]
    assert samples.read_as_written(text).line == "Triad: 9.5"


def test_the_bounds_of_a_job_are_the_tightest_of_the_criteria_on_its_role():
    def criterion(**keys):
        keys |= {"metric": "Stream.triad", "source": "s", "description": "d", "scope": "every node"}
        return Criterion(**keys)

    criteria = {
        "A": criterion(at_least="100 MB/s"),
        "B": criterion(at_least="150 MB/s", rounding="nearest 10 MB/s"),
        "C": criterion(at_most="1 GB/s"),
        "D": criterion(nodes=["gpu"], at_least="900 MB/s"),
    }
    site = SimpleNamespace(
        criteria=criteria,
        catalogue={"Stream.triad": SimpleNamespace(unit="MB/s")},
        roles_of=lambda one: one.nodes or ["cpu", "gpu"],
        hardware_of=lambda role: None,
    )
    assert missing.bounds(site, "Stream", "cpu") == {"triad": (pytest.approx(145e6), 1e9)}
    assert missing.bounds(site, "Hpl", "cpu") == {}
