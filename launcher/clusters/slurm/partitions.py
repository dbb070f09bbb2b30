"""Partitions, and the limits of the QoS behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.clusters.inventory import (
    NO_GPUS,
    NO_LIMITS,
    UNKNOWN_CPUS,
    Cpus,
    Gpus,
    Mix,
    Partition,
    QosLimits,
)
from launcher.clusters.slurm.gres import gpus_of, read_gres
from launcher.clusters.slurm.node_states import NodeUse, node_use
from launcher.clusters.slurm.parse import (
    ParseError,
    Table,
    listed,
    read_duration,
    read_records,
    read_table,
    whole,
)

SINFO_FORMAT = "%P|%a|%l|%D|%G|%c|%X|%Y|%T"
SINFO_COLUMNS = ("PARTITION", "AVAIL", "TIMELIMIT", "NODES", "GRES", "CPUS", "SOCKETS", "CORES", "STATE")
QOS_FORMAT = "Name,MaxWall,MaxTRES,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MinTRES"
QOS_COLUMNS = ("Name", "MaxWall", "MaxTRES", "MaxTRESPU", "MaxJobsPU", "MaxSubmitPU", "MinTRES")


@dataclass(frozen=True, slots=True)
class Qos:
    """Limits of a quality of service; None where it has none."""

    name: str
    max_time_s: int | None = None
    max_nodes: int | None = None
    max_nodes_user: int | None = None
    max_jobs_user: int | None = None
    limits: QosLimits = NO_LIMITS
    """What one job can get."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A row of sinfo: nodes of a partition that are alike."""

    name: str
    default: bool
    available: str
    max_time_s: int | None
    nodes: int
    gpus: Gpus
    cpus: Cpus = UNKNOWN_CPUS
    use: NodeUse | None = None


def read_sinfo(text: str, columns: Sequence[str] | None = SINFO_COLUMNS) -> tuple[list[PartitionRow], Table]:
    """Read sinfo's rows; lines that are none are in the table's `unread`.

    Raises:
        ParseError: the text is not a list of partitions.
    """
    if columns == SINFO_COLUMNS:
        text = "\n".join(_with_last(line, SINFO_COLUMNS) for line in text.splitlines())
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
        try:
            gpus = gpus_of(read_gres(row.get("GRES", "")))
        except ParseError:  # the partition is there all the same
            unread.append(" ".join(row.values()))
            gpus = NO_GPUS
        rows.append(
            PartitionRow(
                name=name.rstrip("*"),
                default=name.endswith("*"),
                available=available,
                max_time_s=read_duration(row.get("TIMELIMIT", "")),
                nodes=nodes,
                gpus=gpus,
                cpus=_cpus(row),
                use=node_use(row.get("STATE", "")),
            )
        )
    return rows, Table(table.rows, tuple(unread))


def _with_last(line: str, columns: Sequence[str]) -> str:
    """Return a line with an empty last cell where it ends before that."""
    return line + "|" if line.count("|") == len(columns) - 2 else line


def _cpus(row: Mapping[str, str]) -> Cpus:
    """Read a node's processors; a `+` after a number says that some nodes have more."""
    cpus, sockets, cores = (whole(row.get(name, "").rstrip("+")) for name in ("CPUS", "SOCKETS", "CORES"))
    return Cpus(cpus, sockets * cores if sockets and cores else None)


def read_qos(text: str, columns: Sequence[str] | None = QOS_COLUMNS) -> dict[str, Qos]:
    """Read `sacctmgr show qos`.

    Raises:
        ParseError: the text is not a list of QoS.
    """
    if columns == QOS_COLUMNS:
        text = "\n".join(_with_last(line, QOS_COLUMNS) for line in text.splitlines())
    qos_by_name = {}
    for row in read_table(text, columns, what="list of QoS").rows:
        row = {key.lower(): value for key, value in row.items()}
        name = row.get("name", "")
        job, user, least = (tres(row.get(column, "")) for column in ("maxtres", "maxtrespu", "mintres"))
        qos_by_name[name] = Qos(
            name=name,
            max_time_s=read_duration(row.get("maxwall", "")),
            max_nodes=job.get("node"),
            max_nodes_user=user.get("node"),
            max_jobs_user=whole(row.get("maxjobspu", "")),
            limits=QosLimits(
                max_time_s=read_duration(row.get("maxwall", "")),
                max_nodes=_narrower(job.get("node"), user.get("node")),
                max_gpus=_narrower(_gpus_in(job), _gpus_in(user)),
                max_cpus=_narrower(job.get("cpu"), user.get("cpu")),
                min_nodes=least.get("node"),
                min_gpus=_gpus_in(least),
            ),
        )
    return qos_by_name


def tres(text: str) -> dict[str, int]:
    """Return the plain counts of a TRES list: `cpu=8,mem=10G,node=2` -> cpu and node."""
    counts = {}
    for entry in text.split(","):
        name, _, value = entry.partition("=")
        if value.isdecimal():
            counts[name] = int(value)
    return counts


def _gpus_in(counts: Mapping[str, int]) -> int | None:
    """Return the GPUs of a TRES list: of all types, else of the types that it names."""
    typed = [count for name, count in counts.items() if name.startswith("gres/gpu:")]
    return counts.get("gres/gpu", sum(typed) if typed else None)


def merge(rows: Iterable[PartitionRow], records: Sequence[Mapping[str, str]]) -> list[Partition]:
    """Make partitions of sinfo's rows (several a partition) and scontrol's records, in sinfo's order."""
    nodes: dict[str, Counter[Gpus]] = {}
    cpus: dict[str, Counter[Cpus]] = {}
    uses: dict[str, Counter[NodeUse | None]] = {}
    first: dict[str, PartitionRow] = {}
    for row in rows:
        uses.setdefault(row.name, Counter())[row.use] += row.nodes
        first.setdefault(row.name, row)
        nodes.setdefault(row.name, Counter())[row.gpus] += row.nodes
        cpus.setdefault(row.name, Counter())[row.cpus] += row.nodes
    details = {record.get("PartitionName", ""): record for record in records}
    return [
        _with_node_uses(
            _partition(row, nodes[name], details.get(name, {}), cpus[name].most_common(1)[0][0]), uses[name]
        )
        for name, row in first.items()
    ]


def _partition(row: PartitionRow, nodes: Counter[Gpus], record: Mapping[str, str], cpus: Cpus) -> Partition:
    gpu_counts = sorted(nodes.items(), key=lambda item: (-item[1], -item[0].count, item[0].type))
    qos = record.get("QoS", "")
    return Partition(
        name=row.name,
        default=row.default or record.get("Default") == "YES",
        state=(record.get("State") or row.available).lower(),
        nodes=nodes.total(),
        mix=tuple(Mix(gpus, count) for gpus, count in gpu_counts if count),
        max_time_s=read_duration(record["MaxTime"]) if "MaxTime" in record else row.max_time_s,
        default_time_s=read_duration(record.get("DefaultTime", "")),
        max_nodes=whole(record.get("MaxNodes", "")),
        min_nodes=whole(record.get("MinNodes", "")),
        qos=None if qos in ("", "N/A", "(null)") else qos,
        allowed_qos=listed(record.get("AllowQos", "")),
        denied_qos=listed(record.get("DenyQos", "")) or (),
        allowed=listed(record.get("AllowAccounts", "")),
        denied=listed(record.get("DenyAccounts", "")) or (),
        cpus=cpus,
    )


def _with_node_uses(partition: Partition, uses: Counter[NodeUse | None]) -> Partition:
    """Return a partition with how many of its nodes can be had; unknown where a row does not tell."""
    if uses[None]:
        return partition
    return replace(partition, nodes_down=uses[NodeUse.DOWN], nodes_usable=uses[NodeUse.USABLE])


def with_qos_limits(partition: Partition, qos: Mapping[str, Qos]) -> Partition:
    """Return a partition with the narrower of its own limits and its QoS's."""
    if partition.qos is None or partition.qos not in qos:
        return partition
    limits = qos[partition.qos].limits
    least = [limit for limit in (partition.min_nodes, limits.least_nodes_of(partition)) if limit is not None]
    return replace(
        partition,
        max_time_s=_narrower(partition.max_time_s, limits.max_time_s),
        max_nodes=_narrower(partition.max_nodes, limits.nodes_of(partition)),
        min_nodes=max(least, default=None),
    )


def _narrower(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def read_partition_records(text: str) -> list[dict[str, str]]:
    """Read `scontrol show partition`.

    Raises:
        ParseError: the text holds no records.
    """
    return read_records(text, what="list of partitions")
