"""The alert rules for what `siteproof export openmetrics` writes, in a real Prometheus.

promtool checks rules and text; a Prometheus on the loopback reads an export that a web server of
Python's hands out, and is asked for its alerts.
"""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import exported
import nets
import pytest
import yaml
from clone import TOP, wait_for
from exported import NASTY, NOW
from fleets import names, run_of

from siteproof.export import openmetrics
from siteproof.record import availability_log
from siteproof.record.availability_log import ProbeResult

RULES = TOP / "docs/alerts.rules.yaml"
DASHBOARD = TOP / "docs/grafana.json"
VARIABLES = {"metric": "siteproof_stream_triad_bytes_per_second"}  # the others: all
TESTS = TOP / "tests/command/alerts.test.yaml"
TYPES = {  # as node_exporter serves its files, and as the strict format is served
    "text": "text/plain; version=0.0.4",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: siteproof
    metrics_path: /siteproof.prom
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""

PROBE = """
probes:
  root: {kind: mount, target: /, interval: 60 s, timeout: 9 s}
"""
UP = """
HERE-UP:
  description: The machine is up
  metric: Availability.overall
  subject: system
  at_least: 1 %
  conditions: {window_hours: {at_least: 1}}
  source: test
"""


@pytest.fixture(autouse=True)
def prometheus():
    for program in ("promtool", "prometheus"):
        if not shutil.which(program):
            pytest.skip(f"PROMETHEUS NOT TESTED: {program} is not installed")


def promtool(*words, text=None):
    done = subprocess.run(
        ["promtool", *map(str, words)], input=text, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rules():
    return [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]


def text_of(folder, monkeypatch, found=None):
    """The export of a made fleet, in which node 2 misses a criterion."""
    where = exported.site(folder, monkeypatch)
    judged = exported.judged(where, found)
    return openmetrics.text(judged, exported.report(judged), NOW, [None])


@pytest.mark.tool("Prometheus")
def test_the_rules_are_valid_and_each_fires_when_it_should():
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", TESTS)


def test_no_rule_is_without_a_test():
    told = {
        alert["alertname"]
        for one in yaml.safe_load(TESTS.read_text())["tests"]
        for alert in one["alert_rule_test"]
        if alert["exp_alerts"]
    }
    assert told == {rule["alert"] for rule in rules()}


def test_every_name_in_a_rule_is_exported(world, tmp_path, monkeypatch):
    site = world.site()
    for file, more in (("system.yaml", PROBE), ("criteria.yaml", UP)):
        (site / file).write_text((site / file).read_text() + more)
    perflogs, now = world.data / "perflogs", int(time.time())
    perflogs.mkdir(parents=True, exist_ok=True)
    for at in range(now - 7200, now + 1, 60):
        result = ProbeResult(at, "root", "root", "mount", "/", True, 60, 0.1, "")
        availability_log.append(perflogs, "thishost", result)
    texts = [world.inside("export", "openmetrics").out, text_of(tmp_path, monkeypatch)]
    link = nets.load(tmp_path / "net", monkeypatch, criteria="{}\n", more=", critical: 8 Gb/s")
    graded = exported.judged(link, [nets.ok("n1>s1", 7)])
    texts.append(openmetrics.text(graded, exported.report(graded), NOW))
    written = {name for text in texts for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
    asked = {name for rule in rules() for name in re.findall(r"siteproof_\w+", rule["expr"])}
    assert asked <= written
    bound = 'siteproof_criterion_bound_ratio{system="thishost",criterion="HERE-UP",'
    assert bound + 'metric="Availability.overall",kind="at_least"} 0.01' in texts[0]
    worst = 'siteproof_criterion_worst_ratio{system="thishost",criterion="HERE-UP",'
    assert worst + 'metric="Availability.overall"} 1\n' in texts[0]


@pytest.mark.parametrize("name", ["plain", "nasty"])
def test_promtool_finds_no_mistake_in_an_export(name, tmp_path, monkeypatch):
    found = exported.measured(why=NASTY if name == "nasty" else "because")
    promtool("check", "metrics", text=text_of(tmp_path, monkeypatch, found))


@contextmanager
def served(folder, kind):
    """A web server for the files of a folder; its port."""

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {".prom": kind}  # noqa: RUF012 # as the base class has it

        def log_message(self, *_words):
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def watching(folder, port):
    """A Prometheus that reads that server once a second; asks its API."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    (folder / "prometheus.yml").write_text(CONFIG.format(rules=RULES, port=port))
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{own}",
            ],
            stdout=log,
            stderr=log,
        )

    def ask(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/{path}") as answer:
                return json.load(answer)["data"]
        except OSError:
            assert running.poll() is None, (folder / "log").read_text()
            return {}

    try:
        yield ask
    finally:
        running.terminate()
        running.wait()


@pytest.mark.tool("Prometheus")
@pytest.mark.parametrize("kind", TYPES)
def test_a_prometheus_that_reads_an_export_has_the_alerts(kind, tmp_path, monkeypatch):
    text = text_of(tmp_path, monkeypatch)
    (tmp_path / "siteproof.prom").write_text(text)
    with served(tmp_path, TYPES[kind]) as port, watching(tmp_path, port) as ask:

        def alerts():
            return {
                (one["labels"]["alertname"], one["labels"].get("criterion", ""), one["state"])
                for one in ask("alerts").get("alerts", [])
            }

        wanted = {
            ("SiteproofFailing", "C-FAIL", "firing"),
            ("SiteproofNodeOut", "", "pending"),
            ("SiteproofWorse", "", "firing"),
            ("SiteproofIncomplete", "", "pending"),
        }
        wait_for(lambda: wanted <= alerts())  # each rule is evaluated for itself
        assert not [one for one in alerts() if one[1] == "C-PASS"]
        targets = ask("targets")["activeTargets"]
    assert [target["lastError"] for target in targets] == [""]


def queries():
    """Each query of the dashboard as Grafana sends it, with its panel."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            query = re.sub(r"\$(\w+)", lambda found: VARIABLES.get(found[1], ".*"), target["expr"])
            yield f"{panel['title']} {target['refId']}", query


def test_each_query_of_the_dashboard_has_an_answer(tmp_path, monkeypatch):
    page, unanswered = tmp_path / "siteproof.prom", dict(queries())
    page.write_text(text_of(tmp_path, monkeypatch))
    with served(tmp_path, TYPES["text"]) as port, watching(tmp_path, port) as ask:

        def answered(titles):
            for title in titles & unanswered.keys():
                path = f"query?query={urllib.parse.quote(unanswered[title])}"
                if ask(path).get("result"):
                    del unanswered[title]
            return not titles & unanswered.keys()

        links = {"Pairs of links by grade A"}
        wait_for(lambda: answered(unanswered.keys() - links))
        link = nets.load(tmp_path / "net", monkeypatch, criteria="{}\n", more=", critical: 8 Gb/s")
        graded = exported.judged(link, [nets.ok("n1>s1", 7)])
        page.write_text(openmetrics.text(graded, exported.report(graded), NOW))
        wait_for(lambda: answered(links))


def test_an_alert_ends_when_the_criterion_passes(tmp_path, monkeypatch):
    page = tmp_path / "siteproof.prom"
    page.write_text(text_of(tmp_path, monkeypatch))
    with served(tmp_path, TYPES["text"]) as port, watching(tmp_path, port) as ask:

        def failing():
            return [
                one["labels"]["criterion"]
                for one in ask("alerts").get("alerts", [])
                if one["labels"]["alertname"] == "SiteproofFailing"
            ]

        wait_for(lambda: "C-FAIL" in failing())
        good = [*exported.measured()[8:], *run_of(dict.fromkeys(names(8), 120))]
        where = exported.site(tmp_path / "mended", monkeypatch)
        judged = exported.judged(where, good)
        page.write_text(openmetrics.text(judged, exported.report(judged), NOW))
        wait_for(lambda: "C-FAIL" not in failing() and "C-ERROR" in failing())
