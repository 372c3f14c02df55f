"""Tuning sweeps before they run: what a file may say, and what tcp and lst make of their output.

Lustre cannot run here: lst, lctl and modprobe are stand-ins that print what the manual documents.
"""

import os
import subprocess
from decimal import Decimal

import pytest
from clone import TOP
from pydantic import ValidationError

from siteproof.collect.derive import Measured, storage
from siteproof.collect.derive.network import tcp_sweep
from siteproof.errors import OutputError
from siteproof.parsers import Reading, lst
from siteproof.sweeps import keys
from siteproof.sweeps.keys import Sweep
from siteproof.sweeps.reading import points

RMEM = "knob.sysctl.net.ipv4.tcp_rmem"


def tcp(axes, fixed=None, **more):
    given = {"description": "x", "tool": "tcp", "point_limit": "1m", "against": next(iter(axes))}
    return Sweep.model_validate({**given, "axes": axes, "fixed": fixed or {}, **more})


def test_a_fixed_knob_takes_its_numbers_from_an_axis():
    sweep = tcp({"buffer": ["1 MiB", "64 MiB"]}, {RMEM: "4096 87380   {buffer}"})
    assert [point.knobs for point in points(sweep)] == [
        {RMEM: "4096 87380 1048576"},
        {RMEM: "4096 87380 67108864"},
    ]


def test_a_knob_that_follows_the_machines_own_value_is_its_own():
    assert (
        keys.filled(
            "4096 {knob.sysctl.net.core.rmem_max}", {"knob.sysctl.net.core.rmem_max": "own"}
        )
        == "own"
    )


def test_tcp_has_two_nodes_without_a_word():
    (point,) = points(tcp({"streams": ["4"]}))
    assert (point.tasks, point.nodes) == (2, 2)


def test_lst_has_as_many_nodes_as_clients():
    sweep = Sweep.model_validate(
        {
            "description": "x",
            "tool": "lst",
            "point_limit": "1m",
            "against": "clients",
            "axes": {"clients": ["1", "10"]},
            "fixed": {"servers": "8", "size": "1 MiB", "direction": "read"},
        }
    )
    assert [point.nodes for point in points(sweep)] == [1, 10]


@pytest.mark.parametrize(
    ("axes", "fixed", "told"),
    [
        ({"buffer": ["1 MiB"]}, {}, "no fixed knob uses the axis 'buffer'"),
        (
            {"streams": ["1"]},
            {RMEM: "4096 {buffer}"},
            "'{buffer}' in fixed is not an axis of this sweep",
        ),
        ({"knob.bios.turbo": ["1"]}, {}, "'knob.bios.turbo' is not a knob"),
        ({"knob.nic.eth0.speed": ["1"]}, {}, "'knob.nic.eth0.speed' is not a knob"),
        ({"knob.sysctl.x": ["1"]}, {}, "'knob.sysctl.x' is not a knob"),
        ({RMEM: ["1\n2\x07"]}, {}, f"{RMEM}: unknown value '1"),
        ({RMEM: ["1" * 201]}, {}, f"{RMEM}: unknown value '1"),
    ],
)
def test_a_knob_that_no_node_could_set_is_a_mistake_of_the_file(axes, fixed, told):
    with pytest.raises(ValidationError) as raised:
        tcp(axes, fixed)
    assert told in str(raised.value)


@pytest.mark.parametrize("value", ["4096 87380 67108864", "$(reboot)", "a;b'c\"d", "-1"])
def test_a_value_is_text_and_reaches_the_node_as_it_is(value):
    assert keys.plain_knob(RMEM, value) == value
    assert keys.lines([{RMEM: value}, {}], [RMEM]) == [f"1\t{RMEM}\t{value}", f"2\t{RMEM}\t"]


def test_the_rate_of_all_clients_is_that_of_one_times_their_number():
    text = (TOP / "tests/unit/parsers/outputs/lst/documented-three_intervals.txt").read_text()
    found = [
        Reading(r.metric, r.value, r.unit, {"group": "clients"})
        for r in lst.parse(text)
        if r.dims["group"] == "c"
    ]
    (read,), _ = storage.lnet(Measured(found, {}, None, {"direction": "read", "clients": "10"}))
    one = next(r.value for r in found if r.metric == "read")
    assert (read.metric, read.value, read.unit) == ("read", 10 * one, "MiB/s")


def test_a_direction_in_which_nothing_moved_is_no_figure():
    with pytest.raises(OutputError, match="no write of the clients"):
        storage.lnet(
            Measured(
                [Reading("read", Decimal(5), "MiB/s", {"group": "clients"})],
                {},
                None,
                {"direction": "write", "clients": "1"},
            )
        )


def test_of_tcp_the_rate_and_what_was_sent_again_are_kept():
    readings = [
        Reading(metric, Decimal(5), "x") for metric in ("throughput", "retransmits", "cpu_sender")
    ]
    found, conditions = tcp_sweep(Measured(readings, {"mtu": "9000", "reverse": "no"}, None, {}))
    assert [r.metric for r in found] == ["rate", "retransmits"]
    assert conditions == {"mtu": "9000"}


LST = """echo "$*" >>calls
case $1 in
new_session) echo "SESSION: siteproof FEATURES: 1 TIMEOUT: 300 FORCE: No" ;;
stat) cat <<'END'
[LNet Rates of clients]
[R] Avg: 2215     RPC/s Min: 2149     RPC/s Max: 2281     RPC/s
[W] Avg: 1108     RPC/s Min: 1075     RPC/s Max: 1141     RPC/s
[LNet Bandwidth of clients]
[R] Avg: 16.60    MiB/s Min: 16.10    MiB/s Max: 17.10    MiB/s
[W] Avg: 40.49    MiB/s Min: 39.28    MiB/s Max: 41.70    MiB/s
END
;;
show_error) echo "clients:"; echo "Total ${ERRORS:-0} error nodes in clients" ;;
esac
"""


def selftest(folder, **environment):
    """Run checks/network/lnet.sh for one client and eight servers; what lst was told, the end."""
    stand_ins = {"lst": LST, "lctl": "echo 0@lo; echo 10.0.0.1@tcp", "modprobe": ""}
    for name, script in stand_ins.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\ncd {folder}\n{script}")
        program.chmod(0o755)
    point = {
        "POINT_CLIENTS": "1",
        "POINT_SERVERS": "8",
        "POINT_DIRECTION": "write",
        "POINT_SIZE": "1048576",
        "POINT_CONCURRENCY": "32",
        "INTERVALS": "6",
        "SERVERS": " ".join(f"10.0.1.{n}@tcp" for n in range(1, 11)),
        **environment,
    }
    script = (
        f'launch_each() {{ "$@"; }}; . {TOP}/siteproof/checks/on_node/account.sh; '
        f". {TOP}/checks/network/lnet.sh"
    )
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | point | {"PATH": f"{folder}:{os.environ['PATH']}"},
    )
    return (folder / "calls").read_text().splitlines(), done


@pytest.mark.skipif(os.geteuid() != 0, reason="LNET selftest needs root")
def test_lst_is_told_what_the_manual_says_and_its_session_ends(tmp_path):
    calls, done = selftest(tmp_path)
    assert done.returncode == 0, done.stderr
    servers = " ".join(f"10.0.1.{n}@tcp" for n in range(1, 9))
    assert calls == [
        "new_session --timeout 300 siteproof",
        "add_group clients 10.0.0.1@tcp",
        f"add_group servers {servers}",
        "add_batch bulk",
        "add_test --batch bulk --concurrency 32 --distribute 1:8 --from clients --to servers "
        "brw write check=simple size=1048576",
        "run bulk",
        "stat --delay 5 --count 6 clients",
        "show_error clients",
        "stop bulk",
        "end_session",
    ]
    write = next(
        r for r in lst.parse((tmp_path / "run.1" / "stdout").read_text()) if r.metric == "write"
    )
    assert (write.value, write.dims) == (Decimal("40.49"), {"group": "clients"})
    assert "program=lnet_selftest" in (tmp_path / "facts").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="LNET selftest needs root")
def test_too_few_servers_are_told_before_a_session(tmp_path):
    (tmp_path / "calls").touch()
    calls, done = selftest(tmp_path, SERVERS="10.0.1.1@tcp 10.0.1.2@tcp")
    assert (calls, done.returncode) == ([], 1)
    assert done.stderr.startswith("1 clients and 8 servers are required; clients: 10.0.0.1@tcp")
