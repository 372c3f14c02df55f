"""`siteproof probe` and `siteproof availability`: a real service that is stopped in between."""

import importlib
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import soaks
from documents_checked import check, kinds

from siteproof import probes

PROBES = """
probes:
  portal: {kind: http, target: 'http://127.0.0.1:PORT/', interval: 10 s, timeout: 5 s}
  port: {kind: tcp, target: '127.0.0.1:PORT', interval: 10 s, timeout: 5 s, gateway: true}
  root: {kind: mount, target: /, interval: 10 s, timeout: 9 s}
"""
CRITERIA = """
HERE-UP:
  description: The machine is up
  metric: Availability.overall
  subject: system
  at_least: LEAST %
  conditions: {window_hours: {at_least: HOURS}}
  source: test
"""
SERVER = """
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), SimpleHTTPRequestHandler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Clock(datetime):
    """The time that siteproof sees: the test lets it go on, and nobody waits."""

    ahead = 0.0

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(seconds=cls.ahead)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(Clock, "ahead", 0.0)
    for name in ("siteproof.cli.probe", "siteproof.cli.availability"):
        importlib.import_module(name)
        monkeypatch.setattr(sys.modules[name], "datetime", Clock)
    own = vars(time) | {"time": lambda: Clock.now(UTC).timestamp()}
    monkeypatch.setattr(probes, "time", SimpleNamespace(**own))
    return Clock


class Service:
    """A web server of this machine, which can be stopped and started again on its port."""

    def __init__(self, folder):
        self.folder, self.port = folder, 0
        self.start()

    def start(self):
        command = [sys.executable, "-c", SERVER, str(self.port)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder, text=True
        )
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def service(world, tmp_path):
    made = Service(tmp_path)
    path = world.site() / "system.yaml"
    path.write_text(path.read_text() + PROBES.replace("PORT", str(made.port)))
    world.data.mkdir(exist_ok=True)
    yield made
    made.stop()


def criterion(world, least=1, hours=0.0001):
    path = world.site() / "criteria.yaml"
    own = path.read_text().partition("\nHERE-UP:")[0]
    path.write_text(own + CRITERIA.replace("LEAST", str(least)).replace("HOURS", str(hours)))


def since(seconds):
    return f"{Clock.now(UTC) - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def test_a_service_is_down_from_its_stop_to_its_start(world, service, clock):
    assert world.inside("probe").code == 0
    begin = since(0)
    assert world.inside("probe", "portal", "port", "root").code == 0
    service.stop()
    stopped = clock.now(UTC)
    done = world.inside("probe", "portal", "port", "root")
    assert done.code == 1
    assert "portal: DOWN: Connection refused" in done.out
    assert done.out.splitlines()[-1] == "1 of 3 probes answered"
    clock.ahead += 8  # less than the interval: a longer gap is no down time
    service.start()
    assert world.inside("probe", "portal", "port", "root").code == 0
    started = clock.now(UTC)
    done = world.inside("availability", "--from", begin, "--json")
    read = check("availability", done.out)
    rows = {(one["kind"], one["name"]): one for one in read["subjects"]}
    for key in (("service", "portal"), ("gateway", "port"), ("system", "thishost")):
        hours = rows[key]["unscheduled_hours"]
        assert hours * 3600 == pytest.approx((started - stopped).total_seconds(), abs=2), key
        assert rows[key]["failures"] == 1
    assert rows["service", "root"]["overall"] == 100
    assert (read["exit_code"], read["missing"]) == (done.code, [])
    gap = next(one for one in read["figures"] if one["metric"] == "Availability.gateway_gap")
    assert (gap["subject"], gap["value"], gap["interval"]) == ("port", 0, 10)


def test_a_round_probes_what_is_due_and_a_named_service_always(world, service):
    assert world.inside("probe").out.splitlines()[-1] == "3 of 3 probes answered"
    done = world.inside("probe")
    assert (done.code, done.out) == (0, "nothing is due\n")
    assert world.inside("probe", "port").out.splitlines()[-1] == "1 of 1 probe answered"


def test_the_exit_code_is_that_of_the_criteria_and_of_the_gaps(world, service, clock):
    begin = since(1)
    assert world.inside("probe").code == 0
    criterion(world)
    clock.ahead += 1.1
    done = world.inside("availability", "--from", begin)
    assert (done.code, "HERE-UP: PASS, 100 %" in done.out) == (3, True), "a second is missing"
    assert world.inside("availability", "--from", since(1)).code == 0
    service.stop()
    assert world.inside("probe", "portal").code == 1
    clock.ahead += 1.1
    criterion(world, least=99.9)
    done = world.inside("availability", "--from", since(1))
    assert (done.code, "HERE-UP: FAIL" in done.out) == (1, True)
    criterion(world, least=99.9, hours=336)
    done = world.inside("availability", "--from", since(1))
    assert (done.code, "HERE-UP: INCOMPLETE" in done.out) == (3, True)


def test_without_any_record_it_names_the_next_command(world):
    world.data.mkdir(exist_ok=True)
    done = world.inside("availability")
    assert done.code == 3
    assert done.out.splitlines()[-1].startswith("nothing was recorded; next: siteproof sites")
    assert check("availability", world.inside("availability", "--json").out)["subjects"] == []


def test_a_table_has_80_columns_at_most(world, service):
    world.inside("probe")
    lines = world.inside("availability").out.splitlines()
    assert " next: siteproof probe --system " in lines.pop()
    table = [line for line in lines if "service " in line or "system " in line]
    assert len(table) >= 4
    assert max(map(len, table)) <= 80


def test_what_is_wrong_in_the_record_is_named_and_never_exit_code_0(world, service, clock):
    world.inside("probe")
    (path,) = (world.data / "perflogs/thishost/probes").iterdir()
    with path.open("ab") as stream:
        stream.write(b"\x1b[31m broken\n")
    clock.ahead += 1.1
    done = world.inside("availability", "--from", since(1))
    assert done.code == 3
    assert "1 line left out: broken, in " in done.out
    read = check("availability", world.inside("availability", "--from", since(1), "--json").out)
    assert kinds(read) == [("lines_broken", "")]


MISTAKES = [
    (("probe", "nonsense"), "no service 'nonsense'"),
    (("probe", "portl"), "did you mean 'portal'?"),
    (("availability", "--from", "yesterday"), "'yesterday' is not a valid time"),
    (("availability", "--from", "2030-01-01"), "is not before the end"),
    (("availability", "--to", "soon"), "--to: 'soon' is not a valid time"),
    (("availability", "--fetch"), "no partition of thishost has 'scheduler: slurm'"),
    (("availability", "--system", "nowhere"), "no site 'nowhere'"),
]


def test_a_mistake_is_one_line(world, service):
    world.without("sinfo", "sacctmgr")
    for words, what in MISTAKES:
        done = world.inside(*words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), words
        assert what in done.err, words


REGISTERED = "echo 'c||1000|Unknown||0|Cluster Registered TRES'"
LASTING = f"{REGISTERED}; echo 'c|localhost|'$(($(date +%s) - 60))'|Unknown|DOWN|1|a'"


@pytest.fixture
def slurm(world):
    """A Slurm of which only two commands answer."""
    world.edit("system", "scheduler: local", "scheduler: slurm")
    world.data.mkdir(exist_ok=True)
    world.fake("sinfo", "echo 'localhost|idle|none'")
    world.fake("sacctmgr", LASTING)
    return world


def test_node_events_are_recorded_and_answer_without_slurm(slurm):
    begin = since(1800)
    done = slurm.inside("availability", "--fetch", "--from", begin)
    assert (done.code, "recorded: 1 event since" in done.err) == (0, True)
    slurm.without("sinfo", "sacctmgr")
    read = check("availability", slurm.inside("availability", "--from", begin, "--json").out)
    (node,) = [one for one in read["subjects"] if one["kind"] == "node"]
    assert (node["name"], node["failures"]) == ("localhost", 1)
    assert node["unscheduled_hours"] * 3600 == pytest.approx(60, abs=3)


def test_a_second_fetch_begins_where_the_first_has_ended(slurm):
    slurm.inside("availability", "--fetch")
    slurm.fake("sacctmgr", f'echo "$@" >{slurm.data}/words; {LASTING}')
    assert slurm.inside("availability", "--fetch").code == 0
    (begin,) = re.findall(r"Start=uts(\d+)", (slurm.data / "words").read_text())
    assert time.time() - int(begin) == pytest.approx(3600, abs=20)


NO_DATABASE = {
    "echo 'sacctmgr: error: connection refused' >&2; exit 1": "connection refused",
    "exit 0": "lists no registration of this cluster",
    "echo garbage": "lists no registration of this cluster",
}


def test_a_database_that_does_not_answer_is_one_line_and_no_record(slurm):
    for script, what in NO_DATABASE.items():
        slurm.fake("sacctmgr", script)
        done = slurm.inside("availability", "--fetch")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), script
        assert what in done.err
        assert not (slurm.data / "perflogs").exists()


def test_a_site_without_probes_has_nothing_to_probe(world):
    world.data.mkdir(exist_ok=True)
    done = world.inside("probe")
    assert done.code == 2
    assert "the site has no probes. Add 'probes'" in done.err


def test_a_folder_that_cannot_be_written_is_one_line(world, service):
    (world.data / "perflogs").mkdir()
    (world.data / "perflogs/thishost").write_text("a file")
    done = world.inside("probe")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_a_campaign_is_shown_with_its_rounds_failures_and_speeds(world):
    soaks.write_site(world.sites)
    logs = world.data / "perflogs"
    soaks.write(logs, failures={(10, "n005", "Hpl"): "invalid", (11, "n005", "Hpl"): "lost"})
    soaks.write_events(logs)
    asked = ("availability", "--campaign", "soak", "--system", "here")
    done = world.inside(*asked, COLUMNS="80")
    assert done.code == 1
    assert (
        "failed: n005: wrong answer, Hpl, 1 result, 2026-11-07 23:20 UTC: was invalid" in done.out
    )
    assert "40 rounds, 39 with all answers" in done.out
    assert max(map(len, done.out.splitlines())) <= 80, done.out
    read = check("availability", world.inside(*asked, "--json").out)
    assert [len(read["soak"][key]) for key in ("rounds", "failures", "events")] == [40, 7, 2]
    lines = world.inside(*asked, "--plain").out.splitlines()
    assert [line.split("\t")[5] for line in lines if "\t7\t" in line] == ["n005"]


def test_a_campaign_has_its_own_period(world):
    soaks.write_site(world.sites)
    soaks.write(world.data / "perflogs", rounds=1)
    done = world.inside("availability", "--campaign", "soak", "--from", "7d", "--system", "here")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "a campaign has its own period" in done.err
