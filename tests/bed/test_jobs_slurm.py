"""What a site says of its jobs takes effect in them, on a real Slurm cluster with accounting.

Its own cluster: three nodes, of which one has a feature, and two a GPU that Slurm only counts.
"""

import json
import re
from pathlib import Path

import pytest
from bed_suite import Suite
from testbed_fixture import Testbed, until

pytestmark = [pytest.mark.testbed, pytest.mark.tool("ReFrame", "Slurm", "Lmod")]

LMOD = Path("/usr/share/lmod/lmod/init/bash")
SYSTEM = """
system: testbed
description: Test bed with accounts, features and GPUs
recognise: {{cluster: testbed}}
mode: quick
modules_system: lmod
hardware:
  gpus:
    cores_per_socket: 1
    sockets: 1
    target: zen3
    devices: {{gpu: {{count: 2, arch: sm_80}}}}
  plain: {{target: neoverse_v1}}
nodes:
  gpu: {{set: 'node[001-002]', hardware: gpus}}
  big: {{set: node003, hardware: plain}}
partitions:
  gpu:
    description: Nodes with GPUs
    role: gpu
    access: [-p compute, --account=staff, --qos=night, --export=NONE, --get-user-env]
    environments: [system]
    prepare_cmds: [. {lmod}, module use {modules}, export OMPI_MCA_PREPARED=partition,
      export SLURM_EXPORT_ENV=ALL]  # for mpirun, whose daemons srun starts
    modules: [of-all]
    variables: {{OMPI_MCA_PARTITION: set, OMPI_ALLOW_RUN_AS_ROOT: '1',
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1'}}
    launcher: mpirun
    srun_options: [--job-name=of-the-site]
    time_limit: 2 min
    features: [remote]
    extras: {{mem_per_node: 128}}
    resources: {{memory: ['--mem={{size}}']}}
  big:
    description: Nodes with a feature
    role: big
    access: [--partition=compute, --constraint=large]
    environments: [system]
    prepare_cmds: [. {lmod}, module use {modules}]
environments:
  system:
    description: Installed
    prepare_cmds: [export OMPI_MCA_ENVIRONMENT=$OMPI_MCA_PREPARED]
    modules: [{named}]
checks: [own]
"""
TESTS = """
import reframe as rfm
import reframe.utility.sanity as sn


class Base(rfm.RunOnlyRegressionTest):
    valid_prog_environs = ["system"]
    executable = "sh"
    executable_opts = ["-c", "'echo size $OMPI_COMM_WORLD_SIZE of $OMPI_MCA_ONE'"]
    time_limit = None
    postrun_cmds = ["scontrol -o show job $SLURM_JOB_ID"]

    @sanity_function
    def ran(self):
        return sn.assert_found("JobId=", self.stdout)


@rfm.simple_test
class OnGpus(Base):
    valid_systems = ["+remote"]
    num_tasks = 2
    num_tasks_per_node = 1
    num_gpus_per_node = 2

    @run_before("run")
    def as_others_do(self):
        place = self.current_partition
        self.extra_resources = {"memory": {"size": place.extras["mem_per_node"]}}
        assert place.processor.arch == "zen3"
        assert place.devices[0].arch == "sm_80" and place.devices[0].num_devices == 2


@rfm.simple_test
class OnBig(Base):
    valid_systems = ["testbed:big"]

    @run_before("run")
    def as_others_do(self):
        assert self.current_partition.processor.arch == "neoverse_v1"
"""


class Jobs(Suite):
    """The suite on that cluster, with a site of its own."""

    def describe(self, *modules):
        """The site, with these modules in its environment."""
        site = self.own_site()
        own = site / "own"
        own.mkdir()
        (own / "own.py").write_text(TESTS)
        (site / "criteria.yaml").write_text("{}\n")
        made = self.folder / "modules"
        for name, value in (("hello/1.0", "one"), ("of-all/1", "all")):
            path = made / name
            path.parent.mkdir(parents=True)
            path.write_text(f"#%Module\nsetenv OMPI_MCA_{value.upper()} {value}\n")
        text = SYSTEM.format(lmod=LMOD, modules=made, named=", ".join(modules))
        (site / "system.yaml").write_text(text)
        return self

    def shell(self, line):
        *words, line = super().shell(line)
        return [*words, f"unset LOADEDMODULES; {line}"]

    def file(self, pattern):
        (path,) = (self.data / "stage").rglob(pattern)
        return path.read_text()


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    if not LMOD.exists():
        pytest.skip("MODULES NOT TESTED ON SLURM: lmod is not installed")
    bed = Testbed("-jobs")
    try:
        bed.up("3", "--share", tmp_path_factory.getbasetemp())
        _give_features_and_gpus(bed)
        yield bed
    finally:
        if bed.state.exists():
            bed.down()


def _give_features_and_gpus(bed):
    conf = Path(bed.run(["printenv", "SLURM_CONF"]).stdout.strip())
    text = conf.read_text()
    (line,) = re.findall(r"^NodeName=.*$", text, re.MULTILINE)
    of = [re.sub(r"node\[001-003\]", name, line) for name in ("node[001-002]", "node003")]
    more = f"GresTypes=gpu\n{of[0]} Gres=gpu:2\n{of[1]} Feature=large"
    conf.write_text(text.replace(line, more))
    # Slurm counts a GPU by its file alone; nothing is done with it.
    files = [f"NodeName=node[001-002] Name=gpu File=/dev/{name}\n" for name in ("null", "zero")]
    (conf.parent / "gres.conf").write_text("".join(files))
    nodes = [f"node{number:03}" for number in (1, 2, 3)]
    bed.must("kill-slurmd", *nodes)
    bed.restart_slurmctld()
    bed.power_on(*nodes)
    for words in ("account staff", "qos night", "user root account=staff qos=normal,night"):
        done = bed.run(["sacctmgr", "-i", "add", *words.split()])
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def measured(bed, tmp_path_factory):
    """The suite's own check, and two tests of the centre, on both partitions."""
    suite = Jobs(bed, tmp_path_factory.mktemp("jobs")).describe("hello")
    done = suite.reframe("--keep-stage-files", "-n", "HostParameters|OnGpus|OnBig")
    assert done.returncode == 0, done.stdout + done.stderr
    return suite


def test_what_a_site_says_of_its_jobs_reaches_every_node(measured):
    for node in ("node001", "node002"):
        meta = measured.file(f"raw/{node}/meta").splitlines()
        seen = dict(line.split("=", 1) for line in meta if "OMPI" in line or "modules" in line)
        assert seen == {
            "modules": "of-all/1:hello/1.0",
            "env.OMPI_MCA_ONE": "one",
            "env.OMPI_MCA_ALL": "all",
            "env.OMPI_MCA_PREPARED": "partition",
            "env.OMPI_MCA_ENVIRONMENT": "partition",
            "env.OMPI_MCA_PARTITION": "set",
        }, meta
    (path,) = measured.data.rglob("perflogs/testbed/gpu/*HostParameters*.jsonl")
    head = json.loads(path.read_text().splitlines()[0])
    assert head["provenance"]["modules"] == "of-all/1:hello/1.0"

    def accounted():
        words = "sacct -nP --format=account,qos,jobname,alloctres -j"
        lines = measured.testbed.run([*words.split(), head["job"]]).stdout.splitlines()
        return [line.split("|") for line in lines if "of-the-site" in line or "night" in line]

    until(lambda: len(accounted()) == 2, "the job and its step in accounting", accounted)
    (job, step) = accounted()
    assert job[:2] == ["staff", "night"]
    assert step[2] == "of-the-site"


def test_tests_of_the_centre_get_what_they_ask_of_a_partition(measured):
    gpus = measured.file("*OnGpus*/rfm_job.out")
    assert gpus.count("size 2 of one") == 2, measured.file(
        "*OnGpus*/rfm_job.err"
    )  # by mpirun, with the module's variable on both nodes
    assert re.search(r"TresPerNode=gres[:/]gpu[:=]2\b", gpus)  # 22.05 and later
    assert "MinMemoryNode=128M" in gpus
    assert "TimeLimit=00:02:00" in gpus
    assert "Account=staff" in gpus
    big = measured.file("*OnBig*/rfm_job.out")
    assert "Features=large" in big
    assert "NodeList=node003" in big


def test_a_module_that_no_node_has_is_named_and_nothing_is_measured(bed, tmp_path):
    suite = Jobs(bed, tmp_path).describe("hello", "nothere/3.1")
    done = suite.reframe("-n", "HostParameters")
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    for partition in ("gpu", "big"):
        assert re.search(rf"testbed:{partition}.*module nothere/3.1 is not loaded: ", said), said
