"""CPU time of the health program of a node, next to LBNL NHC with equivalent checks.

    .venv/bin/python benchmarks/health.py --nhc FOLDER [--runs 30]

FOLDER: a copy of https://github.com/mej/nhc, which is run as it is. Both look at the memory, the
processors, the loopback interface, the mount of /, free space in /, and processes of users without
a job. Ours is run by dash and by bash, in turn with NHC; neither of the two marks a node, and ours
writes its record.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from statistics import median

import yaml
from measuring import Misuse, clean_environment, main, measure, parser, table, temporary_folder

from siteproof.sites import health_program, load

AIM = 0.5  # of NHC's CPU time
NHC_OPTIONS = ("MARK_OFFLINE=0", "NHC_RM=slurm", "FORCE_SETSID=0", "DETACHED_MODE=0")


def kind_of_root() -> str:
    """The type of the file system that is mounted at /."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines())
    return next(kind for _, path, kind, *_ in mounts if path == "/")


def site(memory: int, cores: int) -> dict[str, object]:
    """A site that states what this machine has. memory: in KiB."""
    hardware = {
        "sockets": 1,
        "cores_per_socket": cores,
        "memory": f"{memory} KiB",
        "nics": {"lo": {"mtu": 1500}},
    }
    return {
        "system": "here",
        "description": "This machine",
        "recognise": {"fallback": True},
        "hardware": {"node": hardware},
        "nodes": {"node": {"set": "node1", "hardware": "node"}},
        "file_systems": {"root": {"path": "/", "kind": kind_of_root()}},
        "health": {"node": {"free": {"/": "1 MiB"}, "leftover_processes": 100_000}},
        "partitions": {"all": {"description": "All", "role": "node", "scheduler": "local"}},
        "environments": {"system": {"description": "What is installed"}},
    }


def program(folder: Path, memory: int, cores: int) -> Path:
    """Our program, with its record in the folder."""
    (folder / "sites/here").mkdir(parents=True)
    text = yaml.safe_dump(site(memory, cores))
    (folder / "sites/here/system.yaml").write_text(text, "utf-8")
    for name in ("criteria", "baselines"):
        head = "system: here\n" if name == "baselines" else "{}\n"
        (folder / f"sites/here/{name}.yaml").write_text(head, "utf-8")
    os.environ["SITEPROOF_SITES"] = str(folder / "sites")
    made = health_program.text(load("here"), "node")
    path = folder / "health"
    path.write_text(made.replace("/var/spool/siteproof", str(folder / "spool")), "utf-8")
    return path


def equivalent(folder: Path, memory: int, cores: int) -> Path:
    """NHC's configuration with the same checks."""
    checks = (
        f"check_hw_cpuinfo 1 {cores} {cores}",
        f"check_hw_physmem {memory}kb {memory}kb 5%",
        "check_hw_eth lo",
        f"check_fs_mount_rw -t '{kind_of_root()}' -f '/'",
        "check_fs_free / 1MB",
        "check_ps_unauth_users log",
    )
    path = folder / "nhc.conf"
    path.write_text("".join(f"* || {check}\n" for check in checks), "utf-8")
    return path


def benchmark() -> None:
    """Run both in turn."""
    words = parser(__doc__)
    words.add_argument("--nhc", type=Path, help="a copy of NHC's repository")
    words.add_argument("--runs", type=int, default=30)
    given = words.parse_args()
    if given.nhc is None or not (given.nhc / "nhc").is_file():
        raise Misuse("--nhc: a folder with NHC's program 'nhc'")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    cores = os.cpu_count() or 1
    with temporary_folder() as folder:
        ours, conf = program(folder, memory, cores), equivalent(folder, memory, cores)
        places = ("-D", given.nhc, "-c", conf, "-l", folder / "nhc.log")
        commands: dict[str, list[object]] = {
            f"siteproof, {shell}": [shell, ours]
            for shell in ("dash", "bash")
            if shutil.which(shell)
        }
        commands["NHC"] = ["bash", given.nhc / "nhc", *places, *NHC_OPTIONS]
        cpu: dict[str, list[float]] = {name: [] for name in commands}
        wall: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(given.runs):
            for name, command in commands.items():
                log = folder / "log"
                cost = measure(command, clean_environment(folder), log)
                if cost.code:
                    raise Misuse(f"{name}: {log.read_text('utf-8', 'replace')[-300:]}")
                cpu[name].append(cost.cpu * 1000)
                wall[name].append(cost.wall * 1000)
    of_nhc = median(cpu["NHC"])
    rows = [
        [
            name,
            f"{median(taken):.1f} ms",
            f"{min(taken):.1f} to {max(taken):.1f} ms",
            f"{median(wall[name]):.0f} ms",
            f"{median(taken) / of_nhc:.2f}",
        ]
        for name, taken in cpu.items()
    ]
    print(table([f"{given.runs} runs each", "CPU", "range", "wall", "of NHC's"], rows))
    print(f"aim: at most {AIM} of NHC's CPU time")


if __name__ == "__main__":
    main(benchmark)
