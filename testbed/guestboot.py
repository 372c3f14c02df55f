"""What a guest boots: Debian's kernel, and an initramfs of this machine's busybox.

The kernel is fetched and unpacked, never installed, and kept for the next time. It is not the
cloud kernel, which has no e1000.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from errors import UsageError
from state import ENVIRONMENT

CACHE, CACHE_VARIABLE = "/var/cache/siteproof-testbed", "SITEPROOF_TESTBED_CACHE"
DOWNLOAD = 120  # seconds
# In the order in which they need each other.
MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *("failover", "net_failover", "virtio_net", "e1000", "virtio_blk"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p"),
    *("crc32c_generic", "crc16", "mbcache", "jbd2", "ext4"),
)
INIT = Path(__file__).with_name("guest_init.sh")


class Boot(NamedTuple):
    """What QEMU is given."""

    kernel: Path
    initramfs: Path


def boot_files() -> Boot:
    """Kernel and initramfs in the cache. Raises UsageError where no kernel can be fetched."""
    cache = cache_folder()
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another bed may fetch it
        package = _package(cache)
        folder = cache / package
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="fetched.") as name:
                _unpack(package, Path(name))
                Path(name).rename(folder)
                Path(name).mkdir()  # which goes with the context
        (kernel,) = folder.glob("boot/vmlinuz-*")
        # Packed each time, as the busybox may be another one by now; it takes no time.
        return Boot(kernel, _initramfs(folder))


def cache_folder() -> Path:
    """Where a bed keeps what it has fetched."""
    cache = Path(os.environ.get(CACHE_VARIABLE) or CACHE).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _package(cache: Path) -> str:
    """The newest kernel that apt offers; where it offers none, one that is there already."""
    depends = _output(cache, "apt-cache", "depends", "linux-image-amd64")
    names = re.findall(r"Depends: (linux-image-\S+)", depends)
    names += [path.name for path in cache.glob("linux-image-*")]
    if not names:
        raise UsageError("guests need a kernel, and apt offers no linux-image-amd64")
    return str(names[0])


def _unpack(package: str, folder: Path) -> None:
    """Download the kernel's package and unpack its image and the modules."""
    if not _output(folder, "apt-get", "download", "-o", "APT::Sandbox::User=root", package):
        raise UsageError(f"guests need a kernel, and apt-get could not download {package}")
    (archive,) = folder.glob("*.deb")
    wanted = [f"*/{module}.ko" for module in MODULES]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as tar:
        words = ["tar", "x", "-C", str(folder), "--wildcards", "./boot/vmlinuz-*", *wanted]
        subprocess.run(words, stdin=tar.stdout, check=True, timeout=DOWNLOAD)
    archive.unlink()


def _output(folder: Path, *words: str) -> str:
    """What a command printed; empty if it failed."""
    try:
        done = subprocess.run(
            words, cwd=folder, text=True, capture_output=True, timeout=DOWNLOAD, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout or words[0]


def _initramfs(folder: Path) -> Path:
    """Pack busybox, the modules and INIT."""
    busybox = shutil.which("busybox", path=ENVIRONMENT["PATH"])
    assert busybox is not None  # one of the packages that are checked before
    root, packed = folder / "root", folder / "initramfs"
    for name in ("bin", "modules", "proc", "sys", "dev", "root", "share"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(busybox, root / "bin")
    for module in folder.glob("lib/modules/**/*.ko"):
        shutil.copy(module, root / "modules")
    (root / "modules/order").write_text("\n".join([*MODULES, ""]))
    shutil.copy(INIT, root / "init")
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in [root, *sorted(root.rglob("*"))])
    fresh = packed.with_suffix(".new")
    with fresh.open("wb") as out:
        words = ["busybox", "cpio", "-o", "-H", "newc"]
        subprocess.run(words, cwd=root, input=names.encode(), stdout=out, check=True,
                       stderr=subprocess.DEVNULL)  # fmt: skip
    return fresh.replace(packed)
