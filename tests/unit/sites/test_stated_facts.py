"""Facts of a site against the fields of a node: as stated, different, missing, or not read."""

import subprocess
import time
from fnmatch import fnmatchcase

import pytest
import shipped
from clone import PATIENCE, TOP
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rows import rows

from siteproof.parsers import description
from siteproof.sites import bought
from siteproof.sites.bought import Outcome
from siteproof.sites.stated import FIELDS, NODE, Fact, FactSection, is_read, number_of

NEW = {"gpu.count": "0"}  # in each description of this version


def section(**fields):
    rules = {name.replace("__", "."): rule for name, rule in fields.items()}
    return {"1": FactSection(source="the tender", fields=rules)}


def one(field, rule, fields, unreadable=None, node="n1"):
    facts = {"1": FactSection(source="the tender", fields={field: rule})}
    (result,) = bought.compare(facts, NEW | fields, unreadable or {}, node)
    return result


@rows(
    "rule, value, good",
    [
        ("2.1.0", "2.1.0", True),
        ("2.1.0", "2.1", False),
        ("a  b", "a b", True),
        (["1.0", "1.1"], "1.1", True),
        (["1.0", "1.1"], "1.2", False),
        ({"pattern": "*E5-2680 v3*"}, "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz", True),
        ({"pattern": "*E5-2680 v3*"}, "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", False),
        ({"pattern": ["a*", "b*"]}, "b1", True),
        ({"pattern": "{node}-*"}, "n1-ib", True),
        ({"exact": "{node}"}, "n2", False),
        ({"at_least": "100 GB"}, "128 GB", True),
        ({"at_least": "100 GB", "at_most": "120 GB"}, "128 GB", False),
        ({"at_least": "24"}, "24", True),
        ({"at_least": "24"}, "24 MiB", False),
        ({"at_most": "2133 MT/s"}, "2133 MT/s", True),
        ({"about": "128 GiB", "tolerance": "4 %"}, "131923412 KiB", True),
        ({"about": "128 GiB", "tolerance": "1 %"}, "131923412 KiB", False),
        ({"about": "128 GiB", "tolerance": "4 %"}, "unknown", False),
        ({"exact": ""}, "", True),
    ],
)
def test_a_value_is_as_stated_or_not(rule, value, good):
    outcome = Outcome.AS_STATED if good else Outcome.DIFFERENT
    assert one("kernel.release", rule, {"kernel.release": value}).outcome is outcome


def test_the_kernels_kb_of_memory_is_1024_bytes():
    assert number_of("131923412 kB", "memory.total").value == 131923412 * 1024
    assert number_of("131923412 kB", "disk.sda.size").value == 131923412 * 1000
    assert one("memory.total", {"at_least": "125.8 GiB"}, {"memory.total": "131923412 kB"}).found


DIMM = "16384 MB, DDR4 2133 MHz, at 2133 MHz, Hynix HMA"
DIMMS = {f"memory.dimm.{n}_A{n}": DIMM for n in range(1, 9)} | {
    "memory.dimm.9_B1": "No Module Installed, Unknown Unknown, at Unknown, "
}


def test_eight_of_so_many_dimms_are_counted():
    rule = {"count": 8, "pattern": "16384 MB, *"}
    assert one("memory.dimm.*", rule, DIMMS).outcome is Outcome.AS_STATED
    fewer = one("memory.dimm.*", rule, {**DIMMS, "memory.dimm.3_A3": "8192 MB, DDR4"})
    assert fewer.outcome is Outcome.DIFFERENT
    assert fewer.found.startswith("7 times, and memory.dimm.3_A3 8192 MB, DDR4; memory.dimm.9_B1")
    assert one("memory.dimm.*", {**rule, "count": 7}, DIMMS).outcome is Outcome.DIFFERENT


def test_the_serial_number_of_a_dimm_is_no_dimm():
    serials = {f"{name}.serial": str(n) for n, name in enumerate(DIMMS)}
    assert one("memory.dimm.*", {"count": 9}, DIMMS | serials).outcome is Outcome.AS_STATED
    assert one("memory.dimm.*.serial", {"count": 9}, DIMMS | serials).outcome is Outcome.AS_STATED


def test_without_a_count_each_field_of_a_glob_must_be_as_stated():
    nics = {"nic.em1.mtu": "9000", "nic.em2.mtu": "1500"}
    wrong = one("nic.*.mtu", "9000", nics)
    assert (wrong.outcome, wrong.found) == (Outcome.DIFFERENT, "1500")
    assert one("nic.*.mtu", ["9000", "1500"], nics).outcome is Outcome.AS_STATED


def test_a_field_that_a_node_lacks_is_missing_and_one_that_it_could_not_read_is_not():
    assert one("nic.em1.driver", "i40e", {}).outcome is Outcome.MISSING
    unread = one("nic.em1.driver", "i40e", {}, {"nic.ethtool": "not installed"})
    assert (unread.outcome, unread.why) == (Outcome.NOT_READ, "nic.ethtool: not installed")
    assert not unread.missed
    assert one("nic.em1.mtu", "9000", {}, {"nic.ethtool": "no"}).outcome is Outcome.MISSING


@rows(
    "field, unreadable",
    [
        ("memory.dimm.*", "memory.dimm"),
        ("raid.controller0.product_name", "raid.controller"),
        ("disk.sda.smart_model", "disk.smart"),
        ("disk.*.serial", "disk.sda.serial"),
        ("system.product_name", "bios"),
        ("gpu.*.name", "gpu"),
        ("package.gcc", "package"),
        ("lldp.*.switch", "lldp"),
        ("sysctl.vm.swappiness", "sysctl.vm.swappiness"),
    ],
)
def test_what_covers_a_field_is_the_reason_why_it_was_not_read(field, unreadable):
    found = one(field, {"count": 2}, {}, {unreadable: "needs root"})
    assert (found.outcome, found.why) == (Outcome.NOT_READ, f"{unreadable}: needs root")
    assert one(field, {"count": 0}, {}, {unreadable: "needs root"}).outcome is Outcome.NOT_READ
    assert one(field, {"count": 2}, {}, {f"{unreadable}x": "no"}).outcome is Outcome.MISSING


def test_a_wrong_value_counts_though_another_was_not_read():
    fields = {"disk.sda.serial": "1", "disk.sdb.serial": "2"}
    assert one("disk.*.serial", "1", fields, {"disk.sdc.serial": "no"}).missed


def test_none_is_as_stated_where_there_is_none():
    assert one("fc.*", {"count": 0}, {}).outcome is Outcome.AS_STATED
    assert one("fc.*", {"count": 0}, {"fc.host0.speed": "8 Gbit"}).missed


def test_a_section_without_fields_has_no_result():
    facts = {"3.2.5": FactSection(source="the tender", not_stated="N/A")}
    results = bought.compare(facts, NEW, {})
    assert bought.of_section(results, "3.2.5") == []


texts = st.text(max_size=30)
rules = st.one_of(
    texts.map(lambda text: Fact(exact=text)),
    st.lists(texts, min_size=1, max_size=3, unique=True).map(lambda some: Fact(one_of=some)),
    st.text("ab*?[]!-{node}", max_size=9).map(lambda glob: Fact(pattern=[glob])),
    st.integers(0, 9).map(lambda number: Fact(count=number)),
    st.integers(0, 9).map(lambda number: Fact(at_least=f"{number} GB")),
)


@given(
    rule=rules,
    field=st.text("ab.*?[]", min_size=1, max_size=6),
    fields=st.dictionaries(st.text("ab.", min_size=1, max_size=5), texts, max_size=5),
    unreadable=st.dictionaries(st.text("ab.", min_size=1, max_size=5), texts, max_size=3),
)
def test_every_fact_has_one_result_which_can_be_printed(rule, field, fields, unreadable):
    facts = {"1": FactSection(source="x", fields={field: rule})}
    (result,) = bought.compare(facts, fields, unreadable)
    assert result.found.isprintable()
    there = [name for name in fields if fnmatchcase(name, field) or name == field]
    good = [name for name in there if rule.met_by(fields[name], name, "")]
    if result.outcome is Outcome.MISSING:
        assert not there
    if result.outcome is Outcome.AS_STATED and rule.count is None:
        assert there == good != []
    if result.outcome is Outcome.DIFFERENT:
        assert len(good) != (len(there) if rule.count is None else rule.count)


names_of_fields = st.text("abc.", min_size=1, max_size=5)


# A stated {node} is the node's name, so it never equals the same text of a node.
own_values = texts.filter(lambda value: NODE not in value)


@given(fields=st.dictionaries(names_of_fields, own_values, min_size=1, max_size=5))
def test_a_node_is_as_stated_where_its_own_values_are_stated(fields):
    facts = {"1": FactSection(source="x", fields={n: Fact(exact=v) for n, v in fields.items()})}
    assert not bought.missed(bought.compare(facts, fields, {}))
    changed = {name: f"{value}x" for name, value in fields.items()}
    assert bought.missed(bought.compare(facts, changed, {})) == len(fields)


@rows("value", ["a" * 10**6, "\x1b[31m" * 1000, "a b " * 10**5, "9" * 10**6])
def test_no_value_of_a_node_takes_long_or_reaches_the_terminal(value):
    begun = time.process_time()
    for rule in ({"pattern": "*a*a*a*a*a*a*a*a*b"}, {"at_least": "1 GB"}, "x"):
        found = one("memory.total", rule, {"memory.total": value})
        assert found.outcome is Outcome.DIFFERENT
        assert found.found.isprintable()
        assert len(found.found) < 300
    assert time.process_time() - begun < 1


@rows(
    "rule, what",
    [
        ({}, "no value"),
        ({"exact": "a", "pattern": "b"}, "both exact and pattern"),
        ({"about": "128 GiB"}, "about and tolerance"),
        ({"about": "much", "tolerance": "3 %"}, "'much' is not a number"),
        ({"about": "3", "tolerance": "3"}, "'3' is not a valid tolerance"),
        ({"one_of": []}, "at least 1 item"),
        ({"pattern": "a" * 300}, "too long"),
        ({"pattern": "*a" * 20}, "too long"),
        ({"count": -1}, "greater than or equal to 0"),
    ],
)
def test_a_rule_that_means_nothing_is_a_mistake(rule, what):
    with pytest.raises(ValidationError, match=what):
        Fact.model_validate(rule)


def test_a_section_has_fields_or_says_why_it_has_none():
    for keys in ({}, {"fields": {"os.id": "debian"}, "not_stated": "N/A"}):
        with pytest.raises(ValidationError, match="not_stated"):
            FactSection(source="x", **keys)


@pytest.mark.deep
def test_each_field_that_a_node_reports_is_known_and_each_known_one_is_reported(tmp_path):
    on_node = TOP / "siteproof/checks/on_node"
    done = subprocess.run(
        ["sh", TOP / "checks/system/description.sh", on_node],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    reported = {reading.metric for reading in description.parse(done.stdout)}
    outputs = (TOP / "tests/unit/parsers/outputs/description").glob("*.expected")
    text = "\n".join(path.read_text() for path in outputs)
    reported |= {line.split()[0] for line in text.splitlines() if line.endswith(" text")}
    assert [name for name in sorted(reported) if not is_read(name)] == []
    scripts = done.stdout + text + (TOP / "checks/system/description.sh").read_text()
    begins = {known.partition(".")[0] for known in FIELDS}
    assert [name for name in begins if f"{name}." not in scripts] == []


# The shipped sites


BLADE = NEW | {  # as the report describes it, in the form of checks/system/description.sh
    "system.sys_vendor": "Dell Inc.",
    "system.product_name": "PowerEdge M630",
    "cpu.vendor": "GenuineIntel",
    "cpu.model": "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz",
    "cpu.sockets": "2",
    "cpu.cores": "24",
    "cpu.cache.l3": "30720K 20 ways, shared by 0,2,4,6,8,10,12,14,16,18,20,22",
    "cpu.cache.l2": "256K 8 ways, shared by 0",
    "memory.total": "131923412 kB",
    "pci.0000:02:00.0": "class 0x010400 id 0x1000:0x005f subsystem 0x1f44 revision 0x02 x8",
    "raid.controller0.product_name": "PERC H330 Mini",
    "raid.controller0.disk.32:0": "SAS HDD 931.0 GB ST1000NX0453 Onln",
    "raid.controller0.disk.32:1": "SAS HDD 931.0 GB ST1000NX0453 Onln",
    "os.release": "CentOS Linux release 7.1.1503 (Core)",
    "kernel.release": "3.10.0-229.el7.x86_64",
    "os.sysctls_set": "none",
    "os.tuned": "throughput-performance",
    "packages.pending": "0",
    "cpu.external_clock": "9600 MHz",
    "bios.version": "1.1.10",
    "bios.setting.SysProfile": "PerfPerWattOptimizedDapc",
    "bmc.firmware": "2.10",
    "bmc.firmware_own": "0x00 0x31 0x0a 0x0a",
    "mount./": "xfs rw,relatime",
    "mount./nfs/benchmarks": "nfs4 iu-m01:/benchmarks rw",
    "tool.icc": "icc (ICC) 15.0.3 20150407",
    "tool.mpirun": "Intel(R) MPI Library for Linux* OS, Version 5.0 Update 3 Build 20150128",
    "package.qemu-kvm.x86_64": "1.5.3-105.el7_2.1",
    "package.libvirt-daemon-kvm.x86_64": "1.2.17-13.el7_2.2",
    "package.openstack-nova-compute.noarch": "12.0.1-1.el7",
    "nic.bond0.bond_members": "em1 em2",
    **{f"memory.dimm.{n}_A{n}": f"{DIMM}A{n}" for n in range(1, 9)},
    **{
        f"memory.dimm.{n}_B{n}": "No Module Installed, Unknown Unknown, at Unknown, Not Specified"
        for n in range(9, 25)
    },
}
for _nic in ("em1", "em2"):
    BLADE |= {
        f"nic.{_nic}.driver": "i40e",
        f"nic.{_nic}.driver_version": "1.3.47",
        f"nic.{_nic}.firmware": "4.41 0x8000186a 16.5.20",
        f"nic.{_nic}.speed": "10000 Mb/s",
        f"lldp.{_nic}.switch_description": "Dell Networking OS Application Software Version: "
        "9.9(0.0) Series: MXL-10/40GbE",
    }
OF_SECTION = {  # one field of each section, which is then not as the report states
    "3.1.1": ("system.product_name", "PowerEdge M620"),
    "3.1.2": ("memory.dimm.9_B9", None),
    "3.1.3": ("memory.dimm.3_A3", "8192 MB, DDR4 2133 MHz, at 2133 MHz, Hynix"),
    "3.1.4": ("cpu.model", "Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz"),
    "3.1.5": ("memory.dimm.3_A3", "16384 MB, DDR4 2133 MHz, at 1866 MHz, Hynix"),
    "3.1.6": ("cpu.external_clock", "8000 MHz"),
    "3.1.7": ("fc.host0.speed", "8 Gbit"),
    "3.1.8": ("nic.em2.firmware", "4.10 0x0"),
    "3.1.9": ("nic.bond0.bond_members", "em1"),
    "3.1.10": ("raid.controller0.disk.32:1", None),
    "3.1.11": ("fc.host0.speed", "8 Gbit"),
    "3.1.12": ("mount./nfs/benchmarks", "xfs rw"),
    "3.2.1": ("os.sysctls_set", "kernel.sched_migration_cost_ns"),
    "3.2.2": ("bios.setting.SysProfile", "PerfOptimized"),
    "3.2.3": ("nic.em1.driver_version", "1.2.2"),
    "3.2.4": ("module.toecore", "loaded"),
    "3.2.6": ("mount./", "ext4 rw"),
    "3.2.7": ("tool.icc", "not on PATH"),
    "3.2.8": ("packages.pending", "12"),
    "3.2.9": ("package.qemu-kvm.x86_64", None),
}


def test_a_blade_of_jetstream_is_as_the_report_states_it():
    site = shipped.site("jetstream-iu")
    results = bought.of_nodes(site, {"iu-c007": BLADE}, {})["iu-c007"]
    assert [r for r in results if r.outcome is not Outcome.AS_STATED] == []
    assert {r.section for r in results} == set(OF_SECTION)
    stated = bought.sections_of(site, "iu-c007")
    assert {name for name in stated if not stated[name].fields} == {"3.2.5"}
    assert len(stated) == 21


@rows("name", OF_SECTION)
def test_each_section_of_jetstream_misses_by_a_changed_field(name):
    field, value = OF_SECTION[name]
    changed = {**BLADE, field: value}
    if value is None:
        del changed[field]
    results = bought.of_nodes(shipped.site("jetstream-iu"), {"iu-c007": changed}, {})["iu-c007"]
    wrong = [result for result in bought.of_section(results, name) if result.missed]
    assert wrong
    assert all(fnmatchcase(field, result.field) for result in wrong)


def test_without_root_and_tools_the_sections_name_what_they_lack():
    gone = ("memory.dimm", "raid", "lldp", "bmc")
    blade = {name: value for name, value in BLADE.items() if not name.startswith(gone)}
    unread = {"memory.dimm": "needs root", "raid.controller": "needs root", "lldp": "no lldpctl"}
    unread["bmc"] = "the kernel offers no IPMI device"
    results = bought.of_nodes(shipped.site("jetstream-iu"), {"iu-c007": blade}, {"iu-c007": unread})
    unknown = bought.not_read(results["iu-c007"])
    assert bought.missed(results["iu-c007"]) == 0
    assert unknown["memory.dimm.*"] == "memory.dimm: needs root"
    sections = {r.section for r in results["iu-c007"] if r.outcome is Outcome.NOT_READ}
    assert sections == {"3.1.1", "3.1.2", "3.1.3", "3.1.5", "3.1.9", "3.1.10", "3.2.1", "3.2.2"}


def extenci(**changed):
    host = NEW | {
        "host.name": "oss00w.psc.jwan",
        "address.eth0.1": "128.182.112.61",
        "os.release": "CentOS release 5.5 (Final)",
        "nic.eth0.driver": "forcedeth",
        "nic.eth0.speed": "1000 Mb/s",
        "dns.consistent": "yes",
    }
    host |= {name.replace("__", "."): value for name, value in changed.items()}
    results = bought.of_nodes(shipped.site("extenci"), {"oss00w.psc.jwan": host}, {})
    return {result.section for result in results["oss00w.psc.jwan"] if result.missed}


@rows(
    "field, value, section",
    [
        ("host__name", "mds04w.psc.jwan", "name"),
        ("address__eth0__1", "128.182.112.60", "address"),
        ("os__release", "CentOS release 4.8 (Final)", "system"),
        ("nic__eth0__driver", "e1000", "interface"),
        ("dns__consistent", "128.182.112.61 is mds04w and not oss00w", "consistent"),
    ],
)
def test_the_host_table_of_extenci_is_kept_and_missed_column_by_column(field, value, section):
    assert extenci() == set()
    assert extenci(**{field: value}) == {f"host table: {section}"}


def test_table_1_of_nasa_is_kept_and_missed():
    site = shipped.site("nebula-sriov")
    host = NEW | {
        "os.release": "Ubuntu 11.04",
        "kernel.release": "2.6.38-10-server",
        "cpu.model": "Intel(R) Xeon(R) CPU E5520 @ 2.27GHz",
        "cpu.sockets": "2",
        "cpu.cores": "8",
        "memory.total": "49415620 kB",
        "system.product_name": "PowerEdge R710",
        "tool.nuttcp": "nuttcp-7.1.5.c",
        "tool.mpiname": "MVAPICH2 1.7rc1 2011-07-21 ch3:mrail",
        "tool.mkl": "10.2.6",
    }
    guest = {**host, "memory.total": "16396308 kB"}
    drivers = {"sw-1": "e1000", "vio-1": "virtio_net", "vf-1": "ixgbevf"}
    fields = {node: {**guest, "nic.eth0.driver": name} for node, name in drivers.items()}
    results = bought.of_nodes(site, {"r710-1": host, **fields}, {})
    missed = {node: bought.missed(found) for node, found in results.items()}
    assert missed == dict.fromkeys(["r710-1", *drivers], 0)
    swapped = {"r710-1": guest, "vf-1": {**fields["vf-1"], "memory.total": host["memory.total"]}}
    swapped["vio-1"] = fields["sw-1"]
    wrong = {
        node: [result.field for result in found if result.missed]
        for node, found in bought.of_nodes(site, swapped, {}).items()
    }
    assert wrong == {
        "r710-1": ["memory.total"],
        "vf-1": ["memory.total"],
        "vio-1": ["nic.eth0.driver"],
    }


def test_a_gpu_of_magellan_that_is_gone_is_named():
    node = {"gpu.count": "2", "memory.total": "65923412 kB"}
    node |= {f"gpu.{n}.name": "Tesla M2070" for n in range(2)}
    site = shipped.site("magellan")
    assert bought.missed(bought.of_nodes(site, {"mag-g001": node}, {})["mag-g001"]) == 0
    lost = {**node, "gpu.count": "1"}
    del lost["gpu.1.name"]
    found = bought.of_nodes(site, {"mag-g001": lost}, {})["mag-g001"]
    assert [(r.field, r.found) for r in found if r.missed] == [
        ("gpu.count", "1"),
        ("gpu.*.name", "1 time"),
    ]


@rows("name", shipped.NAMES)
def test_each_stated_fact_names_its_source(name):
    site = shipped.site(name)
    for role in site.system.nodes:
        for node in list(site.expected(role))[:1]:
            for section in bought.sections_of(site, node).values():
                assert section.source


EXPORT = "mount./nfs/benchmarks"
SLOTS = {f"pci.slot.{n}": f"x{16 if n < 3 else 8} PCI Express 3, S{n}, -" for n in range(1, 7)}
DISKS = {f"raid.controller0.disk.32:{n}": "SATA SSD 186.3 GB X Onln" for n in range(14)}
DATA = {f"raid.controller0.disk.32:{n}": "SAS HDD 3.638 TB X Onln" for n in range(2, 14)}


@rows(
    "system, hardware, section, good, bad",
    [
        ("jetstream-iu", "r730", "3.1.10", DISKS | DATA, DISKS),
        (
            "jetstream-tacc",
            "m630",
            "3.1.12",
            {EXPORT: "nfs4 tacc-m01:/nfs rw"},
            {EXPORT: "nfs4 tacc-s01:/nfs rw"},
        ),
        ("jetstream-iu", "r730", "3.1.6", SLOTS, SLOTS | {"pci.slot.6": "x4 PCI Express 3, S6, -"}),
        ("magellan", "receiver", "receivers", {}, {"cpu.flag.hypervisor": "yes"}),
        (
            "sc11-wan",
            "object_server",
            "2.1",
            {"disk.sda.size": "1000204886016 B"},
            {"disk.sda.size": "250059350016 B"},
        ),
        ("sc11-wan", "client", "2.1", {"nic.eth2.driver": "bna"}, {"nic.eth2.driver": "ixgbe"}),
    ],
)
def test_a_node_that_is_not_what_the_source_describes_differs(system, hardware, section, good, bad):
    facts = shipped.site(system).system.hardware[hardware].facts

    def wrong(fields):
        found = bought.compare({section: facts[section]}, NEW | fields, {}, "n1")
        return {one.field for one in found if one.outcome is Outcome.DIFFERENT}

    assert wrong(bad) - wrong(good)
    assert not wrong(good) & set(good)
