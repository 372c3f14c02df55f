"""A second job of a check, where a node has put something in the way of its files."""

from types import SimpleNamespace

from rows import rows

from siteproof.checks.job import JobCheck
from siteproof.errors import UserError


@rows("submitted", [False, True])
def test_what_a_node_puts_in_the_way_costs_the_second_job_and_no_more(submitted):
    check = SimpleNamespace(
        plan=SimpleNamespace(jobs=["1"]),
        blocked="lost by Slurm",
        display_name="Stream",
        job=SimpleNamespace(jobid=1),
        watcher=SimpleNamespace(remaining=lambda: 60.0),
    )

    def write_work(missing):
        check.plan.jobs += ["2"] * (submitted and missing)
        raise UserError("settings", "not written: something there is not a regular file")

    check.write_work = write_work
    assert JobCheck.submit_again(check, "n1") is submitted
    assert check.blocked == "lost by Slurm"  # still the reason of the first job's end
