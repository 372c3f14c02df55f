"""The closed list of features: what checks ask for, and what the site's own checks add."""

import ast
import json

import pytest
from click.testing import CliRunner
from clone import TOP
from rows import rows

from siteproof.cli.sites import LISTS, sites
from siteproof.sites import catalogue
from siteproof.spack import env_files

OWN = """
import reframe as rfm

class Base(rfm.RunOnlyRegressionTest):
    valid_prog_environs = ["+mpi +cuda12", "-broken"]

@rfm.simple_test
class Mine(Base):
    features = ("solver",)

    def fits(self):
        return "fastmath" in self.current_environ.features
"""


def asked_for():
    """Every feature that a check of the clone names."""
    found = set()
    for path in [*(TOP / "checks").rglob("*.py"), *(TOP / "sweeps").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id == "features":
                found |= set(ast.literal_eval(node.value))
            if isinstance(node, ast.Compare) and "environ.features" in ast.unparse(node):
                found.add(node.left.value)
    return found


def test_each_feature_that_a_check_asks_for_is_in_the_list():
    assert asked_for() - catalogue.read().features.keys() == set()


def test_each_feature_of_spack_is_in_the_list():
    offered = {name for env in env_files.names() for name in env_files.features(env).features}
    assert offered - catalogue.read().features.keys() == set()


def test_no_feature_is_in_the_list_that_nothing_knows():
    # Checks look for these on PATH themselves.
    tools = {"fio", "iperf3", "netperf", "nuttcp", "qperf"}
    assert catalogue.read().features.keys() == asked_for() | tools


@rows(
    "text, told",
    [
        ("features: [gpu]\n", "1: a list is not a mapping of keys in features. Allowed: keys"),
        ("features: {gpu: {programs: []}}\n", "1: missing key 'description' in features.gpu"),
        ("features: {gpu: {description: d, programs: [], modules: [], use: x}}\n", "key 'use'"),
    ],
)
def test_a_mistake_in_a_described_feature_has_its_place(tmp_path, text, told):
    (tmp_path / catalogue.NAME).write_text(text)
    first = str(catalogue.read(tmp_path).documents[0].sorted_mistakes()[0])
    assert f"{catalogue.NAME}:1:" in first and told in first


def test_a_feature_is_described_once(tmp_path):
    for area in ("cpu", "io"):
        (tmp_path / area).mkdir()
        text = "features: {gpu: {description: d, programs: [], modules: []}}\n"
        (tmp_path / area / catalogue.NAME).write_text(text)
    (told,) = catalogue.read(tmp_path).documents[1].sorted_mistakes()
    assert "'gpu' is in two catalogues" in str(told)


def test_own_checks_add_what_they_name(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("def (")
    assert catalogue.features_of(tmp_path) == {"mpi", "cuda12", "solver", "fastmath"}


@rows(
    "option, line",
    [
        ("--features", " High Performance Linpack, for Hpl "),
        ("--metrics", "Hpl.gflops GFLOPS "),
        ("--tools", " Bandwidth of a file system from many ranks. "),
        ("--statuses", " The node was lost or not reached. "),
    ],
)
def test_each_closed_list_is_printed_with_a_sentence(option, line):
    done = CliRunner().invoke(sites, [option])
    assert done.exit_code == 0
    assert line in " ".join(done.output.split())


@rows("name", LISTS)
def test_each_closed_list_is_printed_for_programs(name):
    option = "--files" if name == "places" else f"--{name}"
    text = CliRunner().invoke(sites, [option])
    done = CliRunner().invoke(sites, [option, "--json"])
    plain = CliRunner().invoke(sites, [option, "--plain"])
    rows = json.loads(done.output)
    assert rows
    assert plain.output.splitlines()[0].split("\t") == list(rows[0])
    assert len(plain.output.splitlines()) == len(rows) + 1
    for row in rows:
        assert row["description"]
        named = next(value for key, value in row.items() if key not in ("part", "below"))
        assert named.split()[0] in text.output


@pytest.mark.deep
def test_the_systems_are_listed_for_programs():
    done = CliRunner().invoke(sites, ["--json"])
    listed = {one["site"]: one for one in json.loads(done.output)}
    assert listed["testbed"]["nodes"] == "compute node[001-008]"
    assert listed["testbed"]["mistakes"] == "0"


def test_json_of_one_site_is_refused():
    done = CliRunner().invoke(sites, ["--json", "testbed"])
    assert "--json: goes with one list" in str(done.exception)
