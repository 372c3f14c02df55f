"""`siteproof sites new`: a whole, lint-clean site of what Slurm lists; everything else is a gap."""

import shutil
import time
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
import scontrol_made as made
from click.testing import CliRunner
from clone import SITES
from recorded import OUTPUTS
from rows import rows

from siteproof import nodesets
from siteproof.cli import group
from siteproof.errors import UserError
from siteproof.sites import load
from siteproof.sites.site import examine
from siteproof.slurm import client

LSCPU = """\
Architecture:            x86_64
CPU(s):                  256
Model name:              AMD EPYC 7763 64-Core Processor
Thread(s) per core:      2
Core(s) per socket:      64
Socket(s):               2
"""
MODULES = """\
/opt/modules/all:
GROMACS/2024.9-foss-2024a
GROMACS/2024.10-foss-2024a
OSU-Micro-Benchmarks/7.4-gompi-2024a
foss/2024a (D)
lmod
"""


def a_centre(tmp_path, monkeypatch):
    """A folder of sites, and saved outputs; called, it runs `siteproof sites new`."""
    (tmp_path / "sites").mkdir()
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.delenv("SITEPROOF_SYSTEM", raising=False)

    def run(*options, nodes="", parts="", apply=("--apply",)):
        (tmp_path / "nodes").write_text(nodes or made.nodes("n[1-8]"))
        (tmp_path / "parts").write_text(parts or made.partition("batch", "n[1-8]"))
        files = [f"--nodes={tmp_path / 'nodes'}", f"--partitions={tmp_path / 'parts'}"]
        words = ["sites", "new", "far", *files, *map(str, options), *apply]
        return CliRunner().invoke(group, words)

    run.folder = tmp_path
    return run


centre = pytest.fixture(name="centre")(a_centre)


def lint():
    done = CliRunner().invoke(group, ["lint", "--system", "far"])
    return done.exit_code, done.output.splitlines()


def test_the_site_is_lint_clean_and_its_gaps_are_listed(centre):
    done = centre("--cluster", "far")
    assert done.exit_code == 0, done.output
    code, lines = lint()
    assert code == 0
    assert "no mistake" in lines[-1]
    assert "warning" not in lines[-1]
    gaps = [line for line in lines if line.startswith("siteproof: gap: ")]
    assert lines[-1].endswith(f"{len(gaps)} gaps")
    assert all(f"gap: {line.removeprefix('siteproof: gap: ')}" in done.output for line in gaps)


CUDA = """\
GROMACS/2024.1-foss-2023b
GROMACS/2024.4-foss-2023b-CUDA-12.4.0
OSU-Micro-Benchmarks/7.2-gompi-2023b-CUDA-12.4.0
"""


@rows(
    "with_gpus, modules, on_thin",
    [
        ("", ["GROMACS/2024.1-foss-2023b"], ["system", "module-gromacs"]),
        ("g[1-2]", CUDA.split()[::2], ["system", "module-gromacs"]),
        ("n[1-2],g[1-2]", CUDA.split()[1:], ["system", "module-gromacs", "module-osu"]),
    ],
)
def test_builds_for_gpus_are_for_nodes_with_gpus(centre, with_gpus, modules, on_thin):
    (centre.folder / "modules").write_text(CUDA)
    gres = {name: "gpu:4" for name in nodesets.parse(with_gpus)}
    nodes = "".join(made.nodes(n, gres=gres.get(n, "(null)")) for n in ("n1", "n2", "g1", "g2"))
    parts = made.partition("thin", "n[1-2]") + made.partition("fat", "g[1-2]")
    given = ("--cluster=far", "--modules", centre.folder / "modules", "--modules-system=lmod")
    done = centre(*given, nodes=nodes, parts=parts)
    assert done.exit_code == 0, done.output
    system = load("far").system
    assert [one.modules for one in system.environments.values() if one.modules] == [
        [module] for module in modules
    ]
    assert system.partitions["thin"].environments == on_thin
    shutil.rmtree(centre.folder / "sites/far")


def test_nothing_is_invented(centre):
    centre("--cluster", "far")
    site = load("far")
    hardware = site.hardware_of("batch")
    assert (hardware.sockets, hardware.cores_per_socket, hardware.threads_per_core) == (2, 64, 2)
    assert str(hardware.memory) == "257000 MiB"
    assert (hardware.peak, hardware.avx_base, hardware.last_level_cache) == (None, None, None)
    assert site.baselines == {}
    assert site.system.file_systems == {}
    assert list(site.criteria) == ["FAR-SLURM"]
    assert site.criteria["FAR-SLURM"].source.startswith("scontrol show nodes, ")


def test_without_the_clusters_name_recognising_is_a_gap(centre):
    centre()
    assert any("recognise.cluster: ClusterName" in line for line in lint()[1])


def test_a_node_that_was_looked_at_fills_gaps(centre):
    (centre.folder / "lscpu").write_text(LSCPU)
    before = centre("--cluster", "far")
    (centre.folder / "sites" / "far").rename(centre.folder / "far-before")
    after = centre("--cluster", "far", "--node", f"n3={centre.folder / 'lscpu'}")
    assert load("far").hardware_of("batch").description == "AMD EPYC 7763 64-Core Processor"
    assert after.output.count("gap: ") == before.output.count("gap: ") - 1


def test_a_description_of_a_node_gives_interfaces_and_the_mismatch_with_slurm(centre):
    path = OUTPUTS / "description" / "virtual_machine.txt"
    done = centre("--cluster", "far", "--node", f"n1={path}")
    assert done.exit_code == 0, done.output
    text = (centre.folder / "sites/far/system.yaml").read_text()
    assert "# slurm.conf: 2 x 64 x 2; n1 reports what follows" in text


@rows("variable, found", [("LMOD_VERSION", "lmod"), ("MODULES_CMD", "envmod"), ("NONE", "")])
def test_what_loads_modules_is_that_of_the_shell_or_has_to_be_named(
    tmp_path, monkeypatch, variable, found
):
    centre = a_centre(tmp_path, monkeypatch)
    for name in ("LMOD_VERSION", "MODULES_CMD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "x")
    (centre.folder / "modules").write_text(MODULES)
    done = centre("--cluster", "far", "--modules", centre.folder / "modules")
    if found:
        assert load("far").system.modules_system == found
    else:
        assert isinstance(done.exception, UserError)
        assert "--modules-system lmod" in str(done.exception)
        assert not (centre.folder / "sites/far").exists()


def test_modules_of_which_none_is_used_are_named_and_what_loads_them_is_kept(centre):
    (centre.folder / "modules").write_text("/opt/modules:\ngnu/12.2\nsite/2026\n")
    modules = ("--modules", centre.folder / "modules", "--modules-system", "lmod")
    done = centre("--cluster", "far", *modules)
    assert "none of 2 modules is of a program that checks use" in done.output
    assert load("far").system.modules_system == "lmod"


def test_modules_become_environments_with_their_features(centre):
    (centre.folder / "modules").write_text(MODULES)
    centre("--cluster", "far", "--modules", centre.folder / "modules", "--modules-system", "lmod")
    assert lint()[0] == 0
    assert load("far").system.modules_system == "lmod"
    environments = load("far").system.environments
    assert environments["module-gromacs"].modules == ["GROMACS/2024.10-foss-2024a"]
    assert environments["module-gromacs"].features == ["gromacs"]
    assert environments["module-osu"].features == ["osu"]
    assert set(environments) == {"system", "module-gromacs", "module-osu"}


@rows(
    "line, module",
    [
        ("GROMACS/2024.2(latest:default)", "GROMACS/2024.2"),  # Environment Modules 4 and 5
        ("GROMACS/2024.2(@latest) <aL>", "GROMACS/2024.2"),
        ("GROMACS/2024.2 (L,D)", "GROMACS/2024.2"),  # Lmod
        ("GROMACS/2024.2 <E>", "GROMACS/2024.2"),
    ],
)
def test_marks_after_a_module_are_no_part_of_it(tmp_path, monkeypatch, line, module):
    centre = a_centre(tmp_path, monkeypatch)
    (centre.folder / "modules").write_text(f"/opt/modules:\n{line}\n")
    centre("--cluster", "far", "--modules", centre.folder / "modules", "--modules-system", "envmod")
    assert load("far").system.environments["module-gromacs"].modules == [module]


@rows(
    "text, warning",
    [
        ("  GROMACS/2024.2   LAMMPS/2023 (D)\n", "'module -t avail' prints a module a line"),
        ("/opt/modules:\nFOO/2024.2\n", "none of 1 module is of a program that checks use"),
        ("/opt/modules:\nGROMACS/2024.2 (D)\n", ""),
    ],
)
def test_a_list_that_is_not_of_module_avail_is_a_warning(tmp_path, monkeypatch, text, warning):
    centre = a_centre(tmp_path, monkeypatch)
    (centre.folder / "modules").write_text(text)
    modules = ("--modules", centre.folder / "modules", "--modules-system", "lmod")
    done = centre("--cluster", "far", *modules)
    assert done.exit_code == 0
    told = " ".join(done.output.split())
    assert warning in told
    assert ("warning: --modules" in told) is bool(warning)


def test_account_and_qos_are_options_of_each_job(centre):
    centre("--cluster", "far", "--account", "hpc1", "--qos", "high")
    access = load("far").partition("batch").access
    assert access == ["--partition=batch", "--account=hpc1", "--qos=high"]


def test_gpus_are_facts_that_each_node_must_report(centre):
    centre("--cluster", "far", nodes=made.nodes("n[1-8]", gres="gpu:a100:4"))
    (section,) = load("far").hardware_of("batch").facts.values()
    assert section.fields["gpu.count"].exact == "4"
    assert "memory.total" in section.fields


def test_a_generic_resource_in_another_form_is_named_with_its_nodes(centre):
    done = centre("--cluster", "far", nodes=made.nodes("n[1-8]", gres="gpu:4,craynetwork:=4"))
    assert "GRES 'craynetwork:=4' of n[1-8] is not understood, so the site lacks it" in done.output
    (section,) = load("far").hardware_of("batch").facts.values()
    assert section.fields["gpu.count"].exact == "4"


def test_two_nodes_of_the_same_hardware_are_refused(centre):
    (centre.folder / "lscpu").write_text(LSCPU)
    both = (f"--node=n{number}={centre.folder / 'lscpu'}" for number in (3, 5))
    done = centre("--cluster", "far", *both)
    assert done.exit_code != 0
    assert "n3, which is given, too, has the same hardware" in str(done.exception)


def test_the_output_of_another_command_is_refused_with_the_name_of_its_file(centre):
    nodes, parts = made.nodes("n[1-8]"), made.partition("batch", "n[1-8]")
    for option, given in (("nodes", {"nodes": parts}), ("partitions", {"parts": nodes})):
        where = str(centre("--cluster", "far", **given).exception)
        path = centre.folder / ("nodes" if "nodes" in given else "parts")
        assert (
            where.startswith(f"--{option} {path}: lists no ")
            and f"'scontrol show {option}'" in where
        )


@rows(
    "printed",
    ["Invalid account or account/partition combination specified", "Invalid qos specification"],
)
def test_an_account_that_slurm_refuses_is_one_line_and_no_site(tmp_path, monkeypatch, printed):
    """As srun of Slurm 22.05 prints it, before each try again."""
    centre = a_centre(tmp_path, monkeypatch)
    text = f"srun: error: Unable to allocate resources: {printed}\n"
    listed = made.nodes("n[1-8]"), made.partition("batch", "n[1-8]")
    idle = {f"n{n}": SimpleNamespace(state=SimpleNamespace(idle=True)) for n in range(1, 9)}
    monkeypatch.setattr(client, "configured", lambda: listed)
    monkeypatch.setattr(client, "node_states", lambda: idle)
    monkeypatch.setattr(
        client, "on_each", lambda *_: CompletedProcess(["srun"], 1, "", text + text)
    )
    words = ["sites", "new", "far", "--describe", "--account=none", "--cluster=far", "--apply"]
    done = CliRunner().invoke(group, words)
    assert isinstance(done.exception, UserError)
    assert f"'{printed}'" in str(done.exception) and "\n" not in str(done.exception)
    assert list((centre.folder / "sites").iterdir()) == []


def test_an_existing_folder_is_never_changed(centre):
    folder = centre.folder / "sites" / "far"
    folder.mkdir()
    done = centre("--cluster", "far")
    assert done.exit_code != 0
    assert "exists already" in str(done.exception)
    assert list(folder.iterdir()) == []


@rows(
    "options",
    [
        ("--account", "a b"),
        ("--qos", "--wrap=reboot"),
        ("--cluster", "$(reboot)"),
        ("--node", "n99=/dev/null"),
        ("--node", "n1"),
        ("--node", "n1=/dev/null"),
        ("--describe",),
    ],
)
def test_a_wrong_option_leaves_no_folder(tmp_path, monkeypatch, options):
    centre = a_centre(tmp_path, monkeypatch)
    done = centre(*options)
    assert done.exit_code != 0
    assert list((centre.folder / "sites").iterdir()) == []


def test_a_site_that_cannot_be_written_leaves_no_half(centre, monkeypatch):
    monkeypatch.setattr(
        "pathlib.Path.rename", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    done = centre("--cluster", "far")
    assert isinstance(done.exception, OSError)
    assert list((centre.folder / "sites").iterdir()) == []


def test_a_folder_of_sites_in_which_nothing_can_be_made_is_named(centre, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", "/proc")
    done = centre("--cluster", "far")
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith("/proc: no folder can be made in it: ")


def test_without_scontrol_it_says_what_does_without_it_and_speaks_of_no_site(centre, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    done = CliRunner().invoke(group, ["sites", "new", "far"])
    assert str(done.exception) == (
        "scontrol: not found on PATH. Or give what scontrol printed elsewhere: --nodes FILE "
        "--partitions FILE."
    )


def test_a_name_that_a_shell_would_read_otherwise_is_quoted_in_the_next_command(centre):
    shutil.copytree(SITES / "smallest", centre.folder / "sites" / "a; b")
    for words, following in ((["sites"], "sites 'a; b'"), (["sites", "a; b"], "--system 'a; b'")):
        assert CliRunner().invoke(group, words).output.endswith(f"{following}\n")


def test_without_apply_it_prints_and_writes_nothing(centre):
    done = centre("--cluster", "far", apply=())
    assert "system: far" in done.stdout
    assert done.stderr.startswith("1 role; nothing was changed\nnext: siteproof sites new far ")
    assert done.stderr.endswith(" --cluster far --apply\n")
    assert list((centre.folder / "sites").iterdir()) == []


@rows("name", ["new", "generic", "1st", "a/b", "../x", ""])
def test_a_name_that_is_none_is_refused(tmp_path, monkeypatch, name):
    centre = a_centre(tmp_path, monkeypatch)
    done = CliRunner().invoke(group, ["sites", "new", name])
    assert done.exit_code != 0
    assert list((centre.folder / "sites").iterdir()) == []


def large(count):
    """A composed machine of so many nodes: 4 kinds, racks of 64, 5 partitions over them."""
    gpus, big = count // 10, count // 20
    plain = count - gpus - big
    rack = {"features": lambda number: f"rack{number // 64 + 1}"}
    nodes = made.nodes(f"nid[000001-{plain:06}]", **rack)
    nodes += made.nodes(f"nid[{plain + 1:06}-{plain + gpus:06}]", gres="gpu:h100:4", **rack)
    nodes += made.nodes(f"nid[{plain + gpus + 1:06}-{count:06}]", memory=1_031_000, **rack)
    parts = made.partition("standard", f"nid[000001-{plain:06}]", default=True)
    parts += made.partition("long", f"nid[000001-{plain:06}]", limit="7-00:00:00")
    parts += made.partition("debug", "nid[000001-000016]", limit="00:30:00")
    parts += made.partition("gpu", f"nid[{plain + 1:06}-{plain + gpus:06}]")
    parts += made.partition("all", f"nid[000001-{count:06}]", accounts="admin")
    return nodes, parts + made.partition("highmem", f"nid[{plain + gpus + 1:06}-{count:06}]")


@pytest.mark.parametrize(
    "count", [5_860, pytest.param(40_000, marks=pytest.mark.long)], ids=["5860", "40000"]
)
@pytest.mark.deep
def test_a_machine_of_many_nodes(centre, record_property, count):
    nodes, parts = large(count)
    begin = time.monotonic()
    done = centre("--cluster", "far", nodes=nodes, parts=parts)
    seconds = time.monotonic() - begin
    assert done.exit_code == 0, done.output
    record_property("told", f"sites new, {count} composed nodes: {seconds:.1f} s")
    site, documents = examine("far")
    assert [str(one) for document in documents for one in document.mistakes] == []
    assert len(site.system.inventory) == count
    assert list(site.system.nodes) == ["standard", "gpu", "highmem"]
    members = [node for role in site.system.nodes.values() for node in role.nodes]
    assert len(members) == len(set(members)) == count
    assert len(site.system.groups) > count // 80
