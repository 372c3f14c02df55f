"""Every way in which a turn of two nodes can come to nothing, told by name; and what it leaves."""

import os

import pytest
from clone import OUTPUTS
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from random_cases import cases
from rows import rows

from siteproof.collect import stages
from siteproof.collect.pair_turns import name, server_of, waiting, worth_repeating
from siteproof.record import samples
from siteproof.record.manifest import Manifest

RECORDED = {str(path.relative_to(OUTPUTS)) for path in OUTPUTS.glob("*/*.txt")}
GOOD, BACK = "3.12-tcp", "3.12-tcp_reverse"
REFUSED, KILLED = "3.12-no_server", "3.12-server_killed"


class Job:
    """A stage directory as a job over pairs leaves it."""

    def __init__(self, folder, turns, together=False, lost=None, **keys):
        self.stage, self.perflogs = folder / "stage", folder / "perflogs"
        (self.stage / "raw").mkdir(parents=True)
        ends = sorted({end for _, *pair in turns for end in pair})
        parsers = {"iperf3": "iperf3", "nuttcp": "nuttcp"}
        self.manifest = Manifest(
            session="20261121T120000Z-00001ab",
            system="here",
            partition="compute",
            environment="system",
            check="TcpBandwidth",
            mode="acceptance",
            expected=",".join(ends),
            metrics=["throughput"],
            parsers=parsers,
            derive="network.tcp_bandwidth",
            scheduler="slurm",
            turns=turns,
            together=together,
            lost=lost or {},
            jobs=["7"],
            started=1795267000,
            conditions={"link": "lan", "pattern": "star", "at_once": "1"},
            **keys,
        )
        self.manifest.save(self.stage)

    def account(self, folder, node, code=0, start=1795267400, end=1795267420, limit=60, **facts):
        (folder / "meta").write_text(
            f"node={node}\nhost={node}\nkernel=6.1\njob=7\nlimit={limit}\nstart={start}\n"
            f"exit={code}\nend={end}\n"
        )
        (folder / "facts").write_text("".join(f"{k}={v}\n" for k, v in facts.items()))
        (folder / "stdout").write_text("")
        (folder / "stderr").write_text("")

    def server(self, number, code=124, words=""):
        folder = self.stage / "raw" / server_of(number)
        folder.mkdir()
        self.account(folder, self.manifest.turns[number][2], code)
        (folder / "stderr").write_text(words)
        return folder

    def client(self, number, *runs, code=0, program="iperf3", words="", **keys):
        """runs: (direction, recorded output or text, exit code)."""
        folder = self.stage / "raw" / name(number)
        folder.mkdir()
        facts = {"program": program, "mtu": "9000"} if program else {}
        self.account(folder, self.manifest.turns[number][1], code, **keys, **facts)
        (folder / "stderr").write_text(words)
        for place, (way, text, ended) in enumerate(runs, 1):
            run = folder / f"run.{place}"
            run.mkdir()
            (run / "dims").write_text((f"direction={way}\n" if way else "") + "streams=1\n")
            known = f"{program}/{text}.txt" in RECORDED
            (run / "stdout").write_text(
                (OUTPUTS / program / f"{text}.txt").read_text() if known else text
            )
            (run / "stderr").write_text("")
            if ended is not None:
                (run / "exit").write_text(f"{ended}\n")
        return folder

    def both(self, number, **keys):
        self.client(number, ("out", GOOD, 0), ("in", BACK, 0), **keys)
        self.server(number)

    def collect(self, ended="COMPLETED"):
        stages.collect(self.stage, self.perflogs, ended=ended)
        return [s for path in samples.files(self.perflogs, "here") for s in samples.read(path)]

    def told(self, ended="COMPLETED"):
        """Failures: (node, peer, trial, status, why); and the pairs with a throughput."""
        found = self.collect(ended)
        failed = [
            (s.node, s.dims.get("peer", s.dims.get("link", "")), s.trial, s.status, s.why)
            for s in found
            if s.status != "ok"
        ]
        return failed, {
            f"{s.node}>{s.dims['peer']}"
            for s in found
            if s.metric.endswith(".throughput") and s.status == "ok"
        }


STAR = [(0, "n1", "s1"), (0, "n2", "s1")]
BOTH = {"n1>s1", "s1>n1"}


def one_measured(folder):
    """A star of which the first pair has been measured."""
    job = Job(folder, STAR)
    job.both(0)
    return job


@pytest.fixture
def star(tmp_path):
    return one_measured(tmp_path)


def test_both_directions_have_their_sender_as_node(star):
    star.both(1)
    failed, good = star.told()
    assert (failed, good) == ([], BOTH | {"n2>s1", "s1>n2"})


def test_a_server_that_died_costs_its_turn_and_is_lost_itself(star):
    star.manifest.lost = {"s1": "down*: power-off"}
    star.manifest.save(star.stage)
    star.client(1, ("out", "", 124), code=124)
    failed, good = star.told()
    assert failed == [
        (
            "n2",
            "s1",
            0,
            "interrupted",
            "s1 did not serve: down*: power-off; iperf3 1 hung: ended after its time limit",
        ),
        ("s1", "", 0, "node_lost", "down*: power-off"),
    ]
    assert good == BOTH


def test_turns_that_a_dead_server_never_had_name_it(star):
    star.manifest.lost = {"s1": "down*: power-off"}
    star.manifest.save(star.stage)
    failed, _ = star.told("CANCELLED")
    assert failed == [
        ("n2", "s1", 0, "interrupted", "no turn with s1: down*: power-off"),
        ("s1", "", 0, "node_lost", "down*: power-off"),
    ]


def test_a_dead_client_is_lost_and_its_server_is_not(star):
    star.manifest.lost = {"n2": "down*: power-off"}
    star.manifest.save(star.stage)
    star.server(1)
    failed, good = star.told()
    assert failed == [("n2", "s1", 0, "node_lost", "down*: power-off")]
    assert good == BOTH


def test_a_server_that_asks_too_and_died_after_its_own_turn_is_lost_all_the_same(tmp_path):
    job = Job(tmp_path, [(0, "a", "b"), (0, "c", "a")], lost={"a": "down*"})
    job.both(0)
    failed, good = job.told()
    assert failed == [
        ("a", "", 0, "node_lost", "down*"),
        ("c", "a", 0, "interrupted", "no turn with a: down*"),
    ]
    assert good == {"a>b", "b>a"}


def test_a_tool_that_the_server_lacks_is_told_of_the_server(star):
    star.server(1, 127, "iperf3 is not installed\n")
    star.client(1, ("out", REFUSED, 0), ("in", REFUSED, 0))
    failed, good = star.told()
    assert {(node, status) for node, _, _, status, _ in failed} == {
        ("n2", "tool_missing"),
        ("s1", "tool_missing"),
    }
    assert {why for *_, why in failed} == {"on s1: iperf3 is not installed"}
    assert good == BOTH


def test_a_tool_that_the_client_lacks_is_told_of_the_client(star):
    star.server(1)
    star.client(1, code=127, program="", words="iperf3 is not installed\n")
    assert star.told()[0] == [("n2", "s1", 0, "tool_missing", "iperf3 is not installed")]


def test_ends_with_different_programs_lack_a_tool_and_are_no_bad_pair(star):
    (star.server(1) / "facts").write_text("program=nuttcp\n")
    star.client(1, ("out", REFUSED, 1), ("in", REFUSED, 1), code=1)
    assert star.told()[0] == [
        (
            "n2",
            "s1",
            0,
            "tool_missing",
            "n2 used iperf3, s1 used nuttcp: both need the same program",
        )
    ]


IN_USE = "iperf3: error - unable to start listener for connections: Address already in use"


def test_a_port_in_use_is_the_servers_failure(star):
    star.server(1, 1, IN_USE)
    star.client(1, ("out", REFUSED, 0), ("in", REFUSED, 0))
    failed, good = star.told()
    assert [f[3] for f in failed] == ["generic", "generic"]
    assert all(
        f[4].startswith("the server on s1 exited with 1: iperf3: error - unable to start")
        for f in failed
    )


def test_a_figure_from_somebody_elses_server_does_not_count(star):
    star.server(1, 1, IN_USE)
    star.client(1, ("out", GOOD, 0), ("in", BACK, 0))
    failed, good = star.told()
    assert good == BOTH
    assert {f[3] for f in failed} == {"generic"}


def test_a_time_limit_that_came_first_accuses_nobody(star):
    failed, good = star.told("TIMEOUT")
    assert failed == [
        ("n2", "s1", 0, "interrupted", "the job reached its time limit before this turn")
    ]
    assert good == BOTH


def test_a_client_that_is_silent_while_later_turns_have_results_timed_out(tmp_path):
    job = Job(tmp_path, STAR)
    job.both(1)
    assert job.told("TIMEOUT")[0] == [
        ("n1", "s1", 0, "timeout", "no result, and turns after it have one")
    ]


@rows(
    "ended, why",
    [
        ("CANCELLED", "left no result (job CANCELLED)"),
        ("", "left no result (job ended)"),
        ("lost with its session", "left no result (job lost with its session)"),
        ("NODE_FAIL", "left no result (job NODE_FAIL)"),
    ],
)
def test_a_job_that_somebody_ended_accuses_nobody(tmp_path, ended, why):
    star = one_measured(tmp_path)
    assert star.told(ended)[0] == [("n2", "s1", 0, "interrupted", why)]


def test_a_client_that_came_too_late_is_told_so(star):
    star.server(1)
    assert star.told()[0] == [
        (
            "n2",
            "s1",
            0,
            "generic",
            "left no result (job COMPLETED): it came too late for its turn, or could not write",
        )
    ]


@rows("ended, status", [("CANCELLED", "interrupted"), ("COMPLETED", "generic")])
@rows("codes, whole", [({"run": 143, "script": 143}, True), ({"run": None, "script": 143}, False)])
def test_what_a_signal_ended_with_its_job_is_no_failure(tmp_path, codes, whole, ended, status):
    star = one_measured(tmp_path)
    star.server(1)
    star.client(1, ("out", GOOD, 0), ("in", "", codes["run"]), code=codes["script"])
    failed, good = star.told(ended)
    assert [f[3] for f in failed] == [status]
    assert good == BOTH | ({"n2>s1"} if whole else set())


@rows("ended, status", [("CANCELLED", "interrupted"), ("COMPLETED", "generic")])
def test_a_server_that_hung_up_with_its_job_is_no_failure(tmp_path, ended, status):
    star = one_measured(tmp_path)
    star.server(1, 129)
    star.client(1, ("out", REFUSED, 1), code=1)
    assert [f[3] for f in star.told(ended)[0]] == [status]


def test_a_node_that_is_reserved_for_others_is_not_lost(star):
    star.manifest.lost = {"s1": "reserved for weather", "n2": "reserved for weather"}
    star.manifest.spared = ["s1", "n2"]
    star.manifest.save(star.stage)
    failed, good = star.told()
    assert failed == [
        ("n2", "s1", 0, "interrupted", "reserved for weather"),
        ("s1", "", 0, "interrupted", "reserved for weather"),
    ]
    assert good == BOTH


def test_one_direction_fails_for_itself(star):
    star.server(1)
    star.client(1, ("out", GOOD, 0), ("in", KILLED, 0))
    failed, good = star.told()
    assert [(f[0], f[1], f[3]) for f in failed] == [("s1", "n2", "generic")]
    assert good == BOTH | {"n2>s1"}


def test_a_turn_that_was_cut_counts_in_no_direction_as_nobody_knows_what_is_missing(star):
    star.server(1)
    star.client(1, ("out", GOOD, 0), ("in", "", None), code=124, start=100, end=160)
    failed, good = star.told()
    assert failed == [("n2", "s1", 0, "timeout", "its turn was over before its runs were")]
    assert good == BOTH


def test_a_script_that_broke_off_between_its_runs_counts_in_no_direction(star):
    star.server(1)
    star.client(1, ("out", GOOD, 0), code=2, words="run.2: No space left on device")
    failed, good = star.told()
    assert failed == [
        ("n2", "s1", 0, "generic", "iperf3 exited with 2: run.2: No space left on device")
    ]
    assert good == BOTH


def test_a_script_may_deny_its_figures(star):
    star.server(1)
    star.client(1, ("out", GOOD, 0), ("in", BACK, 0))
    with (star.stage / "raw" / name(1) / "facts").open("a") as facts:
        facts.write("invalid=the clock went backwards\n")
    assert star.told()[0] == [("n2", "s1", 0, "invalid", "the clock went backwards")]


@rows(
    "dims, why",
    [
        ("direction=sideways", "a run has direction 'sideways', expected out or in"),
        ("peer=n9", "a run must not set its peer"),
        ("link=wan", "a run must not set its link"),
        ("node=n9", "a run must not set its node"),
        ("trial=" + "9" * 5000, f"throughput: trial '{'9' * 20}' is not a whole number"),
        ("trial=\u0663", "throughput: trial '\u0663' is not a whole number"),
        ("program=bash", "measured by 'bash', which no parser of TcpBandwidth reads"),
    ],
)
def test_a_run_says_nothing_that_the_timetable_knows_better(tmp_path, dims, why):
    star = one_measured(tmp_path)
    star.server(1)
    folder = star.client(1, ("", GOOD, 0))
    (folder / "run.1" / "dims").write_text(dims + "\n")
    assert star.told()[0] == [("n2", "s1", 0, "parse", why)]


def test_a_look_at_the_cores_is_as_bounded_as_a_measurement(tmp_path):
    star = one_measured(tmp_path)
    star.server(1)
    folder = star.client(1, ("", GOOD, 0), ("", "", 0))
    (folder / "run.2" / "dims").write_text("program=cores\ntrial=x\n")
    why = "not_read: trial 'x' is not a whole number"
    assert star.told()[0] == [("n2", "s1", 0, "parse", why)]


def test_garbage_in_a_run_is_told_and_costs_that_direction_only(star):
    star.server(1)
    star.client(1, ("out", "\x00\xff garbage {", 0), ("in", BACK, 0))
    failed, good = star.told()
    assert [(f[0], f[3]) for f in failed] == [("n2", "parse")]
    assert good == BOTH | {"s1>n2"}


def test_an_mtu_that_holds_no_segment_is_no_division_by_zero(tmp_path):
    job = Job(tmp_path, STAR[:1], facts={"speed": "10000000000", "mtu": "52"})
    job.server(0)
    folder = job.client(0, ("out", GOOD, 0))
    (folder / "facts").write_text("program=iperf3\nmtu=52\n")
    assert job.told()[0] == [("n1", "s1", 0, "parse", "tcp: an MTU of 52 bytes holds no segment")]


def _file_for_folder(path):
    path.rename(path.with_name(".gone"))
    path.write_text("no folder")


def _folder_for_file(path):
    (path / "meta").unlink()
    (path / "meta").mkdir()


def _loop(path):
    (path / "run.1" / "stdout").unlink()
    (path / "run.1" / "stdout").symlink_to("stdout")


def _pipe(path):
    (path / "run.1" / "stdout").unlink()
    os.mkfifo(path / "run.1" / "stdout")


def _run_is_a_file(path):
    (path / "run.7").write_text("")


def _no_end(path):
    (path / "meta").write_text("node=n2\n")


def _binary(path):
    for file in (path / "meta", path / "facts", path / "run.1" / "dims"):
        file.write_bytes(bytes(range(256)) * 9)


@rows("hurt", [_file_for_folder, _folder_for_file, _loop, _pipe, _run_is_a_file, _no_end, _binary])
@rows("whose", [name, server_of])
def test_broken_files_are_told_of_their_pair_and_end_in_no_traceback(tmp_path, hurt, whose):
    star = one_measured(tmp_path)
    star.both(1)
    folder = star.stage / "raw" / whose(1)
    if whose is server_of and not (folder / "run.1").is_dir():
        (folder / "run.1").mkdir()
        for file in ("stdout", "stderr", "dims"):
            (folder / "run.1" / file).write_text("")
    hurt(folder)
    failed, good = star.told()
    assert good >= BOTH
    assert whose is server_of or failed, "the client's account is broken, and nobody says so"


@cases(30, suppress=(HealthCheck.function_scoped_fixture,))
@given(data=st.data())
@pytest.mark.deep
def test_hostile_texts_are_samples_that_can_be_read_again(tmp_path_factory, data):
    text = st.text(max_size=60) | st.sampled_from(
        [
            "direction=out\nstreams=\u202e1",
            "exit=0\nexit=999999999999999999999",
            "start=-1",
            "=\n==\n",
            "program=iperf3\nprogram=../../x",
            "invalid=\x1b[2J",
            "a" * 4000 + "=b",
        ]
    )
    job = Job(tmp_path_factory.mktemp("hostile"), STAR)
    job.both(0)
    job.both(1)
    for file in ("meta", "facts", "stdout", "stderr", "run.1/dims", "run.1/stdout", "run.1/exit"):
        if data.draw(st.booleans()):
            path = job.stage / "raw" / name(1) / file
            path.write_text(path.read_text() * data.draw(st.booleans()) + data.draw(text))
    failed, good = job.told()
    assert good >= BOTH
    assert all(status in samples.STATUSES for *_, status, _ in failed)


def test_pairs_that_do_not_run_together_have_no_figure_of_the_link(star):
    star.both(1)
    assert all(s.node for s in star.collect())


# ---- what a second job repeats


def test_a_second_job_repeats_what_nobody_served_and_nothing_that_was_measured(tmp_path):
    job = Job(tmp_path, [(0, f"n{n}", "s1") for n in range(5)])
    job.both(0)
    job.client(1, ("out", GOOD, 0), ("in", BACK, 0))  # the server's account was lost
    job.client(2, ("out", "", 124), code=124)
    job.client(3, ("out", "", 124), code=124)
    job.server(3)
    assert [n for n in range(5) if worth_repeating(job.stage, n)] == [2, 4]


# ---- for whom a job is waited for

TWO = [(0, "a", "s"), (0, "b", "t"), (0, "c", "s")]


def test_nobody_waits_for_turns_with_a_dead_server_but_for_the_server():
    there = {name(0), server_of(0)}
    assert waiting(TWO, there, set()) == {"b", "c", "s", "t"}
    assert waiting(TWO, there, {"s"}) == {"b", "t", "s"}  # b and t go on
    assert waiting(TWO, there | {name(1), server_of(1)}, {"s"}) == {"s"}


def test_a_dead_client_holds_its_server_no_longer():
    assert waiting(TWO[:2], {name(0), server_of(0)}, {"b"}) == {"b"}


def test_two_dead_nodes_are_both_missing():
    assert waiting(TWO[:1], set(), {"a", "s"}) == {"a", "s"}
