"""Reasons of waiting jobs, in every way that Slurm writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.clusters.slurm.reasons import explain_reason, for_job

STUCK = {
    "launch_failed_requeued_held": "held",
    "launch failed requeued held": "held",
    "job_requeued_in_held_state": "held",
    "user_env_retrieval_failed_requeued_held": "held",
    "JobHoldMaxRequeue": "held",
    "JobHeldUser": "held by you",
    "JobHeldAdmin": "held by the site",
    "ReservationDeleted": "deleted",
    "PartitionDown": "closed",
    "PartitionInactive": "inactive",
    "PartitionTimeLimit": "never",
    "PartitionNodeLimit": "never",
    "BadConstraints": "never",
    "DependencyNeverSatisfied": "never",
    "InvalidAccount": "never",
    "InvalidQOS": "never",
    "QOSNotAllowed": "never",
    "AccountNotAllowed": "never",
    "MaxMemPerLimit": "memory",
    "DeadLine": "deadline",
    "QOSMaxWallDurationPerJobLimit": "more time",
    "AssocMaxWallDurationPerJobLimit": "more time",
    "QOSMaxNodePerJobLimit": "more nodes",
    "AssocMaxNodePerJobLimit": "more nodes",
    "QOSMaxCpuPerJobLimit": "more CPUs",
    "QOSMaxGRESPerJob": "more GPUs",
    "AssocMaxGRESPerJob": "more GPUs",
    "QOSMaxMemoryPerJob": "more memory",
    "QOSMaxCpuMinutesPerJobLimit": "never",
    "QOSMinCpuNotSatisfied": "less",
    "QOSMinGRES": "less",
    "QOSMinMemory": "less",
    "QOSGrpCPUMinutesLimit": "budget",
    "AssocGrpCPUMinutesLimit": "budget",
    "AssocGrpGRESMinutes": "budget",
    "AssocGrpBillingMinutes": "budget",
    "Reservation maintenance_3 was deleted": "deleted",
    "Reservation a,b is invalid": "no longer valid",
    "ReservationInvalid": "no longer valid",
    "launch failure limit exceeded requeued held": "could not be launched",
    "slurm_cred_create failure, holding job.": "held",
    "BurstBufferOperation": "held",
    "QOSGrpWallLimit": "budget",
    "AssocGrpWallLimit": "budget",
    "QOSMaxMemoryPerNode": "more memory than the QoS allows on a node",
    "AssocMaxCpuPerNode": "more CPUs than the account allows on a node",
    "AssocMaxNodeMinutesPerJob": "more minutes",
}
WAITING = {
    "Reserved for maintenance": "maintenance",
    "ReqNodeNotAvail, Reserved for maintenance": "maintenance",
    "ReqNodeNotAvail, May be reserved for other job": "another job",
    "QOSGrpCPURunMinutesLimit": "limit of the QoS",
    "AssocGrpGRESRunMinutes": "limit of the account",
    "MaxGRESPerAccount": "for each account",
    "MaxNodeRunMinsPerUser": "for each user",
    "QOSUsageThreshold": "threshold",
    "JobLaunchFailure": "requeued",
    "OutOfMemory": "requeued",
    "Constraints": "no node fits",
    "MaxPoweredUpNodes": "power",
    "Nodes required for job are DOWN, DRAINED, REBOOTING or reserved for jobs": "down, drained",
    "Priority": "higher priority",
    "Resources": "next in line",
    "BeginTime": "begin time",
    "Dependency": "depends on",
    "Reservation": "to begin",
    "Licenses": "license",
    "QOSMaxJobsPerUserLimit": "limit of the QoS",
    "QOSMaxCpuPerUserLimit": "limit of the QoS",
    "QOSMaxGRESPerUser": "limit of the QoS",
    "QOSGrpNodeLimit": "limit of the QoS",
    "AssocGrpNodeLimit": "limit of the account",
    "AssocMaxJobsLimit": "limit of the account",
    "AssociationJobLimit": "limit of the account",
    "ReqNodeNotAvail, UnavailableNodes:jwb[0002-0003]": "jwb[0002-0003]",
    "ReqNodeNotAvail(Unavailable:jwb0002)": "down, drained",
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs": "down, drained",
    "Cleaning": "cleaned up",
    "SomethingNew": "SomethingNew",
}


@pytest.mark.parametrize(("reason", "says"), STUCK.items())
def test_reasons_that_need_somebody(reason: str, says: str) -> None:
    explained = explain_reason(reason)
    assert explained.stuck
    assert says in explained.text


@pytest.mark.parametrize(("reason", "says"), WAITING.items())
def test_reasons_that_pass_by_themselves(reason: str, says: str) -> None:
    explained = explain_reason(reason)
    assert not explained.stuck
    assert says in explained.text


@given(reason=st.sampled_from([*STUCK, *WAITING]), underscores=st.booleans(), parentheses=st.booleans())
def test_blanks_and_parentheses_change_nothing(reason: str, underscores: bool, parentheses: bool) -> None:
    written = reason.replace(" ", "_") if underscores else reason
    written = f"({written})" if parentheses else written
    assert explain_reason(written).stuck == explain_reason(reason).stuck


@pytest.mark.parametrize("reason", ["", "None", "(null)", "(None)"])
def test_no_reason(reason: str) -> None:
    assert explain_reason(reason).text == ""


@pytest.mark.parametrize(
    ("reason", "nodes"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:jwb[0002-0003,0007]", "jwb[0002-0003,0007]"),
        ("(ReqNodeNotAvail,_UnavailableNodes:a1,a2)", "a1,a2"),
        ("ReqNodeNotAvail(Unavailable:jwb0002)", "jwb0002"),
        ("ReqNodeNotAvail, UnavailableNodes:", ""),
        ("ReqNodeNotAvail, Reserved for maintenance", ""),
    ],
)
def test_unavailable_nodes_are_kept_apart(reason: str, nodes: str) -> None:
    assert explain_reason(reason).unavailable_nodes == nodes


def test_a_fix_names_the_job() -> None:
    assert "scontrol release 4711" in for_job(explain_reason("JobHeldUser"), "4711").fix
    assert "job=4711" in for_job(explain_reason("PartitionTimeLimit"), "4711").fix


@given(reason=st.text(max_size=60))
def test_any_text_is_explained(reason: str) -> None:
    assert explain_reason(reason).text == explain_reason(reason).text.strip()
