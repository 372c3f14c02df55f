"""A result belongs to its node: what contradicts that gives no sample, and says why."""

import os
import shutil
import subprocess

import pytest
from clone import OUTPUTS, wait_for
from left_in import left_in
from rows import rows

from siteproof.collect import raw, stages
from siteproof.collect.pair_turns import name, server_of
from siteproof.errors import UserError
from siteproof.record.manifest import Manifest, Origin, Point, folder_of
from siteproof.slurm import client, munge

LIKWID = (OUTPUTS / "likwid/5.2.2-copy_and_stream.txt").read_text()
IPERF = (OUTPUTS / "iperf3/3.12-tcp.txt").read_text()
NONCE = "0123456789abcdef" * 2
HOSTS = {"n1": ["10.0.0.1", "n1"], "n2": ["10.0.0.2", "n2"]}
BY_MUNGE = Origin("munge", NONCE, 1000, "10.0.0.99", HOSTS)
ADDRESS = {"n1": "10.0.0.1", "n2": "10.0.0.2"}
READ = munge.read


def read(text):
    """What munged would read in `seal`."""
    mark, status, host, uid, said = [*text.split("|", 4), *[""] * 5][:5]
    if mark != "MUNGE:" or not said or int(status) not in munge.GENUINE:
        raise munge.Forged("Invalid credential")
    return munge.Credential(int(uid), host, said)


@pytest.fixture(autouse=True)
def munged(monkeypatch):
    """A munge that reads STATUS|HOST|UID|WORDS, and no Slurm."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(munge, "read", read)
    for cached in (client.settings, munge.socket, munge.own, raw._addresses, raw._nodes):
        cached.cache_clear()


def manifest(**changed):
    return Manifest(
        **{
            "session": "s1", "system": "here", "partition": "all", "environment": "system",
            "check": "Stream", "mode": "quick", "expected": "n[1-2]", "metrics": ["copy"],
            "parsers": {"likwid-bench": "likwid", "iperf3": "iperf3"}, "jobs": ["17"],
            "started": 900.0, "origin": BY_MUNGE, **changed,
        }
    )  # fmt: skip


class Job:
    """A job's stage directory, as honest nodes leave it."""

    def __init__(self, folder, **changed):
        self.stage, self.perflogs = folder / "stage", folder / "perflogs"
        (self.stage / "raw").mkdir(parents=True)
        self.plan = manifest(**changed)
        self.plan.save(self.stage)

    def leave(self, name, node, out=LIKWID, program="likwid-bench", **meta):
        """A result folder without a credential."""
        folder = self.stage / "raw" / name
        folder.mkdir()
        told = {"node": node, "host": node, "exit": 0, "limit": 100, "start": 1000, "end": 1010}
        told |= meta
        (folder / "meta").write_text(
            "".join(f"{k}={v}\n" for k, v in told.items() if v is not None)
        )
        (folder / "facts").write_text(f"program={program}\n")
        (folder / "stdout").write_text(out)
        (folder / "stderr").write_text("")
        return folder

    def sealed(self, name, node, **keys):
        """A result folder with its credential."""
        folder = self.leave(name, node, **keys)
        seal(folder, node)
        return folder

    def collect(self):
        """Status and reason by node, of what has no value; and the header."""
        found = stages.collect(self.stage, self.perflogs, ended="COMPLETED")
        bad = {s.node: f"{s.status}: {s.why}" for s in found if s.status != "ok"}
        good = {s.node for s in found if s.status == "ok"}
        return good, bad, found[0].header


def seal(folder, of, /, status=0, host=None, uid=1000, nonce=NONCE, **said):
    """Write the credential that munge would give."""
    told = {"node": of, "folder": folder.name, "digest": left_in(folder).digest, **said}
    words = f"siteproof {nonce} {told['node']} {told['folder']} {told['digest']}"
    (folder / "origin").write_text(f"MUNGE:|{status}|{host or ADDRESS.get(of)}|{uid}|{words}\n")


def test_results_with_their_nodes_credentials_are_samples_and_the_header_says_so(tmp_path):
    job = Job(tmp_path)
    job.sealed("n1", "n1")
    job.sealed("n2", "n2")
    good, bad, header = job.collect()
    assert (good, bad) == ({"n1", "n2"}, {})
    assert header.provenance["origin"] == "munge"
    assert "origin" not in header.conditions


@rows("status", [15, 16, 17])
def test_an_old_credential_and_one_read_before_still_say_who_it_was(status, tmp_path):
    job = Job(tmp_path, expected="n1")
    seal(job.leave("n1", "n1"), "n1", status=status)
    assert job.collect()[:2] == ({"n1"}, {})


WRONG = {
    "another host": ({"host": "10.0.0.2"}, "made on 10.0.0.2, which is not n1"),
    "an unknown host": ({"host": "192.0.2.7"}, "made on 192.0.2.7, which is not n1"),
    "another user": ({"uid": 0}, "of user 0, the job of user 1000"),
    "another job": ({"nonce": "f" * 32}, "another job"),
    "another node": ({"node": "n2"}, "another node"),
    "another folder": ({"folder": "n2"}, "another folder"),
    "another content": ({"digest": "0" * 64}, "another content"),
    "more words": ({"digest": "0 0"}, "not belong to a result"),
    "a broken one": ({"status": 8}, "not genuine"),
}


@rows("case", WRONG)
def test_a_credential_that_contradicts_gives_no_sample(case, tmp_path):
    changed, told = WRONG[case]
    job = Job(tmp_path)
    seal(job.leave("n1", "n1"), "n1", **changed)
    job.sealed("n2", "n2")
    good, bad, _ = job.collect()
    assert good == {"n2"}
    assert bad["n1"].startswith("generic: ")
    assert told in bad["n1"]


@rows("file", ["meta", "facts", "stdout", "stderr", "run.1/stdout", "run.1/exit"])
def test_what_is_changed_after_the_credential_gives_no_sample(file, tmp_path):
    job = Job(tmp_path, expected="n1")
    folder = job.leave("n1", "n1")
    (folder / "run.1").mkdir()
    for part in ("dims", "stdout", "stderr"):
        (folder / "run.1" / part).write_text(LIKWID if part == "stdout" else "")
    (folder / "run.1/exit").write_text("0\n")
    seal(folder, "n1")
    with (folder / file).open("a") as changed:
        changed.write("\n")
    good, bad, _ = job.collect()
    assert not good
    assert "another content" in bad["n1"]


@rows(
    "text, told",
    [
        (None, "it left none"),
        ("none: munge is not installed on the node", "not installed"),
        ("x" * 10, "x"),
        ("MUNGE:", "not genuine"),
        ("MUNGE:" + "A" * 100_000, "not genuine"),
    ],
)
def test_a_result_without_a_credential_where_one_is_due_gives_no_sample(text, told, tmp_path):
    job = Job(tmp_path, expected="n1")
    folder = job.leave("n1", "n1")
    if text:
        (folder / "origin").write_text(text)
    good, bad, _ = job.collect()
    assert not good
    assert bad["n1"].startswith("generic: ")
    assert told in bad["n1"]


def test_what_is_not_proven_is_named_in_the_header(tmp_path):
    job = Job(tmp_path)
    seal(job.leave("n1", "n1"), "n1", host="127.0.1.1")
    job.sealed("n2", "n2")
    good, _, header = job.collect()
    assert good == {"n1", "n2"}
    assert header.provenance["origin"] == "munge: n2; munge, node unproven: n1"


def test_a_munged_that_all_nodes_share_with_the_login_proves_the_user_only(tmp_path):
    job = Job(tmp_path, expected="n1")
    seal(job.leave("n1", "n1"), "n1", host="10.0.0.99")
    assert job.collect()[2].provenance["origin"] == "munge, node unproven"


def test_a_site_may_ask_for_the_user_only_or_for_nothing(tmp_path):
    user = Origin("user", NONCE, 1000, "", HOSTS)
    job = Job(tmp_path / "a", expected="n1", origin=user)
    seal(job.leave("n1", "n1"), "n1", host="192.0.2.7")
    assert job.collect()[2].provenance["origin"] == "munge, node unproven"
    none = Origin("none: the site asks for none", NONCE)
    job = Job(tmp_path / "b", expected="n1", origin=none)
    job.leave("n1", "n1")
    assert job.collect()[2].provenance["origin"] == "none: the site asks for none"


def test_a_munged_that_does_not_answer_here_is_named(tmp_path, monkeypatch):
    def no_answer(_text):
        raise UserError("munge", "no socket")

    monkeypatch.setattr(munge, "read", no_answer)
    job = Job(tmp_path, expected="n1")
    job.sealed("n1", "n1")
    assert job.collect()[2].provenance["origin"].startswith("munge, not checked: ")


def test_a_session_older_than_evidence_is_collected_as_it_was(tmp_path):
    job = Job(tmp_path, expected="n1", origin=Origin())
    job.leave("n1", None, host=None)
    good, _, header = job.collect()
    assert good == {"n1"}
    assert "origin" not in header.provenance


# ---- without any credential


NONE = Origin("none: no Slurm", NONCE)


@rows("by", [NONE, BY_MUNGE])
@rows("says", ["n1", None, "", "../n2", "N2"])
def test_a_node_that_vouches_for_another_gives_no_sample_for_it(says, by, tmp_path):
    job = Job(tmp_path, origin=by)
    job.leave("n2", says, host="n2")
    seal(job.stage / "raw/n2", "n2")
    good, bad, _ = job.collect()
    assert not good
    assert f"is of node '{says or ''}'" in bad["n2"]


def test_an_older_session_whose_account_names_another_node_gives_no_sample_for_it(tmp_path):
    job = Job(tmp_path, origin=Origin())
    job.leave("n2", "n1")
    assert not job.collect()[0]


def test_a_result_that_was_made_on_another_node_gives_no_sample(tmp_path):
    job = Job(tmp_path, origin=NONE)
    job.leave("n2", "n2", host="n1")
    job.leave("n1", "n1", host="n1.cluster.example")
    good, bad, _ = job.collect()
    assert good == {"n1"}
    assert "made on n1" in bad["n2"]


FILES = ("meta", "facts", "stdout", "stderr", "run.1/stdout")
LINKS = [("symbolic", file) for file in ("", "run.1", *FILES)] + [("hard", "meta")]


@rows("way, file", LINKS)
def test_a_link_to_another_nodes_result_gives_no_sample(file, way, tmp_path):
    job = Job(tmp_path, origin=NONE)
    for node in ("n1", "n2"):
        folder = job.leave(node, node)
        (folder / "run.1").mkdir()
        for part in ("dims", "stdout", "stderr"):
            (folder / "run.1" / part).write_text(LIKWID if part == "stdout" else "")
        (folder / "run.1/exit").write_text("0\n")
    mine, theirs = job.stage / "raw/n2" / file, job.stage / "raw/n1" / file
    if mine.is_dir():
        shutil.rmtree(mine)
    else:
        mine.unlink()
    if way == "hard":
        mine.hardlink_to(theirs)
    else:
        mine.symlink_to(theirs)
    good, bad, _ = job.collect()
    assert "n2" not in good
    assert bad["n2"].startswith("generic: ")
    if file:
        assert "n1" in good, "who is linked to is not to blame for a link"


# ---- turns and points


def turns(folder, **changed):
    return Job(folder, check="TcpBandwidth", metrics=["throughput"], derive="network.tcp_bandwidth",
               turns=[(0, "n1", "n2")], **changed)  # fmt: skip


def leave_turn(job, client="n1", server="n2", **keys):
    """Both accounts of turn 0; by whom, as they say."""
    for place, node in ((name(0), client), (server_of(0), server)):
        folder = job.leave(place, node, IPERF, "iperf3", exit=124 if node is server else 0)
        seal(folder, node, **keys)
    return job


def test_a_turn_is_of_the_client_and_the_server_of_the_timetable(tmp_path):
    job = leave_turn(turns(tmp_path))
    good, bad, header = job.collect()
    assert (good, bad) == ({"n1"}, {})
    assert header.provenance["origin"] == "munge"


ENDS = [{"client": "n2"}, {"server": "n1"}]


@rows(
    "by, wrong",
    [(NONE, end) for end in ENDS]
    + [(BY_MUNGE, wrong) for wrong in (*ENDS, {"host": "10.0.0.9"}, {"uid": 7})],
)
def test_a_turn_that_others_account_for_gives_no_sample(by, wrong, tmp_path):
    job = leave_turn(turns(tmp_path, origin=by), **wrong)
    good, bad, _ = job.collect()
    assert not good
    assert bad["n1"].startswith("generic: ")


def test_a_link_to_another_turns_server_gives_no_sample(tmp_path):
    job = leave_turn(turns(tmp_path, origin=NONE))
    server = job.stage / "raw" / server_of(0)
    server.rename(job.stage / "elsewhere")
    server.symlink_to(job.stage / "elsewhere")
    assert not job.collect()[0]


def points(folder, **changed):
    axes = {"tasks": "1", "tasks_per_node": "1"}
    return Job(folder, points={1: Point(axes, ()), 2: Point(axes, (), 2)}, **changed)


def test_a_point_is_of_a_node_of_its_job(tmp_path):
    job = points(tmp_path)
    job.sealed(folder_of(1), "n1")
    seal(job.leave(folder_of(2), "n3", host="n3"), "n3", host="10.0.0.3")
    found = stages.collect(job.stage, job.perflogs)
    assert [s.trial for s in found if s.status == "ok"] == [0, 0]
    assert [s.why for s in found if s.status != "ok"] == [
        "its account is of 'n3', which is not a node of the job"
    ]


def test_a_point_that_is_a_copy_of_another_gives_no_sample(tmp_path):
    job = points(tmp_path)
    folder = job.sealed(folder_of(1), "n1")
    shutil.copytree(folder, folder.with_name(folder_of(2)))
    found = stages.collect(job.stage, job.perflogs)
    assert "another folder" in next(s.why for s in found if s.status != "ok")


# ---- the real munge


@pytest.mark.command
def test_munge_itself_says_who_and_where(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin")
    if not shutil.which("munged") or os.geteuid():
        pytest.skip("NOT TESTED: munged, and root to start it")
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    monkeypatch.setattr(munge, "read", READ)
    place = tmp_path / "socket"
    words = ["munged", "-F", "--force", f"--socket={place}", f"--key-file={key}"]
    words += [f"--{file}-file={tmp_path / file}" for file in ("log", "pid", "seed")]
    daemon = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        wait_for(place.exists)
        monkeypatch.setattr(munge, "socket", lambda: str(place))
        made = subprocess.run(["munge", "-S", place, "-s", "a b"], capture_output=True, text=True)
        for _ in range(2):  # the second time it is a replay
            told = munge.read(made.stdout.strip())
            assert (told.uid, told.message) == (0, "a b")
        assert munge.own().address == told.address
        for broken in ("MUNGE:AwQ:", made.stdout.strip()[:-9] + "AAAAAAA=:"):
            with pytest.raises(munge.Forged):
                munge.read(broken)
    finally:
        daemon.terminate()
        daemon.wait()
