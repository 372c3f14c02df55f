"""Every kind of mistake in a site is told in one line, with its place and what is allowed."""

import re
import shutil

import pytest
import yaml
from click.testing import CliRunner
from clone import SITES
from rows import rows

from siteproof.cli.lint import lint
from siteproof.errors import UserErrors
from siteproof.sites import bought, catalogue, load, names
from siteproof.sites.site import examine

CASES = yaml.safe_load((SITES / "mistakes.yaml").read_text())


def a_copy(tmp_path, monkeypatch):
    """A copy of the example, in the current folder's site-config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SITEPROOF_SITES", "site-config")
    return shutil.copytree(SITES / "example", tmp_path / "site-config" / "example")


example = pytest.fixture(name="example")(a_copy)


def change(example, file, pairs):
    path = example / f"{file}.yaml"
    text = path.read_text()
    for old, new in pairs.items():
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)


def told(name="example"):
    _, documents = examine(name)
    return [str(error) for document in documents for error in document.sorted_mistakes()]


def test_the_example_has_no_mistake(example):
    assert told() == []
    assert load("example").system.system == "example"


def checks():
    """The beginnings of all metrics, as a hint has them."""
    return ", ".join(sorted({f"{name.partition('.')[0]}.*" for name in catalogue.read()[0]}))


def expects(case):
    """The lines of a mistake; of one of YAML the beginning, as the rest is the library's own."""
    if "bad YAML" in case["told"][0]:
        return [case["told"][0].partition("bad YAML: ")[0] + "bad YAML: "]
    features = ", ".join(sorted(catalogue.read().features))
    known = {"{checks}": checks(), "{features}": features}
    lines = "\n".join(case["told"])
    for name, text in known.items():
        lines = lines.replace(name, text)
    return lines.split("\n")


@pytest.mark.deep
def test_each_kind_of_mistake_is_told_with_its_place_and_nothing_is_loaded(example):
    wrong = {}
    for name, case in CASES.items():
        shutil.copytree(SITES / "example", example, dirs_exist_ok=True)
        if "whole" in case:
            (example / f"{case['file']}.yaml").write_text(case["whole"])
        else:
            change(example, case["file"], case["change"])
        lines = [line.removeprefix("site-config/example/") for line in told()]
        if "bad YAML" in case["told"][0]:
            lines = [line.partition("bad YAML: ")[0] + "bad YAML: " for line in lines]
        if lines != expects(case):
            wrong[name] = lines
        with pytest.raises(UserErrors):
            load("example")
    assert wrong == {}


def test_a_file_that_cannot_be_read_is_told_in_one_line(example):
    wrong = {}
    for content, what in (
        (None, "1: no such file in {0}. Create it with the content '{{}}'."),
        (b"a: b\nc: \xff\n", "2: bytes that are not UTF-8 in {0}. Save it as UTF-8."),
        (b"a: b\nc: \x00\n", "2: a control character in {0}. Remove it."),
        (b"x: " + b"[" * 300_000, "1: nested too deeply in {0}. Allowed: at most 40 levels."),
        (b"- " * 300_000, "1: nested too deeply in {0}. Allowed: at most 40 levels."),
        (b"#" * 3_000_000, "1: more than 2000000 bytes in {0}"),
    ):
        for name in ("system.yaml", "criteria.yaml", "baselines.yaml"):
            shutil.copytree(SITES / "example", example, dirs_exist_ok=True)
            path = example / name
            path.unlink() if content is None else path.write_bytes(content)
            if told() != [f"site-config/example/{name}:{what.format(name)}"]:
                wrong[name, what] = told()
    assert wrong == {}


def test_file_that_is_a_folder(example):
    (example / "criteria.yaml").unlink()
    (example / "criteria.yaml").mkdir()
    assert told() == ["site-config/example/criteria.yaml:1: is a folder in criteria.yaml"]


def test_aliases_are_allowed_but_no_bomb(example):
    change(example, "system", {"features: [hpl]": "features: &f [hpl], modules: *f"})
    change(example, "system", {"recognise:": "modules_system: lmod\nrecognise:"})
    assert told() == []
    lines = ["x: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, after in zip("abcdef", "bcdefg", strict=True):
        lines.append(f"{before}: &{after} [{', '.join([f'*{before}'] * 10)}]")
    (example / "criteria.yaml").write_text("\n".join(lines))
    assert told() == [
        "site-config/example/criteria.yaml:1: more than 200000 values, aliases followed in e"
    ]


def test_a_number_of_many_digits_is_a_mistake(example):
    change(example, "system", {"sockets: 2": f"sockets: {'9' * 5000}"})
    (line,) = told()
    assert "is not a whole number in hardware.blade.sockets" in line
    assert len(line) < 200


def test_all_mistakes_are_told_at_once(example):
    change(example, "system", {"sockets: 2": "sockets: two", "kind: lustre": "knd: lustre"})
    change(example, "criteria", {"xhpl": "hpl", "at_most: 0 %": "at_most: 0 apples"})
    change(example, "baselines", {"Stream.triad": "Stream.tried"})
    assert [line.partition(": ")[0] for line in told()] == [
        "site-config/example/system.yaml:7",
        "site-config/example/system.yaml:22",
        "site-config/example/system.yaml:22",
        "site-config/example/criteria.yaml:7",
        "site-config/example/criteria.yaml:14",
        "site-config/example/baselines.yaml:2",
    ]


def test_lint_ends_in_the_answer(example):
    result = CliRunner().invoke(lint, ["--system", "example"])
    assert (result.exit_code, result.output) == (0, "1 site, no mistake\n")
    change(example, "criteria", {"xhpl": "hpl", "at_most: 0 %": "at_most: 0 apples"})
    change(example, "baselines", {"Stream.triad": "Stream.tried"})
    result = CliRunner().invoke(lint, ["--system", "example"])
    *lines, answer = result.output.splitlines()
    assert result.exit_code == 2
    assert answer == "3 mistakes in 2 files"
    assert len(lines) == 3
    assert all(line.startswith("siteproof: site-config/example/") for line in lines)


def test_lint_refuses_variables_to_keep_that_no_check_unsets(example):
    pairs = {"features: [hpl]": "features: [hpl], keep_variables: [PATH, 'UCX_*', MKL_ROOT]"}
    change(example, "system", pairs)
    result = CliRunner().invoke(lint, ["--system", "example"])
    assert result.exit_code == 2
    *lines, _ = result.output.splitlines()
    assert [line.split("'")[1] for line in lines] == ["PATH", "MKL_ROOT"]
    assert all("example/system.yaml:36:" in line for line in lines)
    assert load("example")  # a mistake that a run need not refuse


def test_lint_names_a_folder_without_files(example):
    (example.parent / "empty").mkdir()
    result = CliRunner().invoke(lint, [])
    assert result.exit_code == 2
    assert "site-config/empty/system.yaml:1: no such file in system.yaml" in result.output


def test_lint_tells_what_a_copied_site_still_has_of_its_sister(example):
    other = shutil.copytree(example, example.parent / "other")
    change(other, "system", {"system: example": "system: other"})
    result = CliRunner().invoke(lint, [])
    assert result.output.splitlines() == [
        "siteproof: site-config/other/system.yaml:3: the same machines as site 'example' in "
        "recognise. Make 'recognise' distinguish the two.",
        "siteproof: site-config/other/baselines.yaml:7: baselines of 'example' in system. "
        "Allowed: other. Remove what is not of this site, or correct the name.",
        "2 mistakes in 2 files",
    ]


def test_lint_prints_the_schema(example):
    schema = yaml.safe_load(CliRunner().invoke(lint, ["--schema"]).output)
    assert list(schema) == [
        "system.yaml",
        "system.yaml, with members",
        "criteria.yaml",
        "baselines.yaml",
        "waivers.yaml",
        "published.csv",
        "timeline.csv",
        "hosts.csv",
        "windows.csv",
        "sweeps/NAME.yaml",
    ]
    assert schema["system.yaml"]["additionalProperties"] is False


@pytest.mark.deep
def test_the_shipped_sites_have_no_mistake_and_the_gap_of_galaxy(monkeypatch):
    monkeypatch.delenv("SITEPROOF_SITES", raising=False)
    result = CliRunner().invoke(lint, [])
    assert result.exit_code == 0, result.output
    *gaps, answer = result.output.splitlines()
    assert re.fullmatch(rf"{len(names())} sites, \d+ sweeps, no mistake, 2 gaps", answer)
    assert all("services.galaxy.results.counts" in gap for gap in gaps)


@rows(
    "row, what",
    [
        ("other,node001,n1,,,,,,x", "hosts of 'other' in 2.system. Allowed: example."),
        ("example,node999,n1,,,,,,x", "'node999' is not in any role"),
        ("example,node001,n1,,,,,,x\nexample,node001,n2,,,,,,x", "the same as line 2"),
        ("example,node001,n1,,,,,,", "missing key 'source'"),
        ("example,node001,n1,,,,,,x,more", "10 cells under 9 columns"),
    ],
)
def test_a_host_table_with_a_mistake_is_refused(tmp_path, monkeypatch, row, what):
    example = a_copy(tmp_path, monkeypatch)
    head = "system,node,name,address,os,interface,driver,speed,source"
    (example / "hosts.csv").write_text(f"{head}\n{row}\n")
    (line,) = told()
    assert line.startswith("site-config/example/hosts.csv:")
    assert what.partition(" in 2")[0] in line


def test_a_host_table_states_facts_of_its_nodes(example):
    head = "system,node,name,address,os,interface,driver,speed,source"
    row = "example,node001,n1.example.org,192.0.2.1,CentOS*,eth0,tg3,1000 Mb/s,x"
    (example / "hosts.csv").write_text(f"# a remark\n{head}\n{row}\n")
    facts = bought.sections_of(load("example"), "node001")
    fields = {field for section in facts.values() for field in section.fields}
    assert {section.partition(": ")[2] for section in facts} == {
        "name",
        "address",
        "system",
        "interface",
        "consistent",
    }
    assert {"host.name", "address.*", "os.release", "nic.eth0.driver", "dns.consistent"} <= fields
    assert bought.sections_of(load("example"), "node002") == {}


def test_criteria_may_stand_in_several_files(example):
    text = (example / "criteria.yaml").read_text()
    (example / "criteria.yaml").write_text(text.partition("E-LOSS:")[0])
    (example / "criteria-network.yaml").write_text("E-LOSS:" + text.partition("E-LOSS:")[2])
    assert told() == []
    assert list(load("example").criteria) == ["E-HPL", "E-LOSS"]


def test_an_id_stands_in_one_file_only(example):
    (example / "criteria-more.yaml").write_text((example / "criteria.yaml").read_text())
    assert told()[0] == (
        "site-config/example/criteria-more.yaml:1: 'E-HPL' is also an id in another file in E-HPL."
        " Allowed: an id of its own."
    )


@rows(
    "old, new, meant",
    [
        ("features: [hpl]", "features: [HPL]", "hpl"),
        ("scheduler: slurm", "scheduler: SLURM", "slurm"),
        ("scheduler: slurm", "launcher: SRUN", "srun"),
        ("sockets: 2", "target: milan", "zen3"),
        ("sockets: 2", "target: x86_64/amd/zen3", "zen3"),
        ("sockets: 2", "target: neoverse-v2", "neoverse_v2"),
        ("clients: compute", "clients: compute\n    pattern: Random", "random:3"),
    ],
)
def test_capitals_dashes_and_makers_names_do_not_hide_the_right_word(
    tmp_path, monkeypatch, old, new, meant
):
    example = a_copy(tmp_path, monkeypatch)
    change(example, "system", {old: new})
    (line,) = told()
    assert f"(did you mean '{meant}'?)" in line


def test_a_misspelt_modules_system_is_one_mistake(example):
    loads = "modules_system: Lmod\npartitions:\n  compute:\n    modules: [gcc]"
    change(example, "system", {"partitions:\n  compute:": loads})
    (line,) = told()
    assert "unknown value 'Lmod' (did you mean 'lmod'?)" in line


def test_a_share_that_is_misspelt_is_answered_with_a_share(example):
    change(example, "criteria", {"80 % of peak": "0.8 of peak"})
    (line,) = told()
    assert line.endswith("Allowed: a share such as '80 % of peak'.")


@rows(
    "old, key, meant",
    [
        ("role: compute", "env_vars: {A: b}", "variables"),
        ("role: compute", "environs: [system]", "environments"),
        ("role: compute", "devices: [{type: gpu}]", "devices of `hardware`"),
        ("role: compute", "sched_options: {}", "reframe: {sched_options: …}"),
        ("features: [hpl]", "cc: gcc", "reframe: {cc: …}"),
    ],
)
def test_a_key_of_reframe_is_answered_with_that_of_the_site(tmp_path, monkeypatch, old, key, meant):
    example = a_copy(tmp_path, monkeypatch)
    between = ", " if old.startswith("features") else "\n    "
    change(example, "system", {old: f"{old}{between}{key}"})
    (line,) = told()
    assert f"(did you mean '{meant}'?)" in line


def test_a_comment_is_no_command(example):
    change(
        example, "system", {"role: compute": "role: compute\n    prepare_cmds: ['#SBATCH -A x']"}
    )
    (line,) = told()
    assert "is not valid in partitions.compute.prepare_cmds" in line


def test_a_mistake_in_the_inventory_is_not_counted_against_a_criterion(example):
    change(example, "system", {"'s[1-2]'": "'s{1..2}'"})
    with (example / "criteria.yaml").open("a") as file:
        file.write(
            "E-N: {description: d, metric: Inventory.nodes, subject: system, equals: 10 nodes, "
            "source: 'contract, 3'}\n"
        )
    _, documents = examine("example")
    assert [one for document in documents for one in document.warnings] == []
