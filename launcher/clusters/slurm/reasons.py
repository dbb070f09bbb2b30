"""Reasons why a job waits, as Slurm writes them, and what a user can do where waiting does not help.

The names are those of `job_reason_string` (src/common/slurm_protocol_defs.c) and of the texts that slurmctld
puts into `state_desc`; versions and commands write blanks as underscores, and some append names of nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingReason:
    """The meaning of a reason."""

    text: str
    """A sentence's beginning, lower case; empty where Slurm gives no reason."""
    fix: str = ""
    """What to change; empty where the job starts by itself."""

    @property
    def stuck(self) -> bool:
        """Whether the job does not start unless somebody does something."""
        return bool(self.fix)


_RELEASE = "`scontrol release JOB` lets it go on; first see in its log why it failed."
_FEWER = "Cancel it and submit with fewer --nodes, or with another --qos or --account."
_SHORTER = "Cancel it and submit with a shorter --time, or `scontrol update job=JOB timelimit=…`."
_ELSEWHERE = "Cancel it and submit to another partition, or ask the site when this one opens."

_EXACT: dict[str, PendingReason] = {
    "none": PendingReason(""),
    "null": PendingReason(""),
    "priority": PendingReason("waiting: jobs of higher priority are before it"),
    "resources": PendingReason("next in line: waiting for nodes to become free"),
    "begintime": PendingReason("waiting for its begin time (a requeued job waits two minutes)"),
    "dependency": PendingReason("waiting for the job it depends on"),
    "dependencyneversatisfied": PendingReason(
        "it can never start: what it depends on failed", "Cancel it; resume or submit the run again."
    ),
    "reservation": PendingReason("waiting for its reservation to begin"),
    "reservationdeleted": PendingReason(
        "held: its reservation was deleted",
        "Cancel it and submit without --reservation, or with another one.",
    ),
    "licenses": PendingReason("waiting for a license"),
    "schedulerdefer": PendingReason("waiting: the scheduler has deferred it"),
    "scheddefer": PendingReason("waiting: the scheduler has deferred it"),
    "cleaning": PendingReason("waiting: its former run is being cleaned up"),
    "prolog": PendingReason("its nodes are being prepared"),
    "nodedown": PendingReason("waiting: a node it needs is down"),
    "frontenddown": PendingReason("waiting: a front end of the cluster is down"),
    "jobarraytasklimit": PendingReason("waiting for other tasks of its array"),
    "powernotavail": PendingReason("waiting for power: the cluster is at its power limit"),
    "powerreserved": PendingReason("waiting for power: the cluster is at its power limit"),
    "partitiondown": PendingReason("its partition is closed", _ELSEWHERE),
    "partitioninactive": PendingReason("its partition is inactive", _ELSEWHERE),
    "partitiontimelimit": PendingReason(
        "it can never start: its time limit is above the partition's", _SHORTER
    ),
    "partitionnodelimit": PendingReason(
        "it can never start: it asks for more or fewer nodes than the partition allows", _FEWER
    ),
    "partitionconfig": PendingReason("it can never start: the partition does not take such jobs", _ELSEWHERE),
    "badconstraints": PendingReason(
        "it can never start: no node of the partition fits the request",
        "Cancel it; `distill-tui detect` lists what nodes have (GPUs, memory, features).",
    ),
    "invalidaccount": PendingReason(
        "it can never start: its account is no longer valid", "Cancel it and submit with another --account."
    ),
    "invalidqos": PendingReason(
        "it can never start: its QoS is no longer valid", "Cancel it and submit with another --qos."
    ),
    "qosnotallowed": PendingReason(
        "it can never start: the partition or account does not allow its QoS",
        "Cancel it and submit with another --qos or --partition.",
    ),
    "accountnotallowed": PendingReason(
        "it can never start: the partition does not allow its account",
        "Cancel it and submit with another --account or --partition.",
    ),
    "maxmemperlimit": PendingReason(
        "it can never start: it asks for more memory than the partition allows per CPU or node",
        "Cancel it and submit with less memory (`--sbatch-arg=--mem=…`).",
    ),
    "deadline": PendingReason(
        "it can never start: its deadline has passed", "Cancel it and submit it again."
    ),
    "jobheldadmin": PendingReason("held by the site", "Ask the site's support; only they can release it."),
    "jobhelduser": PendingReason("held by you", "`scontrol release JOB` lets it go on."),
    "jobholdmaxrequeue": PendingReason("held: it was requeued as often as the site allows", _RELEASE),
    "systemfailure": PendingReason("waiting after a failure of the system"),
    "qosusagethreshold": PendingReason("waiting: the use of its QoS is above its threshold"),
}
_DIMENSIONS = (
    (r"wall|duration", "time", _SHORTER),
    (r"node", "nodes", _FEWER),
    (r"gres|gpu", "GPUs", _FEWER),
    (r"cpu|billing|tres|core", "CPUs", _FEWER),
    (r"mem", "memory", _FEWER),
    (r"energy|bb|license|unknown", "of a resource", _FEWER),
)
_BUDGET = re.compile(r"(?:qos|assoc)(?:grp|max)\w*minutes")


def explain_reason(reason: str) -> PendingReason:
    """Return the meaning of a reason as squeue prints it, with or without parentheses."""
    bare = reason.strip().strip("()").strip()
    key = re.sub(r"[\s_]+", "", bare.partition(",")[0].partition(":")[0]).lower()
    if key in _EXACT:
        return _EXACT[key]
    for rule in (_held, _nodes, _limits):
        match = rule(key, bare)
        if match is not None:
            return match
    return PendingReason(f"waiting ({bare})" if bare else "")


def _held(key: str, bare: str) -> PendingReason | None:
    """Explain the ways to be held, such as `launch failed requeued held`."""
    if not re.search(r"held|hold", key):
        return None
    if "launchfailed" in key:
        return PendingReason("held: it could not be launched on its nodes", _RELEASE)
    if "userenv" in key:
        return PendingReason(
            "held: your login environment could not be read on the node",
            "See that your login shell's start files end quickly, then `scontrol release JOB`.",
        )
    if "requeued" in key:
        return PendingReason("held: it was requeued and is not started again by itself", _RELEASE)
    return PendingReason(f"held ({bare})", "`scontrol release JOB` lets it go on.")


def _nodes(key: str, bare: str) -> PendingReason | None:
    """Explain nodes that cannot be had: down, drained, or reserved for maintenance."""
    if "maintenance" in key or "maintenance" in bare.lower():
        return PendingReason(
            "its nodes are reserved for maintenance before it would end",
            "A shorter --time may start before it: `t` in the wizard, or `submit --test-only`, asks Slurm.",
        )
    if not key.startswith(("reqnodenotavail", "nodesrequired", "unavailablenodes")):
        return None
    names = re.search(r"(?:UnavailableNodes|Unavailable_Nodes):?\s*(\S+)", bare)
    which = f" ({names[1]})" if names is not None else ""
    return PendingReason(f"waiting: nodes that it needs{which} are down, drained or reserved")


def _limits(key: str, bare: str) -> PendingReason | None:
    """Explain limits of a QoS (`QOS…`) or of an account (`Assoc…`, `Association…`)."""
    if not key.startswith(("qos", "assoc", "maxtres", "maxjobs", "accountingpolicy")):
        return None
    whose = "QoS" if key.startswith("qos") else "account"
    if _BUDGET.match(key) and "perjob" not in key:
        return PendingReason(
            f"the budget of its {whose} is used up ({bare})",
            "Give another --account, or wait until the project's budget is renewed.",
        )
    if key.startswith("qosmin") or "notsatisfied" in key:
        return PendingReason(
            f"it can never start: it asks for less than its QoS demands ({bare})",
            "Cancel it and submit with more --nodes, or with another --qos.",
        )
    if re.search(r"perjob|maxwall|pernode", key) and "peruser" not in key and "peraccount" not in key:
        what, fix = next(
            ((name, fix) for pattern, name, fix in _DIMENSIONS if re.search(pattern, key)), ("", _FEWER)
        )
        more = f"more {what}" if what != "of a resource" else "more of a resource"
        return PendingReason(
            f"it can never start: it asks for {more} than its {whose} allows a job ({bare})", fix
        )
    return PendingReason(f"waiting: a limit of its {whose} is reached ({bare})")
