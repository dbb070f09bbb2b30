"""Partitions, and the limits of the QoS behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.clusters.slurm.gres import NO_GPUS, Gpus, gpus_of, read_gres
from launcher.clusters.slurm.parse import Table, listed, parse_duration, read_records, read_table, whole

SINFO_FORMAT = "%P|%a|%l|%D|%G|%c|%X|%Y"
SINFO_COLUMNS = ("PARTITION", "AVAIL", "TIMELIMIT", "NODES", "GRES", "CPUS", "SOCKETS", "CORES")
QOS_FORMAT = "Name,MaxWall,MaxTRES,MaxTRESPU,MaxJobsPU,MaxSubmitPU"
QOS_COLUMNS = ("Name", "MaxWall", "MaxTRES", "MaxTRESPU", "MaxJobsPU", "MaxSubmitPU")


@dataclass(frozen=True, slots=True)
class Mix:
    """How many nodes of a partition have which GPUs."""

    gpus: Gpus
    nodes: int


@dataclass(frozen=True, slots=True)
class Cpus:
    """The processors of a node; None where sinfo does not tell."""

    cpus: int | None = None
    """What Slurm hands out: hardware threads, or cores."""
    cores: int | None = None
    """Cores, which sites charge for."""


@dataclass(frozen=True, slots=True)
class Qos:
    """Limits of a quality of service; None where it has none."""

    name: str
    max_time_s: int | None = None
    max_nodes: int | None = None
    max_nodes_user: int | None = None
    max_jobs_user: int | None = None
    max_submitted_user: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. None stands for unknown, never for unlimited."""

    name: str
    default: bool
    state: str
    """As Slurm says: up, down, drain or inactive."""
    nodes: int
    mix: tuple[Mix, ...] = ()
    """Most nodes first."""
    max_time_s: int | None = None
    default_time_s: int | None = None
    max_nodes: int | None = None
    qos: str | None = None
    allowed: tuple[str, ...] | None = None
    """Accounts that may use it; None for all."""
    denied: tuple[str, ...] = ()
    cpus: Cpus = Cpus()
    """Those that most of its nodes have."""

    @property
    def gpus(self) -> Gpus:
        """The GPUs that most of its nodes have; a node with a broken one must not speak for all."""
        return self.mix[0].gpus if self.mix else NO_GPUS

    def admits(self, account: str) -> bool:
        """Return whether the partition lets an account in (associations aside)."""
        return (self.allowed is None or account in self.allowed) and account not in self.denied


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """What sinfo says of those nodes of a partition that look alike."""

    name: str
    default: bool
    available: str
    max_time_s: int | None
    nodes: int
    gpus: Gpus
    cpus: Cpus = Cpus()


def read_sinfo(text: str, columns: Sequence[str] | None = SINFO_COLUMNS) -> tuple[list[PartitionRow], Table]:
    """Read sinfo's rows; lines that are none are in the table's `unread`.

    Raises:
        CannotReadError: it is not what sinfo prints.
    """
    table = read_table(text, columns, what="list of partitions")
    rows: list[PartitionRow] = []
    unread = list(table.unread)
    for row in table.rows:
        name = row.get("PARTITION", "")
        available = row.get("AVAIL", "up").lower()
        nodes = whole(row.get("NODES", "0"))
        if not name or available not in ("up", "down", "drain", "inact") or nodes is None:
            unread.append(" ".join(row.values()))
            continue
        rows.append(
            PartitionRow(
                name=name.rstrip("*"),
                default=name.endswith("*"),
                available=available,
                max_time_s=parse_duration(row.get("TIMELIMIT", "")),
                nodes=nodes,
                gpus=gpus_of(read_gres(row.get("GRES", ""))),
                cpus=_cpus(row),
            )
        )
    return rows, Table(table.rows, tuple(unread))


def _cpus(row: Mapping[str, str]) -> Cpus:
    """Read a node's processors; a `+` after a number says that some nodes have more."""
    cpus, sockets, cores = (whole(row.get(name, "").rstrip("+")) for name in ("CPUS", "SOCKETS", "CORES"))
    return Cpus(cpus, sockets * cores if sockets and cores else None)


def read_qos(text: str, columns: Sequence[str] | None = QOS_COLUMNS) -> dict[str, Qos]:
    """Read `sacctmgr show qos`.

    Raises:
        CannotReadError: it is not what sacctmgr prints.
    """
    found = {}
    for row in read_table(text, columns, what="list of QoS").rows:
        row = {key.lower(): value for key, value in row.items()}
        name = row.get("name", "")
        found[name] = Qos(
            name=name,
            max_time_s=parse_duration(row.get("maxwall", "")),
            max_nodes=tres(row.get("maxtres", "")).get("node"),
            max_nodes_user=tres(row.get("maxtrespu", "")).get("node"),
            max_jobs_user=whole(row.get("maxjobspu", "")),
            max_submitted_user=whole(row.get("maxsubmitpu", "")),
        )
    return found


def tres(text: str) -> dict[str, int]:
    """Return the plain counts of a TRES list: `cpu=8,mem=10G,node=2` -> cpu and node."""
    counts = {}
    for entry in text.split(","):
        name, _, value = entry.partition("=")
        if value.isdecimal():
            counts[name] = int(value)
    return counts


def merge(rows: Iterable[PartitionRow], records: Sequence[Mapping[str, str]]) -> list[Partition]:
    """Make partitions of sinfo's rows (several a partition) and scontrol's records, in sinfo's order."""
    nodes: dict[str, Counter[Gpus]] = {}
    cpus: dict[str, Counter[Cpus]] = {}
    first: dict[str, PartitionRow] = {}
    for row in rows:
        first.setdefault(row.name, row)
        nodes.setdefault(row.name, Counter())[row.gpus] += row.nodes
        cpus.setdefault(row.name, Counter())[row.cpus] += row.nodes
    details = {record.get("PartitionName", ""): record for record in records}
    return [
        _partition(row, nodes[name], details.get(name, {}), cpus[name].most_common(1)[0][0])
        for name, row in first.items()
    ]


def _partition(row: PartitionRow, nodes: Counter[Gpus], record: Mapping[str, str], cpus: Cpus) -> Partition:
    order = sorted(nodes.items(), key=lambda item: (-item[1], -item[0].count, item[0].type))
    qos = record.get("QoS", "")
    return Partition(
        name=row.name,
        default=row.default or record.get("Default") == "YES",
        state=(record.get("State") or row.available).lower(),
        nodes=nodes.total(),
        mix=tuple(Mix(gpus, count) for gpus, count in order if count),
        max_time_s=parse_duration(record["MaxTime"]) if "MaxTime" in record else row.max_time_s,
        default_time_s=parse_duration(record.get("DefaultTime", "")),
        max_nodes=whole(record.get("MaxNodes", "")),
        qos=None if qos in ("", "N/A", "(null)") else qos,
        allowed=listed(record.get("AllowAccounts", "")),
        denied=listed(record.get("DenyAccounts", "")) or (),
        cpus=cpus,
    )


def limited(partition: Partition, qos: Mapping[str, Qos]) -> Partition:
    """Return a partition with the limits of its QoS, the narrower of two each."""
    if partition.qos is None or partition.qos not in qos:
        return partition
    behind = qos[partition.qos]
    nodes = [limit for limit in (behind.max_nodes, behind.max_nodes_user) if limit is not None]
    return Partition(
        **{
            **{name: getattr(partition, name) for name in Partition.__dataclass_fields__},
            "max_time_s": _narrower(partition.max_time_s, behind.max_time_s),
            "max_nodes": _narrower(partition.max_nodes, min(nodes, default=None)),
        }
    )


def _narrower(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def read_partition_records(text: str) -> list[dict[str, str]]:
    """Read `scontrol show partition`."""
    return read_records(text, what="list of partitions")
