"""Reasons of waiting jobs, in every way that Slurm writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.clusters.slurm.reasons import explain_reason, for_job
from tests.slurm.records import pending_reason

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


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("None", ""),
        ("", "waiting"),
        ("(null)", "waiting"),
        ("null", "waiting"),
        ("SomethingNew", "waiting (SomethingNew)"),
        ("(XtoX)", "waiting (XtoX)"),
        ("(Priority)", "waiting: jobs of higher priority come first (Priority)"),
        ("Resources", "next in line: waiting for nodes to become free (Resources)"),
        ("DependencyNeverSatisfied", "will never start: a job it depends on failed"
         " (DependencyNeverSatisfied)"),
        ("Dependency", "waiting for the job it depends on (Dependency)"),
        ("JobHeldUser", "held by you; release it with `scontrol release` (JobHeldUser)"),
        ("JobHeldAdmin", "held by the site (JobHeldAdmin)"),
        ("QOSMaxWallDurationPerJobLimit", "will never start: it requests more time than the QoS allows"
         " (QOSMaxWallDurationPerJobLimit)"),
        ("QOSGrpNodeLimit", "waiting: a limit of the QoS is reached (QOSGrpNodeLimit)"),
        ("AssocMaxWallDurationPerJobLimit", "will never start: it requests more time than the account allows"
         " (AssocMaxWallDurationPerJobLimit)"),
        ("AssocGrpGRES", "waiting: a limit of the account is reached (AssocGrpGRES)"),
    ],
)  # fmt: skip
def test_why_a_job_waits(reason: str, words: str) -> None:
    assert pending_reason(reason) == words


@pytest.mark.parametrize(
    ("reason", "part"),
    [
        ("BeginTime", "begin time"), ("PartitionTimeLimit", "never start"), ("PartitionNodeLimit", "nodes"),
        ("PartitionDown", "closed"), ("PartitionInactive", "closed"), ("ReqNodeNotAvail", "maintenance"),
        ("Reservation", "reservation"), ("AssociationJobLimit", "account"), ("Licenses", "license"),
        ("BadConstraints", "never start"), ("InvalidAccount", "account"), ("InvalidQOS", "no longer valid"),
        ("Cleaning", "cleaned"), ("NodeDown", "down"),
    ],
)  # fmt: skip
def test_every_reason_is_explained(reason: str, part: str) -> None:
    assert part in pending_reason(reason)
    assert pending_reason(reason).endswith(f" ({reason})")


def test_a_long_reason_is_explained_without_repeating_it() -> None:
    long = "ReqNodeNotAvail, UnavailableNodes:"
    at_limit = long + "n" * (59 - len(long))
    assert pending_reason(at_limit).endswith(f"({at_limit})")
    assert pending_reason(f"{at_limit}n").endswith("are down, drained or reserved")
