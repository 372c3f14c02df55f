"""What a guest boots: Debian's kernel, and an initramfs of this machine's busybox and nuttcp.

The kernel is downloaded and unpacked, never installed. It is not the cloud kernel, which has no
e1000.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

# In the order in which they need each other: virtio_net is nothing without those before it.
MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "e1000",
)
PROGRAMS = ("busybox", "nuttcp")
EXIT = "GUEST-EXIT"  # ends what a command in the guest says
READY = 99  # its exit code when the guest waits for the first command
DOWNLOAD = 60  # seconds

# Commands come line by line over the serial line. `address` gives the card with a MAC an address
# and says which driver it has.
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo -onlcr
for module in {" ".join(MODULES)}; do insmod /modules/$module.ko; done
address() {{
    for card in /sys/class/net/*; do
        [ "$(cat $card/address)" = "$1" ] || continue
        ip addr add "$2" dev "${{card##*/}}" && ip link set "${{card##*/}}" up &&
            basename "$(readlink $card/device/driver)" && return
    done
    echo "no card $1"; return 1
}}
echo {EXIT} {READY}
while read -r line; do eval "$line"; echo {EXIT} $?; done
poweroff -f
"""


class NoKernelError(Exception):
    """No kernel could be fetched; the message says why."""


class Boot(NamedTuple):
    """What QEMU is given, and the kernel's package for the record."""

    kernel: Path
    initramfs: Path
    package: str


@contextmanager
def boot_files() -> Iterator[Boot]:
    """Kernel and initramfs in a temporary folder, which goes afterwards.

    Raises NoKernelError.
    """
    with tempfile.TemporaryDirectory(prefix="siteproof-qemu-") as name:
        folder = Path(name)
        package = _fetch_kernel(folder)
        (kernel,) = folder.glob("boot/vmlinuz-*")
        yield Boot(kernel, _initramfs(folder), package.name.removesuffix(".deb"))


def _fetch_kernel(folder: Path) -> Path:
    """Download the kernel's package and unpack its image and the modules."""
    depends = _said(folder, "apt-cache", "depends", "linux-image-amd64")
    names = re.findall(r"Depends: (linux-image-\S+)", depends)
    if not names:
        raise NoKernelError("apt knows no linux-image-amd64")
    _said(folder, "apt-get", "download", "-o", "APT::Sandbox::User=root", names[0])
    (package,) = folder.glob("*.deb")
    wanted = [f"*/{module}.ko" for module in MODULES]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as tar:
        subprocess.run(
            ["tar", "x", "-C", folder, "--wildcards", "./boot/vmlinuz-*", *wanted],
            stdin=tar.stdout,
            check=True,
            timeout=DOWNLOAD,
        )
    return package


def _said(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(words, cwd=folder, text=True, capture_output=True, timeout=DOWNLOAD)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernelError(f"{words[0]}: {error}") from None
    if done.returncode:
        raise NoKernelError(f"{' '.join(words)}: {done.stderr.strip()[-200:]}")
    return done.stdout


def _initramfs(folder: Path) -> Path:
    """Pack programs with their libraries, modules and INIT."""
    root = folder / "root"
    for name in ("bin", "modules", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    for program in PROGRAMS:
        path = shutil.which(program)
        shutil.copy(path, root / "bin" / program)
        linked = subprocess.run(["ldd", path], text=True, capture_output=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):  # none of a static program
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    for module in folder.glob("lib/modules/**/*.ko"):
        shutil.copy(module, root / "modules")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    packed = folder / "initramfs"
    names = "\n".join(str(path.relative_to(root)) for path in [root, *sorted(root.rglob("*"))])
    with packed.open("wb") as out:
        subprocess.run(
            ["busybox", "cpio", "-o", "-H", "newc"],
            cwd=root,
            input=names.encode(),
            stdout=out,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return packed
