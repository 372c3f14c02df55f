"""`siteproof port settings.py`: a centre's ReFrame settings as a site, and what has no counterpart.

Each file of settings/ has the shape of what one kind of centre has published, written anew.
"""

import os
from pathlib import Path

import pytest
import scontrol_made as made
from click.testing import CliRunner
from rows import rows

from siteproof.cli import group
from siteproof.errors import UserError
from siteproof.sites import load

SETTINGS = Path(__file__).with_name("settings")
HYBRID = made.nodes("n[1-6]", features="mc") + made.nodes("g[1-2]", features="gpu", gres="gpu:1")
EVERY = made.partition("normal", "n[1-6],g[1-2]", default=True)
THIN = made.nodes("n[1-8]", sockets=1)
LISTED = {  # what Slurm lists there: nodes, partitions
    "cray.py": ("peak", HYBRID, EVERY),
    "shared_suite.py": (
        "polder",
        made.nodes("n[1-6]") + made.nodes("g[1-2]", gres="gpu:a100:4"),
        made.partition("rome", "n[1-6]") + made.partition("gpu", "g[1-2]"),
    ),
    "two_clusters.py": ("north", THIN, made.partition("batch", "n[1-8]")),
    "common_keys.py": ("fen", THIN, made.partition("cclake", "n[1-8]")),
    "by_constraint.py": (
        "pearl",
        made.nodes("n[1-6]", features="cpu")
        + made.nodes("g[1-4]", features=lambda n: "gpu,hbm80g" if n else "gpu", gres="gpu:4"),
        made.partition("all", "n[1-6],g[1-4]", default=True),
    ),
    "two_schedulers.yaml": ("valley", THIN, made.partition("thin", "n[1-8]", default=True)),
}


@pytest.fixture
def port(tmp_path, monkeypatch):
    """Called, it runs `siteproof port` as somebody who is not root."""
    (tmp_path / "sites").mkdir()
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def run(file, name, *more, nodes=THIN, parts="", cluster="far"):
        (tmp_path / "nodes").write_text(nodes)
        (tmp_path / "parts").write_text(parts or made.partition("all", "n[1-8]", default=True))
        given = [f"--nodes={tmp_path / 'nodes'}", f"--partitions={tmp_path / 'parts'}"]
        words = ["port", str(file), *([name] if name else []), *given, *more]
        return CliRunner().invoke(group, [*words, *([f"--cluster={cluster}"] if cluster else [])])

    run.folder = tmp_path
    return run


def parts_of(text):
    """Of a system.yaml what the settings give: no hardware but devices, no links, no gaps."""
    found, section = [], "system:"
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            section = line.partition(" ")[0]
        of_hardware = line.startswith(("    target:", "    devices:"))
        if section not in ("hardware:", "links:", "file_systems:") or of_hardware:
            found += [line] if line and "!gap" not in line and line[0] != "#" else []
    return found


@pytest.mark.parametrize("file", LISTED)
def test_a_published_shape_becomes_a_site_without_a_mistake(port, file):
    name, nodes, parts = LISTED[file]
    shown = port(SETTINGS / file, name, nodes=nodes, parts=parts)
    written = port(SETTINGS / file, name, "--apply", nodes=nodes, parts=parts)
    assert {shown.exit_code, written.exit_code} <= {0, 3}, written.output
    assert ("no counterpart: " in written.output) == (written.exit_code == 3)
    told = [line for line in shown.stderr.splitlines() if not line.startswith(("next:", " "))]
    found = "\n".join([*parts_of(shown.stdout), "----", *told[:-1]]) + "\n"
    assert found == (SETTINGS / file).with_suffix(".expected").read_text()
    assert load(name).name == name


SOUND = """
site_configuration = {
    "systems": [{"name": "one", "hostnames": ["HOSTS"], "partitions": [
        {"name": "p", "scheduler": "local", "launcher": "local", "environs": ["e"]}]}],
    "environments": [{"name": "e"}],
}
"""


def file_of(port, text):
    """A settings.py with this text, in a folder of its own: Python reads a file once."""
    folder = port.folder / f"centre{len(list(port.folder.iterdir()))}"
    folder.mkdir()
    (folder / "settings.py").write_text(text)
    return folder / "settings.py"


def mistake(port, text, name="one"):
    file = file_of(port, text)
    done = port(file, name)
    assert isinstance(done.exception, UserError), done.output
    assert not list((port.folder / "sites").iterdir())
    return str(done.exception).removeprefix(f"{file.parent}/")


@rows(
    "text, told",
    [
        ("x = [\n", "settings.py:1: cannot be read: SyntaxError: "),
        ("x = 1\ny = z\n" + SOUND, "settings.py:2: cannot be read: NameError: name 'z'"),
        ("import no_such_module\n" + SOUND, "settings.py:1: cannot be read: ModuleNotFound"),
        ("raise SystemExit(3)\n" + SOUND, "settings.py:1: cannot be read: SystemExit: 3"),
        ("x = 1", "settings.py: cannot be read: ConfigError: "),
        ("site_configuration = []", "settings.py: cannot be read: AttributeError"),
        (SOUND.replace('"name": "p"', '"nam": 1'), "settings.py: cannot be read: KeyError: there"),
        (
            SOUND.replace('["e"]', '"e"'),
            "settings.py: systems/one/partitions/p/environs: 'e' is not",
        ),
        (
            SOUND.replace(
                '"p", ', '"p", "scheduler": "local", "launcher": "local"}, {"name": "p", '
            ),
            "settings.py: systems/one/partitions: 'p' a second time",
        ),
        (
            SOUND.replace('"local", "l', '"slurm", "access": ["-p nowhere"], "l'),
            "settings.py: no partition of one is left. partitions/p/access: Slurm has no partition",
        ),
        (SOUND.replace('"name": "one"', '"name": "two"'), "settings.py: has no system 'one'"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line_with_its_place(port, text, told):
    assert mistake(port, text).startswith(told)


def test_without_a_name_the_system_is_that_of_this_host(port):
    file = file_of(port, SOUND.replace("HOSTS", ".*"))
    assert "system: one" in port(file, "").stdout
    assert "no system has a pattern that fits this host" in mistake(port, SOUND, "")


def test_root_runs_no_settings_and_reads_data(port, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ran = port.folder / "ran"
    assert "not run as root" in mistake(port, f"open({str(ran)!r}, 'w')\n{SOUND}")
    assert not ran.exists()
    data = SOUND.strip().removeprefix("site_configuration = ").replace(",\n}", "}")
    (port.folder / "settings.json").write_text(data)
    assert port(port.folder / "settings.json", "one").exit_code == 0


def test_settings_that_would_fill_the_memory_or_are_no_file_are_refused(port):
    file = port.folder / "settings.yaml"
    many = ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
    extras = f"extras: {{x: [&a0 [0], {many}]}}"
    partition = f"{{name: p, scheduler: local, launcher: local, environs: [e], {extras}}}"
    file.write_text(f"systems: [{{name: one, hostnames: [x], partitions: [{partition}]}}]\n")
    assert "has too many values" in str(port(file, "one").exception)
    file.unlink()
    os.mkfifo(file)
    assert "it is not a regular file" in str(port(file, "one").exception)


def test_what_the_settings_print_is_not_in_the_answer(port):
    file = file_of(port, f"print('noise')\n{SOUND}")
    assert "noise" not in port(file, "one").stdout


@rows(
    "patterns, recognised",
    [
        (["login", "nid0"], 'hostname: "(?:login|nid0).*"'),
        ([".*"], "hostname: !gap"),
        ([r"login\.far\.example", "front[0-9]"], 'hostname: "(?:front[0-9]).*"'),
    ],
)
def test_without_a_cluster_a_site_is_recognised_by_the_patterns_that_can_be_compared(
    port, patterns, recognised
):
    file = file_of(port, SOUND.replace('["HOSTS"]', repr(patterns)))
    shown = port(file, "one", cluster="").stdout
    assert f"recognise: {{{recognised}" in shown


def test_on_one_machine_the_first_local_partition_measures_it(port):
    second = '"environs": ["e"]}, {"name": "q", "scheduler": "local", "launcher": "local"}'
    file = file_of(port, SOUND.replace('"environs": ["e"]}', second))
    assert port(file, "one", "--apply").exit_code == 0
    partitions = load("one").system.partitions
    assert {name: one.measured for name, one in partitions.items()} == {"p": ["p"], "q": []}


def test_partitions_over_some_of_the_same_nodes_have_roles_that_fit_each(port):
    access = '"scheduler": "slurm", "access": ["-w n[1-2]"]'
    text = SOUND.replace(
        '"environs": ["e"]}',
        '"environs": ["e"]}, {"name": "all", "scheduler":'
        '"slurm", "launcher": "srun"}, {"name": "few", "launcher": "srun", ' + access + "}",
    )
    file = file_of(port, text)
    port(file, "one", "--apply")
    site = load("one")
    reached = {name: str(site.nodes_of(name)) for name in site.system.partitions}
    assert reached == {"p": "localhost", "all": "n[1-8]", "few": "n[1-2]"}
    measured = [role for one in site.system.partitions.values() for role in one.measured]
    assert sorted(measured) == ["all", "few"]


def test_a_word_that_is_no_option_is_named_as_it_is(port):
    access = '"scheduler": "slurm", "access": ["word", "--account=x y"]'
    text = SOUND.replace('"scheduler": "local"', access).replace(
        '"launcher": "local"', '"launcher": "srun"'
    )
    shown = port(file_of(port, text), "one").output
    for word in ("word", "y"):
        assert f"partitions/p/access: '{word}' is not an option of sbatch" in shown, shown
    assert '["--account=x"]' in shown


def test_a_launcher_that_only_the_settings_have_is_named_and_an_unknown_one_replaced(port):
    registered = """
from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

@register_launcher("bound")
class Bound(JobLauncher):
    def command(self, job):
        return ["mpirun", "--bind-to", "core"]
"""
    of = '"launcher": "{}", "environs": ["e"]'
    own, lost = (SOUND.replace(of.format("local"), of.format(one)) for one in ("bound", "lost"))
    done = port(file_of(port, registered + own), "one")
    told = "partitions/p/launcher: only runs that read this file as well have it"
    assert told in done.stderr and '"launcher": "bound"' in done.stdout
    done = port(file_of(port, lost), "one")
    assert "this ReFrame has no 'lost'; it is local" in done.stderr
    assert "lost" not in done.stdout


def test_a_partition_of_another_cluster_than_the_listed_one_is_left_out(port):
    other = '"slurm", "access": ["-M near,{}"], "launcher": "srun"'
    text = SOUND.replace('"local", "launcher": "local"', other)
    assert "what was listed is far: it is left out" in mistake(port, text.replace("{}", "north"))
    assert (
        'access: ["--clusters=near,far"]'
        in port(file_of(port, text.replace("{}", "far")), "one").stdout
    )


def test_a_description_of_two_lines_and_a_feature_twice_make_a_site_without_a_mistake(port):
    more = '"name": "p", "descr": "of\\ntwo\\x1b lines", "features": ["a", "b", "a"]'
    file = file_of(port, SOUND.replace('"name": "p"', more))
    assert port(file, "one", "--apply").exit_code == 0
    partition = load("one").system.partitions["p"]
    assert partition.description == "of two? lines"
    assert partition.features == ["a", "b"]
