"""A system whose perflogs somebody else has spoilt."""

import fleets
import pytest
from fleets import names, run_of

from siteproof import files
from siteproof.record import samples


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Eight nodes, two runs: the second one is worse."""
    fleets.load(tmp_path / "sites", monkeypatch, criteria=fleets.CRITERIA)
    (tmp_path / "data/perflogs").mkdir(parents=True)
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SITEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_trusted", set())
    top = tmp_path / "data/perflogs"
    for run, value in ((1, 100.0), (2, 80.0)):
        found = run_of(dict.fromkeys(names(8), value), run)
        samples.write(top, found[0].header, found)
    return top
