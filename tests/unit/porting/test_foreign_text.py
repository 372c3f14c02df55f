"""What scontrol, a node or a file's name holds is data: it is one value in a site, or refused."""

import pytest
import scontrol_made as made
from click.testing import CliRunner
from rows import rows

from siteproof.cli import group
from siteproof.errors import UserError
from siteproof.porting import grouping
from siteproof.porting.new_site import gpus as gpus_of
from siteproof.sites import load
from siteproof.slurm import configured


def a_folder(tmp_path, monkeypatch):
    """`siteproof sites new far` from made outputs, in a folder of sites of its own."""
    (tmp_path / "sites").mkdir()
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))

    def run(nodes, parts, *options, file="nodes", name="far"):
        (tmp_path / file).write_text(nodes)
        (tmp_path / "parts").write_text(parts)
        files = [f"--nodes={tmp_path / file}", f"--partitions={tmp_path / 'parts'}"]
        words = ["sites", "new", name, "--cluster=far", *files, *options, "--apply"]
        done = CliRunner().invoke(group, words)
        run.left = [path.name for path in (tmp_path / "sites").iterdir()]
        return done

    return run


new = pytest.fixture(name="new")(a_folder)


def grouped(nodes, parts):
    return grouping.group(configured.parse_nodes(nodes), configured.parse_partitions(parts))


@rows("word", ["null", "NULL", "no", "true", "1e5", "0x10", "nan"])
def test_a_word_of_yaml_is_a_name_like_any_other(tmp_path, monkeypatch, word):
    new = a_folder(tmp_path, monkeypatch)
    done = new(made.nodes("n[1-2]", arch=word), made.partition(word, "n[1-2]"))
    assert done.exit_code == 0, done.output
    (partition,) = load("far").system.partitions.values()
    assert partition.access == [f"--partition={word}"]


def test_partitions_whose_names_differ_by_case_or_a_number_are_roles_of_their_own():
    parts = [
        made.partition(name, nodes) for name, nodes in [("A", "n1"), ("a", "n2"), ("a-2", "n3")]
    ]
    found = grouped(made.nodes("n[1-3]"), "".join(parts))
    assert len({one.name for one in found.roles}) == 3


def test_places_whose_names_differ_by_case_keep_their_nodes():
    racks = ["Rack1", "rack1", "rack2", "rack3"]
    nodes = made.nodes("n[1-4]", features=lambda number: racks[number])
    places = grouped(nodes, made.partition("batch", "n[1-4]")).places
    assert sorted(map(str, places.values())) == ["n1", "n2", "n3", "n4"]


def test_a_node_of_a_partition_that_is_not_listed_is_named():
    found = grouped(made.nodes("n[1-2]"), made.partition("batch", "n[1-4]"))
    assert str(found.left_out["in a partition, but not in the list of nodes"]) == "n[3-4]"


@rows("limit", ["\u00b2", "9" * 5000, "1--", ":"])
def test_a_limit_that_is_no_time_is_none(limit):
    found = grouped(made.nodes("n1"), made.partition("batch", "n1", limit=limit))
    assert len(found.roles) == 1


def test_a_gres_with_too_many_digits_counts_no_gpu():
    nodes = made.nodes("n1", gres=f"gpu:{'9' * 5000}")
    (role,) = grouped(nodes, made.partition("batch", "n1")).roles
    assert gpus_of(role.kind) == 0


@rows("number", ["\u00b2", "9" * 5000, "-1", "x"])
def test_lscpu_with_a_number_that_is_none_gives_no_cores(number):
    text = f"Architecture: x86_64\nSocket(s): {number}\nCore(s) per socket: {number}\n"
    assert grouping.read("n1", text).number("cpu.cores") == 0


@rows("cache", ["9K x shared by ,,", "9K x shared by -", f"{'9' * 5000}K x shared by 1"])
def test_a_cache_that_is_not_understood_is_none(cache):
    node = grouping.OneNode("n1", {"cpu.cache.l3": cache, "cpu.threads": "4"})
    assert node.last_level_cache == ""


def test_the_name_of_a_file_adds_no_line(new):
    done = new(made.nodes("n1"), made.partition("batch", "n1"), file="a\nevil: yes")
    assert done.exit_code == 0, done.output


def test_a_mistake_names_no_file_that_is_gone(new):
    done = new(made.nodes("n1", cores=0), made.partition("batch", "n1"))
    (error,) = done.exception.errors
    assert str(error).startswith("not written: system.yaml:13: '0' is below 1")
    assert new.left == []


@rows("name", ["show", "Null", "../x", "a'b"])
def test_a_site_has_no_name_that_is_something_else(tmp_path, monkeypatch, name):
    new = a_folder(tmp_path, monkeypatch)
    done = new(made.nodes("n1"), made.partition("batch", "n1"), name=name)
    assert isinstance(done.exception, UserError)
    assert new.left == []
