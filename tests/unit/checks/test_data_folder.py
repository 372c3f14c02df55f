"""Where a run keeps its results."""

from types import SimpleNamespace

from rows import rows

from siteproof import installed
from siteproof.checks import settings


@rows(
    "system, scheduler, in_clone, warned",
    [
        ("jetstream", "slurm", True, True),
        ("jetstream", "slurm", False, False),
        ("thishost", "local", True, False),
        ("testbed", "slurm", True, False),
    ],
)
def test_results_of_a_cluster_in_the_clone_are_warned_of(
    system, scheduler, in_clone, warned, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(installed, "SUITE", tmp_path if in_clone else tmp_path / "clone")
    partitions = {"compute": SimpleNamespace(scheduler=scheduler)}
    site = SimpleNamespace(system=SimpleNamespace(system=system, partitions=partitions))
    settings.make_folders(SimpleNamespace(folder=tmp_path, site=site))
    said = capsys.readouterr().err
    assert ("git clean -fdx" in said) == warned
    assert said.count("\n") == warned
