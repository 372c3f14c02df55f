"""Which site a machine belongs to."""

import shutil

import pytest
from clone import SITES
from rows import rows

from siteproof.errors import UserError, UserErrors
from siteproof.sites import load, recognise
from siteproof.sites.machine import refuse_stranger

SMALLEST = SITES / "smallest"


def a_machine(tmp_path, monkeypatch):
    """A machine without Slurm, and a folder for its sites."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.delenv("SITEPROOF_SYSTEM", raising=False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")  # scontrol waits 30 s where it finds no slurm.conf
    monkeypatch.setattr("siteproof.sites.machine.SLURM_CONF", (tmp_path / "slurm.conf",))
    monkeypatch.setattr("socket.gethostname", lambda: "node007.example.org")
    (tmp_path / "sites").mkdir()
    return tmp_path


machine = pytest.fixture(name="machine")(a_machine)


def add(machine, name, rule, *, broken=""):
    folder = shutil.copytree(SMALLEST, machine / "sites" / name)
    text = (folder / "system.yaml").read_text().replace("system: smallest", f"system: {name}")
    text = text.replace("{cluster: smallest}", rule)
    (folder / "system.yaml").write_text(text + broken)


@rows(
    "rule",
    [
        "{hostname: 'node[0-9]+'}",
        "{hostname: node007}",
        "{file: /etc/passwd}",
        "{hostname: 'node.*', file: /etc/passwd}",
        "{fallback: true}",
    ],
)
def test_recognised(tmp_path, monkeypatch, rule):
    machine = a_machine(tmp_path, monkeypatch)
    add(machine, "mine", rule)
    add(machine, "other", "{cluster: other}")
    assert recognise() == "mine"


@rows(
    "rule",
    [
        "{cluster: mine}",
        "{hostname: node}",
        "{hostname: node007.example.org}",
        "{file: /nowhere}",
        "{hostname: 'node.*', file: /nowhere}",
        "{hostname: 'node.*', cluster: mine}",
    ],
)
def test_not_recognised(tmp_path, monkeypatch, rule):
    machine = a_machine(tmp_path, monkeypatch)
    add(machine, "mine", rule)
    with pytest.raises(UserError) as caught:
        recognise()
    assert str(caught.value) == (
        "this machine (host node007, no Slurm): recognised by no site. "
        "Allowed: mine. Name one with --system."
    )


def test_no_site_at_all(machine):
    with pytest.raises(UserError, match="Add a site to "):
        recognise()


def test_two_sites_that_fit_are_both_named(machine):
    add(machine, "one", "{hostname: 'node.*'}")
    add(machine, "two", "{file: /etc/passwd}")
    with pytest.raises(UserError, match="recognised by several sites. Allowed: one, two"):
        recognise()


def test_the_fallback_goes_behind_every_other_site(machine):
    add(machine, "aaa", "{fallback: true}")
    add(machine, "mine", "{hostname: 'node.*'}")
    assert recognise() == "mine"


def test_a_machine_with_slurm_is_no_fallback(machine):
    add(machine, "here", "{fallback: true}")
    (machine / "slurm.conf").write_text("ClusterName=elsewhere\n")
    with pytest.raises(UserError, match=r"cluster elsewhere\): recognised by no site"):
        recognise()


@rows(
    "conf",
    [
        "ClusterName=mine\n",
        "clustername = mine # ours\n",
        "\n# ClusterName=no\nClusterName=mine",
        'ClusterName="mine"\n',
        "SlurmctldHost=a ClusterName=mine\n",
        "ClusterName=\\\nmine\n",
        "ClusterName=MINE\n",
        "ClusterName=mine\r\n",
        "\xff\nClusterName=mine\n",
    ],
)
def test_the_cluster_of_slurm_conf(tmp_path, monkeypatch, conf):
    machine = a_machine(tmp_path, monkeypatch)
    add(machine, "mine", "{cluster: mine}")
    (machine / "slurm.conf").write_bytes(conf.encode("latin-1"))
    assert recognise() == "mine"


def test_slurm_conf_includes_other_files(machine, monkeypatch):
    add(machine, "mine", "{cluster: mine}")
    (machine / "etc").mkdir()
    (machine / "etc" / "slurm.conf").write_text("Include names.conf\ninclude slurm.conf\n")
    (machine / "etc" / "names.conf").write_text("ClusterName=mine\ninclude /nowhere\n")
    monkeypatch.setenv("SLURM_CONF", str(machine / "etc" / "slurm.conf"))
    assert recognise() == "mine"


def test_a_slurm_conf_that_cannot_be_read(machine, monkeypatch):
    add(machine, "here", "{fallback: true}")
    monkeypatch.setenv("SLURM_CONF", str(machine / "none.conf"))
    with pytest.raises(UserError, match=r"no cluster named in .*none\.conf"):
        recognise()


def test_a_person_decides(machine, monkeypatch):
    add(machine, "mine", "{cluster: mine}")
    add(machine, "here", "{fallback: true}")
    monkeypatch.setenv("SITEPROOF_SYSTEM", "mine")
    assert recognise() == "mine"
    monkeypatch.setenv("SITEPROOF_SYSTEM", "mien")
    with pytest.raises(UserError) as caught:
        recognise()
    assert str(caught.value).startswith("$SITEPROOF_SYSTEM: no site 'mien' (did you mean 'mine'?)")


@rows("rule", ["{hostname: 'node['}", "{host: x}", "[", "", "5"])
def test_a_broken_sister_stops_nobody(tmp_path, monkeypatch, rule, capsys):
    machine = a_machine(tmp_path, monkeypatch)
    add(machine, "mine", "{hostname: 'node.*'}")
    add(machine, "broken", rule)
    assert recognise() == "mine"
    assert capsys.readouterr().err == ""


@rows("rule", ["{hostname: 'node['}", "{host: x}", "[", "", "5"])
def test_a_broken_sister_is_named_if_nothing_else_fits(tmp_path, monkeypatch, rule, capsys):
    machine = a_machine(tmp_path, monkeypatch)
    add(machine, "here", "{fallback: true}")
    add(machine, "broken", rule)
    assert recognise() == "here"
    err = capsys.readouterr().err
    assert err.startswith("siteproof: warning: ")
    assert "broken/system.yaml:" in err


def test_mistakes_elsewhere_in_a_site_do_not_hide_it(machine):
    add(machine, "mine", "{hostname: 'node.*'}", broken="colour: blue\n")
    assert recognise() == "mine"


def test_nothing_is_measured_in_the_name_of_a_system_that_this_machine_is_not(machine):
    add(machine, "theirs", "{cluster: theirs}")
    add(machine, "anybody", "{fallback: true}")
    with pytest.raises(UserError) as caught:
        refuse_stranger("theirs", load("theirs").system.recognise)
    assert str(caught.value) == (
        "theirs: this machine (host node007, no Slurm) is not this system. Allowed: cluster theirs."
    )
    refuse_stranger("anybody", load("anybody").system.recognise)
    (machine / "slurm.conf").write_text("ClusterName=theirs\n")
    refuse_stranger("theirs", load("theirs").system.recognise)


def test_an_interface_whose_name_no_kernel_knows_is_a_mistake(machine):
    folder = shutil.copytree(SMALLEST.with_name("fullest"), machine / "sites" / "fullest")
    text = (folder / "system.yaml").read_text()
    text = text.replace("em1: {mtu: 9000, tx", "'em1; rm': {mtu: 9000, tx")
    (folder / "system.yaml").write_text(text)
    with pytest.raises(UserErrors) as caught:
        load("fullest")
    assert "'em1; rm' is not valid" in str(caught.value)


def test_where_no_slurm_conf_names_the_cluster_slurm_is_asked(machine, monkeypatch):
    scontrol = machine / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'ClusterName             = mine'\n")
    scontrol.chmod(0o755)
    add(machine, "mine", "{cluster: mine}")
    add(machine, "laptop", "{fallback: true}")
    monkeypatch.setenv("PATH", str(machine), prepend=":")
    assert recognise() == "mine"
    (machine / "slurm.conf").write_text("ClusterName=other\n")
    with pytest.raises(UserError, match="cluster other"):
        recognise()
