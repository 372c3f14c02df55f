"""Which function derives which metric, and the answer to a criterion on one of them.

The inputs of each metric stand in the catalogue (`derived_from`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from siteproof.answers.inputs import CAMPAIGN
from siteproof.derivations import (
    bookkeeping,
    bought_facts,
    inventory,
    moved_files,
    one_way,
    paths,
    two_ways,
    up_times,
)
from siteproof.derivations.given import DerivedSample, Given, Lack, Material, Result
from siteproof.errors import UserError, UserErrors
from siteproof.record.finding import Finding
from siteproof.sites import Criterion
from siteproof.sites.promise import Subject

MAX_LENGTH = 300  # characters of a reason
Derivation = Callable[[Given], Iterator[Result]]

STORAGE: Mapping[str, Subject] = {"BlockStorage.read": "node", "BlockStorage.write": "node"}
PARALLEL: Mapping[str, Subject] = {
    "Ior.read": "system",
    "Ior.write": "system",
    "IorSingle.read": "node",
    "IorSingle.write": "node",
}
TABLE: Mapping[str, Derivation] = {
    "TcpBandwidth.retention": two_ways.of_link,
    "TcpBandwidth.share_of_native": two_ways.of_link,
    "TcpBandwidth.share_of_max": one_way.share_of_max,
    "TcpBandwidth.asymmetry": one_way.asymmetry,
    "TcpBandwidth.best": one_way.best,
    "TcpBandwidth.median": one_way.median,
    "TcpBandwidth.trials": one_way.trials,
    "Netperf.service_demand": one_way.service_demand,
    "PathMtu.difference": one_way.mtu_difference,
    "HostParameters.buffer_shortage": one_way.buffer_shortage,
    "MpiPingPong.bandwidth_of_native": two_ways.of(["MpiPingPong.bandwidth_by_size"], "pair"),
    "MpiPingPong.latency_of_native": two_ways.of(["MpiPingPong.latency_by_size"], "pair"),
    "VmShare.hpl": two_ways.of(["Hpl.gflops"], "node"),
    "VmShare.hpl_of_paravirtual": two_ways.of(["Hpl.gflops"], "node"),
    "VmShare.cpu": two_ways.of(["Hpl.gflops"], "node"),
    "VmShare.io_bandwidth": two_ways.of(["BlockStorage.read", "BlockStorage.write"], "node"),
    "VmShare.io_latency": two_ways.of(["RandomIo.read_p99", "RandomIo.write_p99"], "node"),
    "Ior.retention": two_ways.of(["Ior.read", "Ior.write"], "system"),
    "Ior.locality": two_ways.of(["Ior.read", "Ior.write"], "system"),
    "Ior.change": two_ways.change(PARALLEL),
    "Lnet.retention": two_ways.of(["Lnet.read", "Lnet.write"], "system"),
    "Workload.retention": two_ways.of_figure,
    "Namespace.differences": paths.differences,
    "BlockStorage.change": two_ways.change(STORAGE),
    "RandomIo.read_ratio": two_ways.random_of_serial("read"),
    "RandomIo.write_ratio": two_ways.random_of_serial("write"),
    "Inventory.nodes": inventory.nodes,
    "Inventory.cores": inventory.total(inventory.amount("cores"), "cpu.cores"),
    "Inventory.peak": inventory.each(inventory.peak, "cpu.cores, avx_base and flops_per_cycle"),
    "Inventory.total_peak": inventory.total(
        inventory.peak, "cpu.cores, avx_base and flops_per_cycle"
    ),
    "Inventory.memory": inventory.total(inventory.memory, "memory.total"),
    "Inventory.disk": inventory.total(inventory.disk, "disk.*.size"),
    "Inventory.receivers_rate": inventory.total(inventory.amount("rate"), "nic.*.speed"),
    "Instance.vcpus": inventory.each(inventory.amount("threads"), "cpu.threads"),
    "Instance.interfaces": inventory.each(inventory.amount("interfaces"), "nic.*.driver"),
    "Instance.driver": inventory.each(inventory.driver, "nic.*.driver"),
    "Instance.missing_flags": inventory.missing_flags,
    "SystemDescription.raid": inventory.each(inventory.raid, "raid.*.level"),
    "SystemDescription.between_sites": inventory.between,
    "Instance.gpus": inventory.each(inventory.amount("gpus"), "gpu.count"),
    "SystemDescription.drift": bought_facts.all_sections,
    "SystemDescription.section_drift": bought_facts.one_section,
    "HostTable.wrong_names": bought_facts.of_host_table("wrong_names"),
    "HostTable.wrong_addresses": bought_facts.of_host_table("wrong_addresses"),
    "HostTable.wrong_systems": bought_facts.of_host_table("wrong_systems"),
    "HostTable.wrong_interfaces": bought_facts.of_host_table("wrong_interfaces"),
    "HostTable.inconsistent": bought_facts.of_host_table("inconsistent"),
    "Availability.scheduled": up_times.availability,
    "Availability.overall": up_times.availability,
    "Availability.downtime": up_times.availability,
    "Availability.gateway_gap": up_times.availability,
    "Transfer.highest": moved_files.rate(max),
    "Transfer.lowest": moved_files.rate(min),
    "Transfer.average": moved_files.rate(moved_files.mean),
    "Transfer.sustained": moved_files.rate(min),
    "Transfer.grade": moved_files.grade,
    "Transfer.login_failures": moved_files.failures("login"),
    "Transfer.timeouts": moved_files.failures("timeout"),
    "Transfer.checksum_failures": moved_files.failures("checksum"),
    "Transfer.generic_errors": moved_files.failures("gen"),
    "Transfer.failed_services": moved_files.failed_services,
    "VmShare.tightly_coupled": two_ways.of(["Lammps.rate"], "node"),
    "VmShare.data_analysis": two_ways.of(["Minimap2.rate"], "node"),
    "Session.duration": bookkeeping.duration,
    "Ledger.undated": bookkeeping.undated,
    "Ledger.out_of_order": bookkeeping.out_of_order,
    "Coverage.missing": bookkeeping.missing,
}


@dataclass(frozen=True)
class Answers:
    """What was derived for a criterion. lacks: by unit, or under "" where it is of all of them."""

    samples: list[DerivedSample] = field(default_factory=list)
    lacks: dict[str, Finding] = field(default_factory=dict)


def answers(material: Material, criterion: Criterion) -> Answers:
    """The values that answer a criterion on a derived metric."""
    found = Answers()
    derive = TABLE[criterion.metric]
    sides = material.site.catalogue[criterion.metric].compared_by
    if sides and not criterion.against and CAMPAIGN not in sides:
        need = f"'against' of the criterion ({' or '.join(sides)})"
        return Answers(lacks={"": Given(material, criterion).missing([need]).why})
    given = Given(material, criterion)
    try:
        for result in derive(given):
            if isinstance(result, Lack):
                found.lacks[result.unit] = result.why
            else:
                found.samples.append(result)
    except (UserError, UserErrors) as error:  # a broken input costs this criterion, and no other
        return Answers(lacks={"": given.missing([" ".join(str(error).split())[:MAX_LENGTH]]).why})
    return found
