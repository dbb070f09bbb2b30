"""Checks of a node: GPUs, network, room, shared storage; and between nodes: names, ports, all-reduce."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from launcher.doctor.library_checks import results
from launcher.doctor.machine_checks import OPEN_FILES
from launcher.doctor.measured import mapping, rows, text, whole
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.storage.size import gigabytes

if TYPE_CHECKING:
    from launcher.doctor.measured import NodeResult
    from launcher.doctor.subject import Subject

AGAIN = "distill-tui doctor --on devel"
BUSY_MIB = 1000
"""An idle GPU of a driver in persistence mode has some hundred MiB in use."""
LEAST_SHM_BYTES = 8_000_000_000
"""NCCL and Ray's object store take it: NeMo-RL's containers get 64 GB, small nodes work with less."""
LEAST_TMP_BYTES = 5_000_000_000
"""Ray's session with logs and spilled objects; its disk monitor stops at 95 %."""
CLOCK_S = 30.0
"""srun starts the measurements within seconds; more is a clock that is wrong."""


# ------------------------------------------------------------ GPUs


def gpus_are_there(subject: Subject) -> Verdict | None:
    """D46: a node shows the GPUs that the job asks for."""
    asked, lines = subject.size.gpus_per_node, []
    for node in results(subject):
        if node.data.get("gpu") is None:
            if asked:
                return failed(f"{node.name} has no nvidia-smi", _exclude(node))
            return None
        if node.part("gpu").get("failed"):
            return failed(f"nvidia-smi fails on {node.name}", _exclude(node))
        if asked is not None and len(node.gpus) < asked:
            return failed(
                f"{node.name} shows {len(node.gpus)} GPUs, the job asks for {asked}", _exclude(node)
            )
        kinds = {f"{text(gpu.get('name'))} {text(gpu.get('memory'))} MiB" for gpu in node.gpus}
        lines.append(f"{node.name}: {len(node.gpus)} x {', '.join(sorted(kinds))}")
    return passed("; ".join(lines)) if lines else None


def _exclude(node: NodeResult) -> str:
    return f"distill-tui submit FILE --sbatch-arg=--exclude={node.name}"


def gpus_are_whole(subject: Subject) -> Verdict | None:
    """D47: GPUs are not cut into MIG instances: NCCL connects no two instances of one GPU."""
    cut = [node for node in results(subject) if _cut(node)]
    if cut:
        text_ = (
            f"MIG is on at {', '.join(node.name for node in cut)}: a run gets slices, and NCCL fails on them"
        )
        return failed(text_, "distill-tui detect", changes="")
    return _of_gpus(subject, "MIG is off")


def _cut(node: NodeResult) -> bool:
    enabled = any(text(gpu.get("mig")).lower() == "enabled" for gpu in node.gpus)
    return enabled or bool(whole(node.part("gpu").get("instances")))


def gpus_have_no_errors(subject: Subject) -> Verdict | None:
    """D48: no GPU has uncorrectable memory errors."""
    broken = [
        (node, f"GPU {text(gpu.get('index'))} of {node.name}: {whole(gpu.get('ecc'))} uncorrectable errors")
        for node in results(subject)
        for gpu in node.gpus
        if (whole(gpu.get("ecc")) or 0) > 0
    ]
    if broken:
        return failed("; ".join(line for _, line in broken), _exclude(broken[0][0]))
    return _of_gpus(subject, "no uncorrectable error since the driver was loaded")


def gpus_are_idle(subject: Subject) -> Verdict | None:
    """D49: nothing else runs on the GPUs of a node that is the job's alone."""
    busy = []
    for node in results(subject):
        names = [f"{text(row.get('program'))} ({text(row.get('pid'))})" for row in _processes(node)]
        used = [gpu for gpu in node.gpus if (whole(gpu.get("used")) or 0) > BUSY_MIB]
        if names or used:
            memory = ", ".join(f"GPU {text(gpu.get('index'))}: {text(gpu.get('used'))} MiB" for gpu in used)
            busy.append((node, f"{node.name}: {'; '.join(filter(None, (', '.join(names), memory)))}"))
    if busy:
        return failed(f"in use before the run: {'; '.join(line for _, line in busy)}", _exclude(busy[0][0]))
    return _of_gpus(subject, "no process, no memory in use")


def _processes(node: NodeResult) -> list[dict[str, object]]:
    return [dict(row) for row in rows(node.part("gpu").get("processes")) if whole(row.get("pid")) is not None]


def gpus_are_connected(subject: Subject) -> Verdict | None:
    """D50: the GPUs of a node reach one another without the processors between them."""
    every: set[str] = set()
    for node in results(subject):
        if len(node.gpus) < 2:
            continue
        links = _links(text_lines(node.part("gpu").get("topology")))
        every |= links
        slow = links & {"SYS", "NODE"}
        if slow and not any(link.startswith("NV") for link in links):
            text_ = f"no NVLink on {node.name}: GPUs are connected through the processors"
            return warned(f"{text_} ({', '.join(sorted(slow))})", "nvidia-smi topo -m")
    return passed(f"links between GPUs: {', '.join(sorted(every))}") if every else None


def text_lines(value: object) -> list[str]:
    """Return the clean lines of a text."""
    return [text(line) for line in str(value or "").splitlines()]


def _links(lines: list[str]) -> set[str]:
    """Read `nvidia-smi topo -m`: a header, then a row for each device; `X` is itself."""
    first = next((number for number, line in enumerate(lines) if "GPU0" in line), len(lines))
    header = lines[first].split() if first < len(lines) else []
    count = sum(re.fullmatch(r"GPU\d+", word) is not None for word in header)
    links = set()
    for line in lines[first + 1 :]:
        words = line.split()
        if words and re.fullmatch(r"GPU\d+", words[0]) and len(words) > count:
            links |= {word for word in words[1 : count + 1] if word != "X"}
    return links


def _of_gpus(subject: Subject, evidence: str) -> Verdict | None:
    return passed(evidence) if any(node.gpus for node in results(subject)) else None


# ------------------------------------------------------------ network


def interfaces_are_there(subject: Subject) -> Verdict | None:
    """D51: the interfaces that NCCL and Gloo are told to use exist on all nodes, with an address."""
    nodes = results(subject)
    if not nodes:
        return None
    suggested = _common_interface(nodes)
    for node in nodes:
        have = node.part("network", "interfaces")
        for variable, value in node.part("machine", "socket_interfaces").items():
            if not any(
                _names(text(value), name) and mapping(facts).get("address") for name, facts in have.items()
            ):
                command = f"export {variable}={suggested or 'INTERFACE'}"
                names = ", ".join(
                    sorted(name for name, facts in have.items() if mapping(facts).get("address"))
                )
                text_ = (
                    f"{variable}={text(value)} names no interface with an address on {node.name} ({names})"
                )
                return failed(text_, command, changes="your shell")
    defaults = {text(node.part("network").get("default")) for node in nodes}
    chosen = nodes[0].part("machine", "socket_interfaces")
    if len(defaults) > 1 and not chosen:
        text_ = f"the default route leaves by different interfaces: {', '.join(sorted(defaults))}"
        return warned(text_, f"export GLOO_SOCKET_IFNAME={suggested or 'INTERFACE'}", changes="your shell")
    using = ", ".join(f"{name}={text(value)}" for name, value in chosen.items())
    variables = "/".join(("GLOO_", "NCCL_", "TP_"))
    return passed(using or f"{variables}SOCKET_IFNAME={suggested or sorted(defaults)[0]} would do")


def _names(value: str, interface: str) -> bool:
    """Return whether a *_SOCKET_IFNAME names an interface: prefixes, `=exact`, `^not`."""
    if value.startswith("^"):
        return not any(interface.startswith(part) for part in value[1:].split(","))
    if value.startswith("="):
        return interface in value[1:].split(",")
    return any(interface.startswith(part) for part in value.split(",") if part)


def _common_interface(nodes: list[NodeResult]) -> str:
    """Return the interface that all nodes have with an address: InfiniBand first, else the default one."""
    common: set[str] | None = None
    for node in nodes:
        have = {
            name
            for name, facts in node.part("network", "interfaces").items()
            if mapping(facts).get("address") and name != "lo"
        }
        common = have if common is None else common & have
    fast = sorted(name for name in common or () if name.startswith("ib"))
    default = text(nodes[0].part("network").get("default"))
    return next(iter(fast), default if default in (common or ()) else next(iter(sorted(common or ())), ""))


def infiniband_is_up(subject: Subject) -> Verdict | None:
    """D52: the InfiniBand ports of a node are active."""
    down, up = [], 0
    for node in results(subject):
        for port in rows(node.part("network").get("infiniband")):
            if text(port.get("state")).upper() == "ACTIVE":
                up += 1
            else:
                down.append((node, f"{text(port.get('port'))} of {node.name} is {text(port.get('state'))}"))
    if down:
        judge = failed if not up else warned
        return judge("; ".join(line for _, line in down), _exclude(down[0][0]))
    return passed(counted(up, "active port")) if up else None


def names_resolve(subject: Subject) -> Verdict | None:
    """D53: nodes find one another by name, on the network that the launcher uses."""
    nodes, suffix = results(subject), subject.site.host_suffix
    for node in nodes:
        names = node.part("network", "names")
        for name, addresses in names.items():
            if addresses or (suffix and not name.endswith(suffix)):
                continue
            command = f"getent ahostsv4 {name}"
            if suffix:
                return failed(
                    f"{name} has no address on {node.name} (RAY_BARE_HOST_SUFFIX={suffix})", command
                )
            return failed(f"{name} has no address on {node.name}", command)
        if len(nodes) > 1 and _only_loopback(names, {item.name for item in nodes} - {node.name}):
            return failed(f"other nodes' names lead {node.name} to itself (127.…)", "getent ahostsv4 NODE")
    return passed(counted(len(nodes[0].part("network", "names")), "name")) if nodes else None


def _only_loopback(names: object, others: set[str]) -> bool:
    return any(
        addresses and all(str(address).startswith("127.") for address in addresses)
        for name, addresses in mapping(names).items()
        if name in others and isinstance(addresses, list)
    )


def ports_are_open(subject: Subject) -> Verdict | None:
    """D54: a port of each node is reached from the other nodes, both ways."""
    nodes = results(subject)
    closed = [
        f"{node.name} does not reach {peer}"
        for node in nodes
        for peer, reached in node.part("peers").items()
        if reached is not True
    ]
    if closed:
        others = "GLOO_SOCKET_IFNAME" if subject.site.host_suffix else "RAY_BARE_HOST_SUFFIX"
        return failed("; ".join(closed), f"env | grep -E '{others}|_SOCKET_IFNAME'")
    count = sum(len(node.part("peers")) for node in nodes)
    return passed(f"{counted(count, 'connection')}, both ways") if count else None


def gloo_reduces(subject: Subject) -> Verdict | None:
    """D55: torch's Gloo sums a tensor over the nodes."""
    return _reduces(subject, "gloo", "GLOO_SOCKET_IFNAME")


def nccl_reduces(subject: Subject) -> Verdict | None:
    """D56: NCCL sums a tensor over the nodes' GPUs."""
    return _reduces(subject, "nccl", "NCCL_SOCKET_IFNAME")


def _reduces(subject: Subject, backend: str, variable: str) -> Verdict | None:
    nodes = [node for node in results(subject) if node.part(backend)]
    for node in nodes:
        result = node.part(backend)
        if result.get("ok") is not True:
            reason = text(result.get("error")) or "the sum is wrong"
            suggested = _common_interface(nodes) or "INTERFACE"
            return failed(f"on {node.name}: {reason}", f"export {variable}={suggested}", changes="your shell")
    if not nodes:
        return None
    seconds = max(float(node.part(backend).get("seconds") or 0) for node in nodes)
    return passed(f"4 MiB over {counted(len(nodes), 'node')} in {seconds:.1f} s with its start")


def internet_is_as_believed(subject: Subject) -> Verdict | None:
    """D60: nodes have internet, or have none, as the job's environment assumes."""
    measured = [value for node in results(subject) for value in node.part("network", "internet").values()]
    if not measured:
        return None
    online = all(value is True for value in measured)
    partition = subject.size.partition or "this partition"
    if online and subject.offline:
        text_ = f"nodes of {partition} do have internet; the job is set up for nodes without"
        return warned(text_, "distill-tui profile edit", changes=f"[partitions.{partition}] offline = false")
    if not online and not subject.offline:
        text_ = f"nodes of {partition} have no internet, and the job is set up as if they had"
        return failed(text_, "distill-tui profile edit", changes=f"[partitions.{partition}] offline = true")
    return passed("internet, as assumed" if online else "no internet, as assumed")


# ------------------------------------------------------------ room, storage, limits


def shared_memory_suffices(subject: Subject) -> Verdict | None:
    """D57: /dev/shm has room for NCCL and Ray's object store."""
    return _space(subject, "/dev/shm", LEAST_SHM_BYTES, "df -h /dev/shm")  # noqa: S108 - of a node


def node_storage_suffices(subject: Subject) -> Verdict | None:
    """D58: the node's own directory for Ray's session has room."""
    path = next((text(node.part("machine").get("tmp")) for node in results(subject)), "")
    return _space(subject, path, LEAST_TMP_BYTES, "export RAY_TMPDIR=DIRECTORY") if path else None


def _space(subject: Subject, path: str, least: int, command: str) -> Verdict | None:
    lines, short = [], []
    for node in results(subject):
        room = node.part("machine", "space", path)
        free = whole(room.get("free"))
        if free is None:
            return failed(f"there is no {path} on {node.name}", command)
        line = f"{gigabytes(free)} free on {node.name}"
        lines.append(line)
        if free < least:
            short.append(line)
    if short:
        return warned(f"{path}: {'; '.join(short)}, {gigabytes(least)} are recommended", command)
    return passed(f"{path}: {'; '.join(lines)}") if lines else None


def storage_is_shared(subject: Subject) -> Verdict | None:
    """D59: nodes read what this login node wrote."""
    nodes = results(subject)
    blind = [node.name for node in nodes if node.part("machine").get("canary") is False]
    late = sorted({text(name) for node in nodes for name in node.data.get("late") or ()})
    if blind:
        text_ = f"{', '.join(blind)} cannot read {subject.runs}"
        return failed(text_, "distill-tui settings storage.runs DIR", changes="where runs are kept")
    if late:
        return failed(f"{', '.join(late)} wrote nothing within a minute of the others", AGAIN)
    return passed(f"{subject.runs} is the same on {counted(len(nodes), 'node')}") if nodes else None


def open_files_suffice_on_nodes(subject: Subject) -> Verdict | None:
    """D62: enough files may be open at once on the nodes."""
    limits = [whole(node.part("machine").get("open_files")) for node in results(subject)]
    numbers = [limit for limit in limits if limit is not None]
    if not numbers:
        return None
    least = min(numbers)
    if 0 <= least < OPEN_FILES:
        return warned(f"at most {least:,} open files (hard limit); Ray wants {OPEN_FILES:,}", "ulimit -Hn")
    return passed(f"{least:,}" if least >= 0 else "no limit")


def clocks_agree(subject: Subject) -> Verdict | None:
    """D63: the nodes' clocks agree."""
    times = {
        node.name: float(value)
        for node in results(subject)
        if isinstance(value := node.part("machine").get("time"), int | float)
    }
    if len(times) < 2:
        return None
    first, last = min(times, key=lambda name: times[name]), max(times, key=lambda name: times[name])
    difference = times[last] - times[first]
    if difference > CLOCK_S:
        return warned(
            f"{last} is {difference:.0f} s ahead of {first}: times in logs mislead", "srun -N 2 date"
        )
    return passed(f"within {difference:.1f} s, starts included")


def nodes_were_examined(subject: Subject) -> Verdict:
    """D38: the checks of a node were made with the environments that there are now."""
    if not subject.measured:
        return unknown("what nodes have was never measured here, or with other environments", AGAIN)
    return passed(", ".join(sorted(subject.measured)))
