"""TCP out of a virtual machine: virtio and e1000 beside the bare path, in the order of NASA's.

QEMU runs without KVM, in pure software emulation: only the order means something, and no figure.
"""

import multiprocessing
import os
import shutil
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from statistics import median

import pytest
from qemu_boot import PROGRAMS, NoKernelError, boot_files
from qemu_guest import Guest, GuestError, address, lab

from siteproof.parsers import nuttcp

TOOLS = (
    "qemu-system-x86_64",
    *PROGRAMS,
    "ip",
    "setpriv",
    "unshare",
    "nsenter",
    "dpkg-deb",
    "apt-get",
)
TRIALS, SECONDS = 5, 3
DRIVERS = {"virtio": "virtio_net", "e1000": "e1000", "vhost": "virtio_net"}
CLOCK = 0.05  # share by which the guest's clock may differ from ours


def why_not():
    """Why no guest can run here; empty where one can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.environ.get("SITEPROOF_QEMU") != "1":
        return "QEMU guests run with SITEPROOF_QEMU=1 only"
    if os.geteuid():
        return "NOT TESTED: QEMU guests need root, for their network"
    if missing:
        return f"NOT TESTED: no {', '.join(missing)}; setup/packages qemu"
    return "" if Path("/dev/net/tun").exists() else "NOT TESTED: no /dev/net/tun"


pytestmark = [
    pytest.mark.qemu,
    pytest.mark.long,
    pytest.mark.alone,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture(scope="module")
def boot():
    try:
        with boot_files() as files:
            yield files
        assert not files.initramfs.parent.exists()
    except NoKernelError as error:
        pytest.skip(f"NOT TESTED: no kernel for the guest: {error}")


@pytest.fixture(scope="module")
def rates(boot):
    """Mb/s of every way in the order of the trials, taken in turns: a busy machine hits all."""
    cards = ["virtio", "e1000", *(["vhost"] if Path("/dev/vhost-net").exists() else [])]
    found = {way: [] for way in ("bare", *cards)}
    with lab() as made:
        guest = Guest(made, boot, *cards)
        assert guest.drivers == {card: DRIVERS[card] for card in cards}
        begun, booted = time.monotonic(), guest.uptime()
        for _ in range(TRIALS):
            for way, values in found.items():
                values.append(trial(made, guest, way))
        ours, its = time.monotonic() - begun, guest.uptime() - booted
        assert abs(its / ours - 1) < CLOCK, f"guest's clock: {its:.1f} s in {ours:.1f} s"
    return found


def trial(made, guest, way):
    """Mb/s of one run of nuttcp; its bytes have come through the device of this way only."""
    words = ["nuttcp", "-fparse", f"-T{SECONDS}", address(way, 1)]
    before = made.received()
    text = made.inside(made.far, *words) if way == "bare" else guest.run(" ".join(words))
    rate = next(r.value for r in nuttcp.parse(text) if r.metric == "throughput")
    least = float(rate) * SECONDS * 1e6 / 8 * 0.95
    after = made.received()
    carried = {name for name in after if after[name] - before[name] >= least}
    assert carried == {way}, f"{way}: {rate} Mb/s went through {carried}"
    return rate


@pytest.mark.tool("QEMU", "nuttcp")
def test_a_paravirtual_card_is_slower_than_the_bare_path_and_faster_than_an_emulated_one(
    rates, boot, record_property
):
    for way, values in rates.items():
        shown = " ".join(f"{value:.0f}" for value in values)
        record_property(
            "told",
            f"QEMU (TCG), nuttcp out of the guest, {way}: median "
            f"{median(values):.0f} Mb/s; trials of {SECONDS} s: {shown}",
        )
    record_property(
        "told", f"guest: {boot.package}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    )
    assert median(rates["bare"]) > median(rates["virtio"]) > median(rates["e1000"]) > Decimal(0)


@pytest.mark.skipif(not Path("/dev/vhost-net").exists(), reason="NOT TESTED: no /dev/vhost-net")
def test_a_card_that_the_hosts_kernel_serves_is_between_the_same_two(rates):
    assert median(rates["bare"]) > median(rates["vhost"]) > median(rates["e1000"])


def test_a_virtual_function_reaches_nearly_what_the_bare_path_does():
    able = [
        path
        for path in Path("/sys/class/net").glob("*/device/sriov_numvfs")
        if int(path.read_text())
    ]
    if not able:
        pytest.skip("NOT TESTED: SR-IOV: no network card here has a virtual function")
    pytest.skip("NOT TESTED: SR-IOV: passing a virtual function to the guest is not written")


# ---- nothing is left


def running(pids):
    """Which processes are still there; one that is dead and not yet waited for is not."""

    def state(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "Z"

    return [pid for pid in pids if state(pid) != "Z"]


def in_namespace(found):
    """The processes in one of these network namespaces."""
    inside = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            inside += [link] if link.stat().st_ino in found else []
        except OSError:  # ended meanwhile
            continue
    return inside


def namespaces(made):
    return {Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in (made.near, made.far)}


def test_nothing_is_left_of_a_guest_that_ends_in_the_middle(boot):
    with pytest.raises(GuestError, match="the guest ended"), lab() as made:
        there = namespaces(made)
        guest = Guest(made, boot, "virtio")
        assert len(running(made.pids)) == 4, "two namespaces, server, guest"
        guest.run("poweroff -f")
    assert (running(made.pids), in_namespace(there)) == ([], [])


def test_nothing_is_left_of_tests_that_are_killed(boot):
    ours, its = multiprocessing.Pipe()

    def killed():
        with lab() as made:
            Guest(made, boot, "virtio")
            its.send((made.pids, namespaces(made)))
            time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=killed)
    process.start()
    try:
        assert ours.poll(100), "the guest did not boot"
        pids, there = ours.recv()
        assert len(running(pids)) == 4
    finally:
        process.kill()
        process.join()
    for _ in range(50):
        if not running(pids) and not in_namespace(there):
            return
        time.sleep(0.1)
    pytest.fail(f"still there: {running(pids)} {in_namespace(there)}")


def test_nothing_is_left_where_no_kernel_can_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoKernelError, match="apt-cache"), boot_files():
        pass
    assert not list(tmp_path.iterdir())
