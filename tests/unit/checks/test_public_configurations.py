"""What public configurations of EESSI and CSCS state is said of a site, and reaches ReFrame."""

import json
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import reframe
import yaml
from rows import rows

from siteproof import sites
from siteproof.checks import settings
from siteproof.sites import job_keys

PUBLIC = Path(__file__).with_name("public")
STATED = yaml.safe_load((PUBLIC / "stated.yaml").read_text())
SCHEMA = json.loads((Path(reframe.__file__).parent / "schemas/config.json").read_text())
AT_MOST = ("max_jobs",)


def built(name, tmp_path, monkeypatch):
    """The configuration that ReFrame gets of a site."""
    monkeypatch.setenv("SITEPROOF_SITES", str(PUBLIC))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    active = SimpleNamespace(site=sites.load(name), folder=tmp_path, name="session")
    return settings.build(active)


def differing(found, stated):
    """The stated keys that are not found as stated; of a limit, that are above it."""
    return {
        key: (found.get(key), value)
        for key, value in stated.items()
        if (found[key] > value if key in AT_MOST else found.get(key) != value)
    }


@rows("name", STATED)
def test_what_a_public_configuration_states_reaches_reframe(name, tmp_path, monkeypatch):
    found, stated = built(name, tmp_path, monkeypatch), dict(STATED[name])
    jsonschema.validate(found, SCHEMA)
    (system,) = found["systems"]
    partitions = {one["name"]: one for one in system["partitions"]}
    environments = {one["name"]: one for one in found["environments"]}
    of_partitions, of_environments = stated.pop("partitions"), stated.pop("environments")
    assert not differing(system, stated)
    assert list(partitions) == list(of_partitions)
    assert list(environments) == list(of_environments)
    for key, one in of_partitions.items():
        assert not differing(partitions[key], one), key
    for key, one in of_environments.items():
        assert not differing(environments[key], one), key


@rows("place", job_keys.VERBATIM)
def test_every_key_of_reframe_is_a_key_of_the_site_or_may_stand_verbatim(place):
    of_system = SCHEMA["properties"]["systems"]["items"]["properties"]
    known = {
        "system": of_system,
        "partitions": of_system["partitions"]["items"]["properties"],
        "environments": SCHEMA["properties"]["environments"]["items"]["properties"],
    }[place]
    named = {*job_keys.VERBATIM[place], *job_keys.REPLACED[place], *job_keys.NEVER[place]}
    assert named == {*known}
