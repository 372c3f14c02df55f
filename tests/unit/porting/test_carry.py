"""`siteproof port`: what can be kept is kept, everything else is a gap or has no counterpart."""

import re
import shutil

import click
import pytest
from click.testing import CliRunner
from clone import TOP
from rows import rows

from siteproof.cli import group
from siteproof.sites import load
from siteproof.sites.site import examine

NEW = """
system: new
description: Another system
recognise: {cluster: new}
hardware:
  node: {peak: 3 TFLOPS}
nodes:
  batch: {set: 'n[1-8]', hardware: node}
file_systems:
  scratch: {path: /scratch, kind: lustre, shared: true}
links:
  fabric: {description: d, partition: all, servers: batch, clients: batch}
partitions:
  all: {description: d, role: batch, environments: [system]}
environments:
  system: {description: d}
"""
OLD = """
O-SHARE: {description: d, metric: Hpl.gflops, nodes: [compute], at_least: 80 % of peak, source: s}
O-RATE: {description: it's, metric: Stream.triad, at_least: 65 GB/s, rounding: nearest 1 GB/s,
  source: 'contract, 4.1'}
O-ZERO: {description: d, metric: HostParameters.mismatches, at_most: 0 count, source: s}
O-PAIR: {description: d, metric: TcpBandwidth.throughput, subject: pair, links: [lan],
  at_least: 1 GB/s, source: s}
O-FILES: {description: d, metric: IorSingle.read, at_least: 200 MiB/s, source: s,
  conditions: {file_system: work, direct: 'yes'}}
O-WORD: {description: d, metric: SystemDescription.raid, equals: RAID0 pairs, source: s}
O-REPORT: {description: d, metric: Stream.copy, report_only: no value is promised, source: s}
"""


def a_centre(tmp_path, monkeypatch):
    """The sites `old` and `new`; called, it runs `siteproof port old new`."""
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    old = NEW.replace("new", "old").replace("batch", "compute").replace("fabric", "lan")
    texts = {"new": NEW, "old": old.replace("scratch:", "work:")}
    for name, text in texts.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "system.yaml").write_text(text)
        (folder / "criteria.yaml").write_text(OLD if name == "old" else "{}")
        (folder / "baselines.yaml").write_text("{}")

    def run(*options):
        return CliRunner().invoke(group, ["port", "old", "new", *options])

    run.folder = tmp_path
    return run


centre = pytest.fixture(name="centre")(a_centre)


RENAMED = ("--role=compute=batch", "--link=lan=fabric", "--file-system=work=scratch")


def table(done):
    """The table, by criterion: the old bound and what becomes of it; what has no counterpart."""
    lines = [line for line in done.output.splitlines() if line.startswith("O-")]
    cells = [[cell.strip() for cell in re.split(r" {2,}", line)] for line in lines]
    return {key: (f"{old}: {bound}", "".join(rest)) for key, old, bound, *rest in cells}


def test_an_id_that_yaml_reads_as_no_value_stays_text(centre):
    with (centre.folder / "old/criteria.yaml").open("a") as file:
        file.write(
            '"null": {description: d, metric: Hpl.gflops, report_only: no value, source: s}\n'
        )
    assert centre("--apply").exit_code == 3
    assert "null.source" in lint_gaps()


def test_a_mistake_in_what_would_be_written_names_no_folder_that_is_gone(centre):
    other = centre.folder / "new/criteria.yaml"
    other.write_text("O-RATE: !gap 'not known yet'\n")
    done = centre("--apply")
    assert done.exit_code != 0
    assert "/.new." not in f"{done.exception}"


def lint_gaps():
    """The gaps of the new site, as text."""
    return "\n".join(str(gap) for one in examine("new")[1] for gap in one.listed_gaps())


def test_without_apply_nothing_is_written_and_next_is_the_same_with_it(centre):
    done = centre(*RENAMED)
    assert done.exit_code == 0, done.output
    options = "--role compute=batch --link lan=fabric --file-system work=scratch"
    assert done.output.endswith(
        f"; nothing was changed\nnext: siteproof port old new {options} --apply\n"
    )
    assert not list((centre.folder / "new").glob("criteria-*"))
    assert "name counterparts" not in done.output


def test_shares_zero_and_reports_keep_their_bound_and_the_rest_is_a_gap(centre):
    assert {key: bound for key, (bound, _) in table(centre(*RENAMED)).items()} == {
        "O-SHARE": ">= 80 % of peak: kept",
        "O-RATE": ">= 65 GB/s: gap",
        "O-ZERO": "<= 0 count: kept",
        "O-PAIR": ">= 1 GB/s: gap",
        "O-FILES": ">= 200 MiB/s: gap",
        "O-WORD": "= RAID0 pairs: gap",
        "O-REPORT": "only reported: -",
    }


def test_what_has_no_counterpart_is_named_and_the_exit_code_shows_it(centre):
    done = centre()
    assert done.exit_code == 3
    counts = "2 with their bound, 4 with a gap as bound, 1 only reported; 3 without a counterpart"
    assert counts in " ".join(done.output.split())
    missing = {key: text for key, (_, text) in table(done).items() if text}
    assert missing == {
        "O-SHARE": "role compute",
        "O-PAIR": "link lan",
        "O-FILES": "file system work",
    }
    assert (
        "name counterparts: --role OLD=NEW (NEW: batch), --link OLD=NEW (NEW: fabric), "
        "--file-system OLD=NEW (NEW: scratch)"
    ) in " ".join(done.output.split())


@rows("options", [(), RENAMED])
def test_what_is_written_is_lint_clean_and_nothing_of_it_is_in_force(
    tmp_path, monkeypatch, options
):
    centre = a_centre(tmp_path, monkeypatch)
    assert "written to" in centre(*options, "--apply").output
    site, documents = examine("new")
    assert [str(one) for document in documents for one in document.sorted_mistakes()] == []
    assert site.criteria == {}
    gaps = {gap.what.partition(":")[0]: gap.what for gap in site.gaps}
    assert gaps["O-RATE.source"].endswith("where it is stated for new; old: contract, 4.1")
    assert gaps["O-RATE.at_least"].endswith("65 GB/s, rounding nearest 1 GB/s on old")


def test_a_criterion_is_in_force_once_its_gaps_are_filled_in(centre):
    centre(*RENAMED, "--apply")
    path = centre.folder / "new" / "criteria-old.yaml"
    lines = path.read_text().splitlines()
    begin = lines.index("O-SHARE:")
    source = next(n for n in range(begin, len(lines)) if "source:" in lines[n])
    lines[source] = "  source: our contract, 2"
    path.write_text("\n".join(lines))
    site = load("new")
    assert list(site.criteria) == ["O-SHARE"]
    assert site.criteria["O-SHARE"].nodes == ["batch"]
    assert str(site.criteria["O-SHARE"].bound) == "80 % of peak"


def test_a_file_is_never_replaced(centre):
    centre(*RENAMED, "--apply")
    path = centre.folder / "new" / "criteria-old.yaml"
    before = path.read_text()
    done = centre(*RENAMED, "--apply")
    assert done.exit_code != 0 or "written to" not in done.output
    assert path.read_text() == before
    assert sorted(p.name for p in centre.folder.iterdir()) == ["new", "old"]


def test_a_fact_that_the_new_hardware_lacks_has_no_counterpart(centre):
    path = centre.folder / "new" / "system.yaml"
    path.write_text(path.read_text().replace("peak: 3 TFLOPS", "memory: 128 GiB"))
    bound, missing = table(centre(*RENAMED, "--apply"))["O-SHARE"]
    assert (bound, missing) == (">= 80 % of peak: gap", "peak of role batch")


@rows(
    "option, what",
    [
        ("--role=comptue=batch", "did you mean 'compute'?"),
        ("--role=compute=bacth", "did you mean 'batch'?"),
        ("--link=lan", "is not a pair of names"),
    ],
)
def test_a_wrong_name_is_a_users_mistake(tmp_path, monkeypatch, option, what):
    centre = a_centre(tmp_path, monkeypatch)
    assert what in str(centre(option).exception)


def test_a_site_is_not_carried_to_itself(centre):
    done = CliRunner().invoke(group, ["port", "old", "old"])
    assert "twice" in str(done.exception)


def test_a_site_that_comes_with_siteproof_is_found_wherever_the_own_sites_are(centre):
    done = CliRunner().invoke(group, ["port", "jetstream-iu", "new", "--apply"])
    assert done.exit_code == 3, (done.output, done.exception)
    assert (centre.folder / "new" / "criteria-jetstream-iu.yaml").exists()
    assert [one.value for one in completed("FROM", "jetstream")] == [
        "jetstream-iu",
        "jetstream-tacc",
    ]
    assert completed("[TO]", "jetstream") == []


def completed(word, incomplete):
    """The completion of an argument of `siteproof port`."""
    command = group.get_command(click.Context(group), "port")
    [argument] = [one for one in command.params if one.metavar == word]
    return argument.shell_complete(click.Context(command), incomplete)


def test_the_own_site_comes_before_one_of_the_same_name_that_comes_with_siteproof(centre):
    (centre.folder / "old").rename(centre.folder / "magellan")
    system = centre.folder / "magellan" / "system.yaml"
    system.write_text(system.read_text().replace("old", "magellan"))
    done = CliRunner().invoke(group, ["port", "magellan", "new"])
    assert "O-SHARE" in table(done)


def test_a_source_that_is_nowhere_is_one_line_with_the_nearest_name(centre):
    done = CliRunner().invoke(group, ["port", "jetstraem-iu", "new"])
    assert "no site 'jetstraem-iu' (did you mean 'jetstream-iu'?)" in str(done.exception)


SHIPPED = sorted(
    path.parent.name
    for path in (TOP / "site-config").glob("*/system.yaml")
    if "\nmembers:" not in path.read_text()  # whose criteria are not of one system
)


@pytest.mark.deep
@rows("source", SHIPPED)
def test_each_shipped_site_can_be_carried_to_another_without_a_mistake(
    source, tmp_path, monkeypatch
):
    monkeypatch.setenv("SITEPROOF_SITES", str(tmp_path))
    target = "magellan" if source != "magellan" else "testbed"
    for name in (source, target):
        shutil.copytree(TOP / "site-config" / name, tmp_path / name)
    done = CliRunner().invoke(group, ["port", source, target, "--apply"])
    assert done.exit_code in (0, 3), (done.output, done.exception)
    assert load(target)
