"""Shapes of real clusters: what Slurm prints of them is read, and what it does not say is a gap."""

import pytest
import scontrol_made as made
from click.testing import CliRunner
from rows import rows

from siteproof import nodesets
from siteproof.cli import group
from siteproof.errors import UserError
from siteproof.porting.grouping import group as grouped_of
from siteproof.porting.new_site import gpus as gpus_of
from siteproof.slurm import configured


def grouped(nodes, parts):
    return grouped_of(configured.parse_nodes(nodes), configured.parse_partitions(parts))


def one_role(**given):
    """The only role of four nodes."""
    (role,) = grouped(made.nodes("n[1-4]", **given), made.partition("batch", "n[1-4]")).roles
    return role


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Called, it gives the system.yaml that `siteproof sites new` makes of four nodes."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))

    def run(nodes):
        (tmp_path / "nodes").write_text(nodes)
        (tmp_path / "parts").write_text(made.partition("batch", "n[1-4]"))
        files = [f"--nodes={tmp_path / 'nodes'}", f"--partitions={tmp_path / 'parts'}"]
        words = ["sites", "new", "far", "--cluster=far", *files, "--apply"]
        done = CliRunner().invoke(group, words)
        if done.exit_code:
            raise done.exception
        return (tmp_path / "far/system.yaml").read_text()

    return run


def test_a_node_that_was_never_up_has_the_hardware_of_its_sisters():
    """Slurm prints no Arch before slurmd has registered."""
    down = made.nodes("n[3-4]", state="DOWN*").replace("Arch=x86_64 ", "")
    found = grouped(made.nodes("n[1-2]") + down, made.partition("batch", "n[1-4]"))
    assert [(str(one.nodes), one.kind.architecture) for one in found.roles] == [
        ("n[1-4]", "x86_64")
    ]


@rows(
    "gres, gpus",
    [
        ("gpu:2080ti:4(S:0-1)", 4),
        ("gpu:3090:8", 8),
        ("gpu:3090", 3090),  # as Slurm reads it: a number
        ("gpu:tesla:no_consume:2", 2),
        ("gpu:a100:4(S:0-1),gpu:v100:2(S:2,3)", 6),
        ("gpu:a100:4,shard:a100:16(S:0-1),mps:400", 4),
        ("gpu:1g.5gb:7(S:0)", 0),
        ("gpu:a100:2,gpu:a100_3g.20gb:4", 0),
        ("nvme:1T,bandwidth:lustre:no_consume:4G", 0),
    ],
)
def test_gpus_are_counted_as_slurm_counts_them_and_parts_of_a_gpu_are_none(gres, gpus):
    nodes = configured.parse_nodes(made.nodes("n[1-4]", gres=gres))
    assert [one.unread for one in nodes.values()] == [()] * 4
    assert gpus_of(one_role(gres=gres).kind) == gpus


def test_shares_of_a_gpu_divide_no_role():
    nodes = made.nodes("n[1-2]", gres="gpu:a100:4")
    nodes += made.nodes("n[3-4]", gres="gpu:a100:4,shard:a100:16")
    assert len(grouped(nodes, made.partition("gpu", "n[1-4]")).roles) == 1


def test_a_role_is_named_after_the_number_and_the_type_of_its_gpus():
    nodes = made.nodes("n[1-2]", gres="gpu:a100:4") + made.nodes("n[3-4]", gres="gpu:2080ti:8")
    names = {one.name for one in grouped(nodes, made.partition("gpu", "n[1-4]")).roles}
    assert names == {"gpu-4xa100", "gpu-8x2080ti"}


def test_features_with_signs_divide_roles_like_any_other():
    nodes = made.nodes("n[1-2]", features="ib&hdr") + made.nodes("n[3-4]", features="ssd:nvme")
    assert len(grouped(nodes, made.partition("batch", "n[1-4]")).roles) == 2


def test_sockets_are_those_of_all_boards():
    """Slurm packs tot_sockets: SocketsPerBoard times Boards."""
    nodes = made.nodes("n[1-4]", sockets=4).replace("Boards=1", "Boards=2")
    (role,) = grouped(nodes, made.partition("batch", "n[1-4]")).roles
    assert role.kind.sockets == 4


def test_processors_alone_are_no_sockets(written):
    text = written(made.nodes("n[1-4]", sockets=128, cores=1, threads=1))
    assert "sockets: !gap" in text and "cores_per_socket: !gap" in text
    assert "cpu.threads: 128" in text


def test_processors_that_agree_with_no_topology_are_no_fact(written):
    """Cores of two kinds: 8 with two threads and 8 with one."""
    nodes = made.nodes("n[1-4]", sockets=1, cores=16, threads=1)
    assert "cpu.threads" not in written(nodes.replace("CPUTot=16", "CPUTot=24"))


def test_processors_that_are_the_cores_leave_the_threads(written):
    nodes = made.nodes("n[1-4]", sockets=2, cores=64, threads=2)
    assert "cpu.threads: 256" in written(nodes.replace("CPUTot=256", "CPUTot=128"))


@rows("narrow", [("MaxNodes=UNLIMITED", "MaxNodes=1"), ("ReqResv=NO", "ReqResv=YES")])
def test_a_partition_that_takes_no_plain_job_of_many_nodes_is_not_preferred(narrow):
    parts = made.partition("a", "n[1-4]").replace(*narrow) + made.partition("z", "n[1-4]")
    (role,) = grouped(made.nodes("n[1-4]"), parts).roles
    assert role.partition == "z"


def test_a_cluster_of_which_no_node_runs_yet_names_its_nodes(written):
    with pytest.raises(
        UserError, match=r"n\[1-4\]: not there now .FUTURE, or a cloud's node that is powered down."
    ):
        written(made.nodes("n[1-4]", state="IDLE+CLOUD+POWERED_DOWN"))


def test_a_record_cut_off_within_its_last_number_is_named():
    whole = made.nodes("n1")
    cut = whole[: whole.index("ThreadsPerCore=") + len("ThreadsPerCore=")]
    with pytest.raises(UserError, match="cut off: no ThreadsPerCore"):
        configured.parse_nodes(cut)


@pytest.mark.deep
@rows("text", ["r[1-20]i[0-3]n[0-35]", "x[1-9]c[0-7]s[0-7]b[0-1]n0"])
def test_nodes_named_by_several_numbers_are_few_terms(text):
    """ClusterShell compares each term of one set with each term of the other."""
    names = list(nodesets.parse(text))
    for nodes in (nodesets.of(names), nodesets.parse(",".join(names))):
        (ranges,) = nodes._patterns.values()
        assert len(ranges._veclist) == 1  # veclist folds
        assert str(nodes) == str(nodesets.parse(text))
