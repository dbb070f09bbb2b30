"""Reasons why a job waits, as Slurm writes them, and what a user can do where waiting does not help.

The names are those of `job_state_reason_string` (src/common/job_state_reason.c; before 23.11
`job_reason_string` in src/common/slurm_protocol_defs.c) and of the texts that slurmctld puts into
`state_desc`; versions and commands write blanks as underscores, and some append names of nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MAINTENANCE = "reserved for maintenance"


@dataclass(frozen=True, slots=True)
class PendingReason:
    """The meaning of a reason."""

    text: str
    """A sentence's beginning, lower case; empty where Slurm gives no reason."""
    fix: str = ""
    """What to change; empty where nothing need be done."""
    stuck: bool = False
    """Whether the job does not start unless somebody does something."""
    unavailable_nodes: str = ""
    """The nodes that it needs and cannot get, in Slurm's notation."""


def _stuck(text: str, fix: str) -> PendingReason:
    return PendingReason(text, fix, stuck=True)


_RELEASE = "`scontrol release JOB` lets it go on; first see in its log why it failed."
_FEWER = "Cancel it and submit with fewer --nodes, or with another --qos or --account."
_LESS_MEMORY = "Cancel it and submit with less memory (`--sbatch-arg=--mem=…`)."
_SHORTER = "Cancel it and submit with a shorter --time, or `scontrol update job=JOB timelimit=…`."
_SHORTER_OR_FEWER = "Cancel it and submit with a shorter --time or fewer --nodes."
_ELSEWHERE = "Cancel it and submit to another partition, or ask the site when this one opens."
_OTHER_RESERVATION = "Cancel it and submit without --reservation, or with another one."
_REQUEUED = PendingReason("waiting: it failed and was requeued; it starts again by itself")
_RESERVATION_GONE = _stuck("held: its reservation was deleted or has ended", _OTHER_RESERVATION)
_POWER = PendingReason("waiting for power: the cluster is at its power limit")

_EXACT: dict[str, PendingReason] = {
    "none": PendingReason(""),
    "null": PendingReason(""),
    "noreason": PendingReason(""),
    "priority": PendingReason("waiting: jobs of higher priority come first"),
    "resources": PendingReason("next in line: waiting for nodes to become free"),
    "begintime": PendingReason("waiting for its begin time (a requeued job waits two minutes)"),
    "dependency": PendingReason("waiting for the job it depends on"),
    "dependencyneversatisfied": _stuck(
        "will never start: a job it depends on failed", "Cancel it; resume or submit the run again."
    ),
    "reservation": PendingReason("waiting for its reservation to begin"),
    "reservationdeleted": _RESERVATION_GONE,
    "resvdeleted": _RESERVATION_GONE,
    "reservationinvalid": _stuck("held: its reservation is no longer valid", _OTHER_RESERVATION),
    "licenses": PendingReason("waiting for a license"),
    "schedulerdefer": PendingReason("waiting: the scheduler has deferred it"),
    "scheddefer": PendingReason("waiting: the scheduler has deferred it"),
    "cleaning": PendingReason("waiting: its former run is being cleaned up"),
    "prolog": PendingReason("its nodes are being prepared"),
    "nodedown": PendingReason("waiting: a node it needs is down"),
    "frontenddown": PendingReason("waiting: a front end of the cluster is down"),
    "jobarraytasklimit": PendingReason("waiting for other tasks of its array"),
    "powernotavail": _POWER,
    "powerreserved": _POWER,
    "maxpoweredupnodes": _POWER,
    "burstbufferresources": PendingReason("waiting for space in the burst buffer"),
    "burstbufferstagein": PendingReason("waiting: its files are being staged in"),
    "burstbufferoperation": _stuck(
        "held: an operation of its burst buffer failed",
        "Ask the site's support, then `scontrol release JOB`.",
    ),
    "nvidiaimexchannels": PendingReason("waiting for a channel between the GPUs of several nodes"),
    "mpiportsbusy": PendingReason("waiting: the ports that its steps need are in use"),
    "fedjoblock": PendingReason("waiting for the clusters of the federation to agree on it"),
    "constraints": PendingReason("waiting: no node fits its request at the moment"),
    "joblaunchfailure": _REQUEUED,
    "nonzeroexitcode": _REQUEUED,
    "raisedsignal": _REQUEUED,
    "timelimit": _REQUEUED,
    "inactivelimit": _REQUEUED,
    "outofmemory": _REQUEUED,
    "systemfailure": PendingReason("waiting after a failure of the system"),
    "partitiondown": _stuck("waiting: the partition is closed", _ELSEWHERE),
    "partitioninactive": _stuck("waiting: the partition is closed (inactive)", _ELSEWHERE),
    "partitiontimelimit": _stuck("will never start: its time limit is above the partition's", _SHORTER),
    "partitionnodelimit": _stuck(
        "will never start: it requests more or fewer nodes than the partition allows", _FEWER
    ),
    "partitionconfig": _stuck("will never start: the partition does not take such jobs", _ELSEWHERE),
    "badconstraints": _stuck(
        "will never start: no node of the partition fits the request",
        "Cancel it; `distill-tui detect` lists what nodes have (GPUs, memory, features).",
    ),
    "invalidaccount": _stuck(
        "will never start: its account is no longer valid", "Cancel it and submit with another --account."
    ),
    "invalidqos": _stuck(
        "will never start: its QoS is no longer valid", "Cancel it and submit with another --qos."
    ),
    "qosnotallowed": _stuck(
        "will never start: the partition or account does not allow its QoS",
        "Cancel it and submit with another --qos or --partition.",
    ),
    "accountnotallowed": _stuck(
        "will never start: the partition does not allow its account",
        "Cancel it and submit with another --account or --partition.",
    ),
    "maxmemperlimit": _stuck(
        "will never start: it requests more memory than the partition allows (per CPU or node)", _LESS_MEMORY
    ),
    "deadline": _stuck("will never start: its deadline has passed", "Cancel it and submit it again."),
    "jobheldadmin": _stuck("held by the site", "Ask the site's support; only they can release it."),
    "jobhelduser": _stuck(
        "held by you; release it with `scontrol release`", "`scontrol release JOB` lets it go on."
    ),
    "jobholdmaxrequeue": _stuck("held: it was requeued as often as the site allows", _RELEASE),
    "qosusagethreshold": PendingReason("waiting: the use of its QoS is above its threshold"),
}
_DIMENSIONS = (
    (r"minutes|mins", "more minutes of a resource", _SHORTER_OR_FEWER),
    (r"wall|duration", "more time", _SHORTER),
    (r"gres|gpu", "more GPUs", _FEWER),
    (r"mem", "more memory", _LESS_MEMORY),
    (r"cpu|billing|tres|core", "more CPUs", _FEWER),
    (r"node", "more nodes", _FEWER),
)
_BUDGET = re.compile(r"(?:qos|assoc)grp(?:wall|\w*minutes)")
"""Limits of what a group may use up in all; those of the jobs that run now (`RunMinutes`) pass."""


def explain_reason(reason: str) -> PendingReason:
    """Return the meaning of a reason as squeue prints it, with or without parentheses."""
    bare = _bare(reason)
    key = _key(bare.partition(",")[0].partition(":")[0])
    if key in _EXACT:
        return _EXACT[key]
    for rule in (_reservation, _held, _nodes, _limits):
        match = rule(key, bare)
        if match is not None:
            return match
    return PendingReason(f"waiting ({bare})" if bare else "")


def for_job(explained: PendingReason, job: str) -> PendingReason:
    """Return an explanation whose commands name the job."""
    return replace(explained, fix=explained.fix.replace(" JOB", f" {job}").replace("=JOB", f"={job}"))


def _bare(reason: str) -> str:
    """Return a reason without the parentheses around it; those within stay (`ReqNodeNotAvail(n1)`)."""
    bare = reason.strip()
    while bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1].strip()
    return bare


def _key(text: str) -> str:
    return re.sub(r"[\s_]+", "", text.partition("(")[0]).lower()


def _reservation(_: str, bare: str) -> PendingReason | None:
    """Explain `Reservation NAME was deleted` and `… is invalid` (src/slurmctld/reservation.c)."""
    whole = _key(bare)
    if re.fullmatch(r"reservation.+wasdeleted", whole):
        return _RESERVATION_GONE
    if re.fullmatch(r"reservation.+isinvalid", whole):
        return _EXACT["reservationinvalid"]
    return None


def _held(_: str, bare: str) -> PendingReason | None:
    """Explain the ways to be held, such as `launch failed requeued held`."""
    whole = _key(bare)
    if not re.search(r"held|(?<!thres)hold", whole):
        return None
    if "launchfail" in whole:
        return _stuck("held: it could not be launched on its nodes", _RELEASE)
    if "userenv" in whole:
        return _stuck(
            "held: your login environment could not be read on the node",
            "See that your login shell's start files end quickly, then `scontrol release JOB`.",
        )
    if "requeue" in whole:
        return _stuck("held: it was requeued and is not started again by itself", _RELEASE)
    return _stuck(f"held ({bare})", "`scontrol release JOB` lets it go on.")


def is_maintenance(reason: str) -> bool:
    """Return whether a job waits for a maintenance to pass: `ReqNodeNotAvail, Reserved for maintenance`."""
    key = re.sub(r"[\s_]+", "", _bare(reason)).lower()
    return "reservedformaintenance" in key or "maintenancereservation" in key


def _nodes(key: str, bare: str) -> PendingReason | None:
    """Explain nodes that cannot be had: reserved for maintenance, or down, drained or reserved."""
    if is_maintenance(bare):
        return PendingReason(
            f"waiting: its nodes are {MAINTENANCE} before it would end; a shorter --time may start before it",
            "`t` in the wizard, or `submit --test-only`, asks Slurm which --time would start before it.",
        )
    if not key.startswith(("reqnodenotavail", "nodesrequired", "unavailablenodes")):
        return None
    if "forotherjob" in re.sub(r"[\s_]+", "", bare).lower():
        return PendingReason("waiting: nodes it needs may be reserved for another job")
    match = re.search(r"Unavailable(?:[ _]?Nodes)?:\s*([\w.,\[\]-]+)", bare)
    names = match[1].strip(",") if match is not None else ""
    which = f" ({names})" if names else ""
    text = f"waiting: nodes it needs{which} are down, drained or reserved"
    # Slurm's bare reason leaves open why; where it names nodes, no maintenance is meant.
    return PendingReason(text if names else f"{text} (e.g. for maintenance)", unavailable_nodes=names)


def _limits(key: str, bare: str) -> PendingReason | None:
    """Explain limits of a QoS (`QOS…`), of an account (`Assoc…`), and of an account or user (`Max…Per…`)."""
    if not key.startswith(("qos", "assoc", "max", "accountingpolicy")):
        return None
    whose = "account" if key.startswith(("assoc", "accounting")) else "QoS"
    if _BUDGET.match(key) and "run" not in key:
        return _stuck(
            f"the budget of the {whose} is used up ({bare})",
            "Cancel it and submit with another --account, or wait until the project's budget is renewed.",
        )
    if key.startswith("qosmin") or "notsatisfied" in key:
        return _stuck(
            f"will never start: it requests less than the {whose} demands ({bare})",
            "Cancel it and submit with more --nodes, or with another --qos.",
        )
    per_node = "pernode" in key
    if re.search(r"perjob|maxwall", key) or per_node:
        what = key.replace("pernode", "") if per_node else key.replace("perjob", "").removesuffix("limit")
        more, fix = next(
            ((more, fix) for pattern, more, fix in _DIMENSIONS if re.search(pattern, what)),
            ("more of a resource", _FEWER),
        )
        on_a_node = " on a node" if per_node else ""
        return _stuck(
            f"will never start: it requests {more} than the {whose} allows{on_a_node} ({bare})", fix
        )
    whose = f"{whose} for each user" if "peruser" in key else whose
    whose = f"{whose} for each account" if "peraccount" in key else whose
    return PendingReason(f"waiting: a limit of the {whose} is reached ({bare})")
