"""A system that consists of others: how their answers, and the times they were up, are one."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import recomputed
from click.testing import CliRunner
from rows import rows

from siteproof import sites
from siteproof.cli import group
from siteproof.errors import ExitCode, UserError, UserErrors
from siteproof.record import availability_log, samples
from siteproof.record.availability_log import ProbeResult
from siteproof.record.samples import Header, Sample
from siteproof.verdict.judgement import judge_system

MEMBERS = ("east", "north", "west")
SYSTEM = """\
system: {name}
description: A cloud
recognise: {{cluster: {name}}}
nodes:
  compute: {{set: '{name}[1-2]'}}
partitions:
  compute: {{description: All, role: compute, scheduler: local, environments: [system]}}
environments:
  system: {{description: Installed}}
services:
  cloud:
    kind: openstack
    address: https://cloud.example.org:5000/v3
    credentials: /etc/cloud
    image: menu
    flavor: small
    timeout: 10 min
    scenarios: [launch]
probes:
  api: {{kind: tcp, target: 'cloud:5000', interval: 30 min}}
  portal: {{kind: tcp, target: 'portal:443', interval: 30 min, gateway: true}}
"""
WHOLE = "system: whole\ndescription: All of them\nmembers: [east, north, west]\n"
CRITERION = """\
{key}:
  description: What the clouds do together
  metric: {metric}
  subject: {subject}
  over: {over}
  {bound}
  {more}
  source: contract
"""
NOW = datetime.now(UTC).replace(microsecond=0)  # of each test anew, as probes end before it


def criterion(over, bound="at_least: 640 VMs", metric="Cloud.instances", more="", key="C"):
    subject = "system" if metric.startswith("Availability") else "service"
    return CRITERION.format(
        key=key, metric=metric, subject=subject, over=over, bound=bound, more=more
    )


class World:
    """Three clouds and what they are together, with what was measured of each."""

    def __init__(self, top):
        self.sites, self.perflogs = top / "sites", top / "perflogs"
        self.perflogs.mkdir()
        for name in MEMBERS:
            self.site(name, SYSTEM.format(name=name))
            (self.sites / name / "baselines.yaml").write_text("{}\n")

    def site(self, name, system, criteria="{}\n"):
        folder = self.sites / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "system.yaml").write_text(system)
        (folder / "criteria.yaml").write_text(criteria)

    def whole(self, criteria="{}\n", system=WHOLE):
        self.site("whole", system, criteria)

    def machines(self, **number):
        """So many virtual machines of each, and no others; a text is the status of a failure."""
        for old in self.perflogs.rglob("*.jsonl"):
            old.unlink()
        for name, many in number.items():
            head = Header(
                *("20261101T000000Z-000001", name, "compute", "system", "Cloud", "1"),
                NOW.isoformat(),
                mode="acceptance",
            )
            good = isinstance(many, int)
            value = (Decimal(many), "VMs") if good else (None, "", many, "it ended so")
            metric = "Cloud.instances" if good else "Cloud.*"
            samples.write(self.perflogs, head, [Sample(head, "", metric, *value)])

    def probed(self, name, probe="api", down=(), days=15):
        """Good probes every half an hour, but in the hours before now that are given."""
        folder = self.perflogs / name / "probes"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"*.{probe}.probes"):
            old.unlink()
        for step in range(days * 48, 0, -1):
            at = NOW - timedelta(minutes=30 * step)
            ok = not any(first <= step / 2 < last for last, first in down)
            line = ProbeResult(
                *(int(at.timestamp()), probe, probe, "tcp", "t:1", ok, 1800, 0.1),
                "" if ok else "refused",
            )
            day = availability_log.text_of(line.at)[:10]
            with (folder / f"{day}.{probe}.probes").open("ab") as stream:
                stream.write(line.line())

    def verdict(self, criteria):
        self.whole(criteria)
        judged = judge_system("whole", whole=True)
        [result] = judged.verdicts
        return judged, result, result.nodes[0]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "NOW", datetime.now(UTC).replace(microsecond=0))
    monkeypatch.setenv("SITEPROOF_DATA", str(tmp_path))
    made = World(tmp_path)
    monkeypatch.setenv("SITEPROOF_SITES", str(made.sites))
    return made


def ask(*words):
    return CliRunner().invoke(group, [*words, "--system", "whole"])


@rows(
    "over, west, verdict, value",
    [
        ("sum", 240, "PASS", 640),
        ("sum", 239, "FAIL", 639),
        ("sum", None, "INCOMPLETE", None),
        ("sum", "timeout", "ERROR", None),
        ("all", 700, "FAIL", 100),
        ("any", 700, "PASS", 700),
        ("any", 639, "FAIL", 639),
        ("any", None, "INCOMPLETE", None),  # which may yet meet it
        ("2", 700, "FAIL", 300),
        ("2", None, "FAIL", 300),
    ],
)
def test_the_answers_of_members_are_one_as_the_contract_says(over, west, verdict, value, world):
    world.machines(east=100, north=300, **({} if west is None else {"west": west}))
    _, result, unit = world.verdict(criterion(over))
    assert (str(result.verdict), unit.node, unit.value) == (verdict, "whole", value)
    assert [one.node for one in unit.members] == list(MEMBERS)


def test_a_verdict_names_the_members_with_their_values_and_who_lacks_one(world):
    world.machines(east=100, north=300)
    world.whole(criterion("sum"))
    told = ask("verdict")
    assert told.exit_code == ExitCode.INCOMPLETE
    assert "east 100 VMs  north 300 VMs  west INCOMPLETE, not measured" in told.output
    assert "no value of west" in told.output
    assert "next: reframe -c checks/ -r --system west" in told.output
    why = ask("why", "C").output
    assert "member west INCOMPLETE, not measured" in why
    assert "passes from  >= 640 VMs as measured" in why


def test_an_answer_that_is_too_old_at_one_member_is_no_part_of_a_sum(world):
    world.machines(east=400, north=400, west=400)
    world.whole(criterion("sum", more="max_age: 1h"))
    judged = judge_system("whole", whole=True)
    assert str(judged.verdicts[0].verdict) == "PASS"
    assert judged.exit_code == ExitCode.PASS
    old = NOW - timedelta(hours=2)
    for path in (world.perflogs / "west").rglob("*.jsonl"):
        path.write_text(path.read_text().replace(NOW.isoformat(), old.isoformat()))
    judged = judge_system("whole", whole=True)
    assert str(judged.verdicts[0].verdict) == "INCOMPLETE"
    assert [str(one.verdict) for one in judged.verdicts[0].nodes[0].members][-1] == "INCOMPLETE"


def test_a_file_of_a_member_that_cannot_be_read_is_an_answer_that_is_missing(world):
    world.machines(east=400, north=400, west=400)
    (world.perflogs / "west/compute/x.Cloud.9.jsonl").write_text("broken\n")
    judged, result, _ = world.verdict(criterion("sum"))
    assert (str(result.verdict), judged.exit_code) == ("INCOMPLETE", ExitCode.INCOMPLETE)
    assert "x.Cloud.9.jsonl" in ask("verdict").stderr


# ---- when it was up

HOURS_336 = "conditions: {window_hours: {at_least: 336}}"
# In hours before now: east is down for 20, north for 20 others, of which 10 are the same.
EAST, NORTH = (120, 100), (110, 90)


@rows("over, down, verdict", [("all", 30, "FAIL"), ("2", 10, "PASS"), ("any", 0, "PASS")])
def test_a_system_is_up_while_so_many_members_are(over, down, verdict, world):
    for name, hours in (("east", [EAST]), ("north", [NORTH]), ("west", [])):
        world.probed(name, down=hours)
    judged = world.verdict(criterion(over, "at_least: 95 %", "Availability.overall", HOURS_336))
    _, result, unit = judged
    assert str(result.verdict) == verdict
    assert float(unit.value) == pytest.approx(100 * (1 - down / 336), abs=0.2)
    members = [round(float(one.value)) for one in unit.members]
    assert members == [94, 94, 100]


def test_a_member_that_was_not_probed_matters_where_it_could_decide(world):
    for name in ("east", "north"):
        world.probed(name)
    for over, verdict in (("2", "PASS"), ("all", "INCOMPLETE")):
        text = criterion(over, "at_least: 95 %", "Availability.overall", HOURS_336)
        assert str(world.verdict(text)[1].verdict) == verdict


def test_planned_maintenance_of_a_member_is_planned_for_the_whole(world):
    begin, end = (NOW - timedelta(hours=hours) for hours in EAST)
    early = NOW - timedelta(days=40)
    row = [f"{one:%Y-%m-%dT%H:%MZ}" for one in (begin, end + timedelta(hours=1), early)]
    text = "system,begin,end,nodes,services,announced,by,why\n"
    text += f"east,{row[0]},{row[1]},,all,{row[2]},me,Firmware\n"
    (world.sites / "east/windows.csv").write_text(text)
    for name, hours in (("east", [EAST]), ("north", []), ("west", [])):
        world.probed(name, down=hours)
    for metric, verdict in (("scheduled", "PASS"), ("overall", "FAIL")):
        text = criterion("all", "at_least: 99 %", f"Availability.{metric}", HOURS_336)
        assert str(world.verdict(text)[1].verdict) == verdict


def test_a_gateway_is_compared_with_the_whole(world):
    for name in MEMBERS:
        world.probed(name)
        world.probed(name, "portal", down=[EAST] if name == "west" else [])
    text = criterion("all", "at_most: 2 pp", "Availability.gateway_gap", HOURS_336)
    _, result, unit = world.verdict(text)
    assert (str(result.verdict), round(float(unit.value))) == ("FAIL", 6)


# ---- what it may be


@rows(
    "members, told",
    [
        ("[east, nort]", "unknown system 'nort' (did you mean 'north'?)"),
        ("[east, whole]", "'whole' is the system itself in members. Allowed: east, north, west"),
        (
            "[east, other]",
            "'other' is a system with members in members. Allowed: east, north, west",
        ),
        ("[east]", "1 member in members. Allowed: two systems or more"),
        ("[]", "0 members in members. Allowed: two systems or more"),
        ("[east, east]", "'east' twice in members. Allowed: each once"),
        ("[east, north]\npartitions: {}", "unknown key 'partitions' in system.yaml. Allowed: sys"),
    ],
)
def test_a_mistake_in_members_is_one_line(members, told, world):
    world.site("other", WHOLE.replace("system: whole", "system: other"))
    world.whole(system=f"system: whole\ndescription: All\nmembers: {members}\n")
    with pytest.raises(UserErrors) as refused:
        sites.load("whole", whole=True)
    [line] = str(refused.value).splitlines()
    assert "whole/system.yaml:3" in line or "whole/system.yaml:4" in line
    assert told in line


@rows("file", ["baselines.yaml", "waivers.yaml"])
def test_a_file_that_has_no_effect_in_a_system_with_members_is_named(file, world):
    world.whole()
    folder = sites.folder() / "whole"
    (folder / file).write_text("system: whole\n")
    with pytest.raises(UserErrors, match=f"{file} has no effect in a system with `members`"):
        sites.load("whole", whole=True)
    (folder / file).unlink()


@rows(
    "made, told",
    [
        (criterion("''"), "missing key 'over' in C. Allowed: sum, all, any, 1 to 3"),
        (criterion("4"), "'4' of Cloud.instances of 3 members in C.over. Allowed: sum, "),
        (criterion("most"), "'most' is not valid in C.over. Allowed: sum, all, any, or a number"),
        (
            criterion("sum", "at_least: 95 %", "Availability.overall"),
            "'sum' of Availability.overall of 3 members in C.over. Allowed: all, any, 1 to 3",
        ),
        (
            criterion("all", "at_least: 1 GB/s", "Stream.triad").replace("service", "node"),
            "several values of each member, not one, in C.subject. Allowed: subject system",
        ),
        (
            criterion("all", "at_least: 80 % of memory"),
            "a share of memory, of which each member has its own in C.at_least. Allowed: a number",
        ),
        (criterion("all", more="nodes: [gone]"), "unknown role 'gone' in C.nodes"),
    ],
)
def test_a_mistake_in_over_is_one_line(made, told, world):
    world.whole(made)
    with pytest.raises(UserErrors) as refused:
        sites.load("whole", whole=True)
    [line] = str(refused.value).splitlines()
    assert told in line


def test_over_is_of_systems_with_members_only(world):
    world.site("east", SYSTEM.format(name="east"), criterion("sum"))
    with pytest.raises(UserErrors, match="'sum' of a system without `members` in C.over. Remove"):
        sites.load("east")


def test_the_runs_of_a_member_owe_what_the_whole_requires(world):
    world.whole(
        criterion("sum") + criterion("all", "at_least: 95 %", "Availability.overall", key="U")
    )
    assert list(sites.load("east").owed) == ["whole C", "whole U"]
    world.site("eas", SYSTEM.format(name="eas"))  # part of a member's name, and no member
    (world.sites / "eas" / "baselines.yaml").write_text("{}\n")
    assert not sites.load("eas").owed
    told = ask("plan").output
    assert "west  Cloud: C" in told
    assert "west  siteproof probe: U" in told
    assert "next: siteproof plan --system east" in told


def test_what_runs_on_nodes_is_refused_with_the_names_of_the_members(world):
    world.whole()
    for command in (["nodes"], ["gate"], ["availability"], ["probe"]):
        refused = ask(*command).exception
        assert isinstance(refused, UserError), command
        assert str(refused).endswith("Allowed: east, north, west. Name one of them.")
    with pytest.raises(UserError, match="consists of other systems"):
        sites.load("whole")


def test_the_page_of_a_whole_has_its_members_and_recomputes(world, tmp_path):
    for name in MEMBERS:
        world.probed(name)
    world.whole(
        "".join(criterion(over, key=f"C-{over}") for over in ("sum", "all", "any", "2"))
        + criterion("all", "at_least: 95 %", "Availability.overall", HOURS_336, "C-UP")
    )
    page = tmp_path / "page.html"
    for west, shown in ((240, "240 VMs"), (700, "700 VMs"), ("invalid", "FAIL"), (None, "INCOMPL")):
        world.machines(east=100, north=300, **({} if west is None else {"west": west}))
        told = ask("report", "--output", str(page))
        assert told.exit_code == 0, told.output
        assert f"north 300 VMs; west {shown}" in page.read_text()
        assert "5 agree, 0 differ; 0 more differences" in recomputed.again(page.read_text())[1]
