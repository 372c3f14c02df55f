"""What runs on nodes with GPUs: gpu.sh and its scripts, and gpu_gemm.py.

No machine here has a GPU. The PCI bus is a folder, the tools print what stands in the outputs of
their parsers, and gpu_gemm.py runs on a stand-in for cuBLAS that computes on the processor.
"""

import os
import shutil
import subprocess
import sys
from decimal import Decimal

import pytest
from clone import OUTPUTS, TOP

from siteproof.collect import raw
from siteproof.collect.derive import Measured, gpu
from siteproof.errors import OutputError
from siteproof.parsers import gpu_gemm, gpu_state, nccl_tests, nvbandwidth, nvidia_smi

SHARED = TOP / "siteproof/checks/on_node"
NVIDIA, AMD, MATROX = "0x10de", "0x1002", "0x102b"
LIST = "nvidia-smi -L) echo 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)' ;;"
STATE = "*temperature.gpu*) printf '0, 1410, 389.20, 52\\n1, 1395, 391.05, 57\\n' ;;"
NAMED = "*=name) echo NVIDIA A100-SXM4-40GB ;; *=driver_version) echo 550.54.15 ;;"

WARNED = "echo NVIDIA A100-SXM4-40GB; echo 'WARNING: infoROM is corrupted at gpu 0000:3B:00.0'"


class Node:
    """A folder as /sys/bus/pci, a stage with the scripts, the result's folder, and the tools."""

    def __init__(self, folder):
        self.stage, self.here = folder / "stage", folder / "stage/raw/n1"
        self.bin, self.pci = folder / "bin", folder / "pci"
        for one in (self.here, self.bin, self.pci):
            one.mkdir(parents=True)
        for name in ("account.sh", "gpu.sh", "other_tools.sh"):
            text = (SHARED / name).read_text().replace("/sys/bus/pci", str(self.pci))
            (self.stage / name).write_text(text)

    def card(self, vendor, kind="0x030200"):
        device = self.pci / f"devices/0000:{len(list(self.pci.rglob('vendor'))):02x}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")

    def tool(self, name, text):
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def driver(self, *cases):
        cases = " ".join((*cases, LIST.removeprefix("nvidia-smi "), STATE, NAMED))
        self.tool(
            "nvidia-smi", f'case "$*" in {cases} *) echo "Field is not valid"; exit 2 ;; esac'
        )

    def run(self, script, **environ):
        start = 'launch() { "$@"; }; . "$1/account.sh"; . "$2"'
        known = {"PATH": f"{self.bin}:{os.environ['PATH']}", "GPUS": "0", "LC_ALL": "C", **environ}
        (self.here / "facts").write_text("")
        (self.here / "meta").write_text("node=n1\n")
        command = ["sh", "-c", start, "measure", self.stage, TOP / "checks/gpu" / script]
        return subprocess.run(command, cwd=self.here, env=known, capture_output=True, text=True)

    def left(self):
        """What the collector finds of the result."""
        for name in ("stdout", "stderr"):
            (self.here / name).write_text("")
        return raw.read(raw.Stage.of(self.stage).result("n1"))


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def printed(name):
    return f"cat {OUTPUTS / name}.txt"


@pytest.mark.parametrize("script", ["bandwidth.sh", "gemm.sh", "all_reduce.sh", "gpu_health.sh"])
def test_without_a_gpu_it_is_a_tool_that_is_missing_and_where_one_is_stated_an_error(node, script):
    for tool in ("nvbandwidth", "all_reduce_perf"):
        node.tool(tool, "true")
    node.card(MATROX, "0x030000")
    done = node.run(script)
    assert (done.returncode, done.stderr) == (127, "no GPU of NVIDIA or AMD is on the PCI bus\n")
    done = node.run(script, GPUS="8")
    assert (done.returncode, done.stderr.count("; the site states 8")) == (1, 1)


def test_a_gpu_without_the_program_of_its_driver_and_a_driver_without_an_answer_are_named(node):
    node.card(NVIDIA)
    assert node.run("gpu_health.sh").stderr == "nvidia-smi is not installed\n"
    node.tool("nvidia-smi", "echo 'NVIDIA-SMI has failed because the driver is not there'; exit 9")
    done = node.run("gpu_health.sh")
    assert done.returncode == 127
    assert done.stderr == (
        "the driver gives no answer: NVIDIA-SMI has failed because the driver is not there\n"
    )
    assert node.run("gpu_health.sh", GPUS="4").returncode == 1


def test_a_card_of_amd_needs_amd_smi(node):
    node.card(AMD, "0x038000")
    assert node.run("gpu_health.sh").stderr == "amd-smi is not installed\n"


def test_copies_have_the_clock_power_and_temperature_of_their_time(node):
    node.card(NVIDIA)
    node.driver()
    node.tool("nvbandwidth", f"sleep 1; {printed('nvbandwidth/0.8-four_gpus')}")
    assert node.run("bandwidth.sh").returncode == 0
    left = node.left()
    copies, state = left.runs
    assert state.dims == {"program": "gpu_state"}
    assert state.stdout.startswith("0, 1410, 389.20, 52\n1, 1395, 391.05, 57\n")
    assert state.stdout.endswith("end gpu_state\n")
    assert len(nvbandwidth.parse(copies.stdout)) == 24
    facts = (node.here / "facts").read_text()
    assert facts == "model=NVIDIA A100-SXM4-40GB\ndriver=550.54.15\nprogram=nvbandwidth\n"
    assert gpu.with_state(Measured([], {}, left, {}))[1] == {"version": "v0.8", "cuda": "12040"}


def test_what_hides_gpus_is_unset_and_a_warning_of_the_driver_is_no_model(node):
    node.card(NVIDIA)
    states = "*temperature.gpu*) echo '0, 1410, 389.20, 52'; echo 'WARNING: x' ;;"
    node.driver(f"*=name) {WARNED} ;;", states)
    seen = 'echo "$CUDA_DEVICE_ORDER/${CUDA_VISIBLE_DEVICES-}${ROCR_VISIBLE_DEVICES-}" >&2'
    node.tool("nvbandwidth", f"{seen}; {printed('nvbandwidth/0.8-four_gpus')}")
    done = node.run("bandwidth.sh", CUDA_VISIBLE_DEVICES="1", ROCR_VISIBLE_DEVICES="0")
    assert done.returncode == 0, done.stderr
    copies, state = node.left().runs
    assert copies.stderr == "PCI_BUS_ID/\n"
    assert "model=NVIDIA A100-SXM4-40GB\n" in (node.here / "facts").read_text()
    assert {r.dims["gpu"] for r in gpu_state.parse(state.stdout)} == {"0"}


@pytest.mark.parametrize("script", ["bandwidth.sh", "gemm.sh", "all_reduce.sh"])
def test_fewer_gpus_than_stated_and_an_instance_of_mig_are_not_measured(node, script):
    node.card(NVIDIA)
    for tool in ("nvbandwidth", "all_reduce_perf", "python3"):
        node.tool(tool, "echo measured >&2")
    node.driver()
    settings = {"SMALLEST": "8", "LARGEST": "8", "ITERATIONS": "1", "N": "64", "PRECISIONS": "fp64"}
    done = node.run(script, **settings, SECONDS_OF_RUN="1", GPUS="2")
    assert (done.returncode, done.stderr) == (1, "GPUs that answer: 1; the site states 2\n")
    instance = "echo '  MIG 1g.5gb      Device  0: (UUID: MIG-1)'"
    node.driver(f"-L) {LIST.split(') ')[1].removesuffix(' ;;')}; {instance} ;;")
    done = node.run(script, **settings, SECONDS_OF_RUN="1")
    assert (done.returncode, done.stderr) == (1, "MIG is on, and a program gets an instance\n")


def test_wrong_data_is_an_answer_and_any_other_failure_keeps_its_code(node):
    node.card(NVIDIA)
    node.driver()
    node.tool("nvbandwidth", f"{printed('nvbandwidth/0.8-wrong_data')}; exit 1")
    assert node.run("bandwidth.sh").returncode == 0
    with pytest.raises(OutputError, match="Invalid value") as error:
        nvbandwidth.parse(node.left().runs[0].stdout)
    assert error.value.status == "invalid"
    shutil.rmtree(node.here / "run.1")
    shutil.rmtree(node.here / "run.2")
    node.tool("nvbandwidth", f"{printed('nvbandwidth/0.8-no_device')}; exit 3")
    assert node.run("bandwidth.sh").returncode == 3
    assert node.left().runs[0].exit == 3


def test_ranks_on_fewer_nodes_than_the_point_has_give_no_value(node):
    node.card(NVIDIA)
    node.driver()
    node.tool("all_reduce_perf", f'echo "$*" >&2; {printed("nccl_tests/2.17-two_nodes")}')
    done = node.run("all_reduce.sh", SMALLEST="8", LARGEST="1024", ITERATIONS="20")
    assert done.returncode == 0, done.stderr
    left = node.left()
    assert left.runs[0].stderr == "-b 8 -e 1024 -f 2 -g 1 -n 20 -c 1\n"
    readings = nccl_tests.parse(left.runs[0].stdout)
    _, conditions = gpu.all_reduce(Measured(readings, {}, left, {"tasks": "2"}))
    assert conditions["nccl"] == "22907"
    with pytest.raises(OutputError, match="nodes of the ranks: 2, expected 4") as error:
        gpu.all_reduce(Measured(readings, {}, left, {"tasks": "4"}))
    assert error.value.status == "invalid"


def test_a_table_that_the_driver_does_not_know_leaves_the_others(node):
    node.card(NVIDIA)
    node.driver(
        "*index,pci.bus_id*) printf 'index, pci.bus_id, vbios_version, persistence_mode\\n"
        "0, 00000000:3B:00.0, 92.00.45.00.05, Enabled\\n' ;;"
    )
    node.tool("dmesg", "echo '[ 1.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE'")
    done = node.run("gpu_health.sh")
    assert "unreadable ecc nvidia-smi: Field is not valid\n" in done.stdout
    found = {r.metric: r.value for r in nvidia_smi.parse(done.stdout)}
    assert found == {"gpus": 1, "unreadable": 0, "xid": 1}
    flood = "yes '[ 1.0] NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=a, Graphics' | head -n 7000"
    node.tool("dmesg", f"{flood}; echo '[ 9.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, lost'")
    found = {r.metric: r.value for r in nvidia_smi.parse(node.run("gpu_health.sh").stdout)}
    assert found == {"gpus": 1, "unreadable": 0, "xid": 1, "xid_of_programs": 1000}
    node.tool("dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted'; exit 1")
    node.tool("journalctl", "true")
    assert "xid" not in {r.metric for r in nvidia_smi.parse(node.run("gpu_health.sh").stdout)}


@pytest.fixture(scope="module")
def standin(tmp_path_factory):
    """A folder with the libraries of CUDA, made of the stand-in."""
    folder = tmp_path_factory.mktemp("cuda")
    made, source = folder / "libcudart.so.12", TOP / "tests/support/cublas_standin.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", made, source], check=True, timeout=120)
    (folder / "libcublas.so.12").symlink_to(made)
    return {"LD_LIBRARY_PATH": str(folder)}


def product(*words, **environ):
    command = [sys.executable, str(SHARED / "gpu_gemm.py"), *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)


PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "int8")
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="NOT TESTED: no gcc")


@needs_gcc
def test_products_of_each_precision_are_right_and_one_that_the_library_lacks_is_left_out(standin):
    done = product("64", "0.01", *PRECISIONS, **standin)
    found = gpu_gemm.parse(done.stdout)
    assert {(r.metric, r.dims["gpu"]) for r in found} == {
        (name, gpu) for name in PRECISIONS[:-1] for gpu in "01"
    }
    assert "gpu 1 int8 unsupported cublas has status 15\n" in done.stdout
    assert gpu_gemm.conditions(done.stdout) == {"library": "cublas", "n": "64", "validated": "yes"}
    assert all(Decimal(r.value) > 0 for r in found)


@needs_gcc
@pytest.mark.parametrize(("precision", "kind"), [("fp64", "70"), ("bf16", "68")])
def test_one_wrong_number_in_the_last_product_is_found(standin, precision, kind):
    done = product("64", "0.01", precision, **standin, STANDIN_WRONG=kind)
    *right, wrong = gpu_gemm.parse(done.stdout)
    assert {reading.dims["gpu"] for reading in right} == {"0"}
    assert (wrong.status, wrong.dims) == ("invalid", {"gpu": "1"})
    assert f"{precision} of GPU 1: wrong 1 of 4096" in wrong.value


def test_a_node_without_the_libraries_has_no_tool():
    done = product("64", "0.01", "fp64")
    if done.returncode == 0:
        pytest.skip("NOT TESTED: this machine has a library")
    assert done.returncode == 127
    assert done.stderr == "neither libcudart.so nor libamdhip64.so is installed\n"
