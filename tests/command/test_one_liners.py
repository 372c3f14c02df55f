"""The lines of docs/daily.md for mail, chat and Alertmanager, run as they stand there."""

import json
import re
import shutil
import socket
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from clone import TOP, wait_for
from fleets import broken, furnish, good

PAGE = (TOP / "docs/daily.md").read_text(encoding="utf-8")
CHAPTER = PAGE.partition("## Mail, chat and Alertmanager")[2].partition("\n## ")[0]
MAIL, CHAT, ALERTS = re.findall(r"^```\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL)
NASTY = "'\" $(touch ran) `touch ran`; <!channel> @all & \\\n'second' line"
ALERTMANAGER = "localhost:9093"
SILENT = "route: {receiver: none}\nreceivers: [{name: none}]\n"


@pytest.fixture
def here(world):
    """A system; the answer of a node has what a shell, JSON or a chat could read as its own."""
    for program in ("jq", "curl"):
        if not shutil.which(program):
            pytest.skip(f"NOT TESTED: {program} is not installed")
    made = furnish(world)
    made.keep([*good()[1:], broken("n001", "invalid", why=NASTY)])
    return made


def run(here, line):
    """A line of the page, and that no part of the answer was run."""
    done = here.run(
        "bash", "-o", "pipefail", "-c", line, SITEPROOF_SYSTEM="here", HOME=str(here.folder)
    )
    assert not [path for path in (here.clone, here.folder) if (path / "ran").exists()]
    return done


def brief(here):
    """What the lines send; it has the answer."""
    text = here.ask("report", "--brief").out.rstrip("\n")
    assert "$(touch ran) `touch ran`; <!channel> @all" in text
    return text


@contextmanager
def listening():
    """A web server that keeps what is posted to it."""
    kept = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            kept.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words):
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, kept
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def alertmanager(folder):
    """A real Alertmanager that notifies nobody; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "alertmanager.yml").write_text(SILENT)
    words = [
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alerts'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(["prometheus-alertmanager", *words], stdout=log, stderr=log)
    try:
        wait_for(lambda: asked(address) is not None)
        yield address
    finally:
        running.terminate()
        running.wait()


def asked(address):
    """The alerts that fire, by criterion, each with its summary."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v2/alerts") as answer:
            found = json.load(answer)
    except OSError:
        return None
    return {one["labels"]["criterion"]: one["annotations"]["summary"] for one in found}


def test_a_mail_is_sent_where_the_verdict_is_not_pass(here):
    here.fake("mail", f'printf "%s\\n" "$@" >{here.folder}/words; cat >{here.folder}/text')
    text = brief(here)
    assert run(here, MAIL).code == 0
    assert (here.folder / "words").read_text() == "-s\nSiteproof\nhpc-ops@example.org\n"
    assert (here.folder / "text").read_text() == f"{text}\n"
    here.keep(good(run=2))
    (here.folder / "text").unlink()
    assert run(here, MAIL).code == 0 and not (here.folder / "text").exists()


def test_a_chat_gets_the_paragraph_as_text_and_mentions_nobody(here):
    text = brief(here)
    with listening() as (port, kept):
        secret = here.folder / ".siteproof-webhook"
        secret.write_text(f'url = "http://127.0.0.1:{port}/services/T0/B0"\n')
        done = run(here, CHAT)
    assert done.code == 0, done
    [(path, body)] = kept
    sent = json.loads(body)["text"]
    assert path == "/services/T0/B0" and not re.search("[<>]|@[a-z]", sent)
    sent = sent.replace("@ ", "@")
    assert sent.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


def test_an_error_of_a_part_of_a_line_is_an_error_of_the_line(here):
    with listening() as (port, kept):
        done = run(here, ALERTS.replace(ALERTMANAGER, f"127.0.0.1:{port}").replace("json", "jsn"))
    assert done.code != 0 and "No such command 'jsn'" in done.err
    assert [body for _, body in kept if body] == []
    assert run(here, CHAT).code != 0  # there is no file with the address


@pytest.mark.tool("Alertmanager")
def test_an_alertmanager_has_what_is_not_met_until_it_is_met(here):
    if not shutil.which("prometheus-alertmanager"):
        pytest.skip("ALERTMANAGER NOT TESTED: prometheus-alertmanager is not installed")
    with alertmanager(here.folder) as address:
        line = ALERTS.replace(ALERTMANAGER, address)
        done = run(here, line)
        assert done.code == 0, done
        [(criterion, summary)] = asked(address).items()
        assert (criterion, summary.partition(":")[0]) == ("C-TRIAD", "FAIL")
        judged = json.loads(here.ask("verdict", "--json").out)["criteria"][0]
        assert summary == f"FAIL: {judged['why']}" and "$(touch ran)" in summary
        here.keep(good(run=2))
        assert run(here, line).code == 0
        wait_for(lambda: asked(address) == {})
