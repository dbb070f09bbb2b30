"""Measures what a run needs on one node of a job, and writes `doctor-HOST.json`: one process on each node.

    python3 doctor_node.py SPEC.json

Standard library only; verdicts are made elsewhere from the file. SPEC has: `out` (directory of the results,
on shared storage), `venvs` (label -> {path, imports}), `suffix` (of host names on the fast network), `tmp`
(RAY_TMPDIR), `canary` (file and its text), `internet` (HOST:PORT that a node with internet reaches),
`limit_s` (for each import); `nodes` (all names, in order) and `port` (first of three) outside a job.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PROBE = Path(__file__).resolve().parent / "doctor_probe.py"
GPU_FIELDS = (
    "index", "name", "uuid", "memory.total", "memory.used", "mig.mode.current",
    "ecc.errors.uncorrected.volatile.total", "driver_version",
)  # fmt: skip
PEERS_S = 60.0
"""How long other nodes are waited for: srun starts them within seconds of each other."""
CONNECT_S = 5.0
_HELLO = b"doctor\n"
_SIOCGIFADDR = 0x8915


def run(argv: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with a time limit."""
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def output(*argv: str) -> str | None:
    """Return what a command prints; None where there is none, or it fails or hangs."""
    try:
        done = run(argv, 30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# ---------------------------------------------------------------- the machine


def machine(spec: dict[str, Any]) -> dict[str, Any]:
    """Return limits, clock, space, headers and modules of this node."""
    tmp = spec.get("tmp") or "/tmp"  # noqa: S108 - the launcher's default
    return {
        "time": time.time(),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "space": {path: space(path) for path in ("/dev/shm", tmp)},  # noqa: S108 - what is measured
        "tmp": tmp,
        "verbs_header": Path("/usr/include/infiniband/verbs.h").exists(),
        "verbs_library": ctypes.util.find_library("ibverbs"),
        "modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        "library_path": os.environ.get("LD_LIBRARY_PATH", ""),
        "roots": {name: value for name, value in os.environ.items() if name.startswith("EBROOT")},
        "socket_interfaces": {
            name: value for name, value in os.environ.items() if name.endswith("_SOCKET_IFNAME")
        },
        "canary": canary(spec.get("canary") or {}),
    }


def space(path: str) -> dict[str, Any] | None:
    """Return the bytes of a file system."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return {"total": usage.total, "free": usage.free}


def canary(file: dict[str, str]) -> bool | None:
    """Return whether a file that the login node wrote is here, with its text; None where there is none."""
    if not file:
        return None
    try:
        return Path(file["path"]).read_text(encoding="utf-8") == file["text"]
    except OSError:
        return False


# ---------------------------------------------------------------- GPUs


def gpus() -> dict[str, Any] | None:
    """Return the GPUs as nvidia-smi lists them; None without it."""
    if shutil.which("nvidia-smi") is None:
        return None
    rows = output("nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits")
    apps = output("nvidia-smi", "--query-compute-apps=pid,gpu_uuid,used_memory,process_name",
                  "--format=csv,noheader,nounits")  # fmt: skip
    banner = output("nvidia-smi") or ""
    return {
        "gpus": table(
            rows, [field.partition(".")[0] if field != "memory.used" else "used" for field in GPU_FIELDS]
        ),
        "processes": table(apps, ["pid", "uuid", "used", "program"]),
        "instances": (output("nvidia-smi", "-L") or "").count("MIG "),
        "cuda": banner.partition("CUDA Version:")[2].split()[0] if "CUDA Version:" in banner else None,
        "topology": output("nvidia-smi", "topo", "-m"),
        "failed": rows is None,
    }


def table(text: str | None, names: list[str]) -> list[dict[str, str]]:
    """Return lines of comma-separated values by name."""
    rows = [[part.strip() for part in line.split(",")] for line in (text or "").splitlines() if line.strip()]
    return [dict(zip(names, row, strict=False)) for row in rows]


# ---------------------------------------------------------------- the network


def network(spec: dict[str, Any]) -> dict[str, Any]:
    """Return interfaces, the default route's, InfiniBand ports, names, and whether there is internet."""
    return {
        "default": default_interface(),
        "interfaces": interfaces(),
        "infiniband": infiniband(),
        "names": {name: addresses(name) for node in spec["nodes"] for name in {node, node + spec["suffix"]}},
        "internet": {target: reaches(target) for target in spec.get("internet") or ()},
        "proxy": next((name for name in ("https_proxy", "HTTPS_PROXY") if os.environ.get(name)), None),
    }


def default_interface() -> str | None:
    """Return the interface of the default route (/proc/net/route: destination 00000000)."""
    for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if len(words) > 1 and words[1] == "00000000":
            return words[0]
    return None


def interfaces() -> dict[str, dict[str, str | None]]:
    """Return each interface's state and IPv4 address."""
    result = {}
    for _, name in socket.if_nameindex():
        try:
            state = Path("/sys/class/net", name, "operstate").read_text(encoding="ascii").strip()
        except OSError:
            state = "unknown"
        result[name] = {"state": state, "address": address_of(name)}
    return result


def address_of(interface: str) -> str | None:
    """Return an interface's IPv4 address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("256s", interface[:15].encode())
        try:
            return socket.inet_ntoa(fcntl.ioctl(handle.fileno(), _SIOCGIFADDR, request)[20:24])
        except OSError:
            return None


def infiniband() -> list[dict[str, str]]:
    """Return the InfiniBand ports with their states."""
    ports = []
    for port in sorted(Path("/sys/class/infiniband").glob("*/ports/*")):
        try:
            state, rate = ((port / name).read_text(encoding="ascii").strip() for name in ("state", "rate"))
        except OSError:
            continue
        ports.append(
            {"port": f"{port.parts[-3]}/{port.name}", "state": state.rpartition(": ")[2], "rate": rate}
        )
    return ports


def addresses(name: str) -> list[str]:
    """Return the IPv4 addresses of a name."""
    try:
        return sorted({str(item[4][0]) for item in socket.getaddrinfo(name, None, socket.AF_INET)})
    except OSError:
        return []


def reaches(target: str) -> bool:
    """Return whether a TCP connection to HOST:PORT opens."""
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), CONNECT_S):
            return True
    except (OSError, ValueError):
        return False


# ---------------------------------------------------------------- other nodes


class Greeter:
    """Listener that greets whoever connects, until it is closed."""

    def __init__(self, port: int) -> None:
        self.problem = ""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("", port))
            self._socket.listen()
        except OSError as error:
            self.problem = str(error)
            return
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
                connection.sendall(_HELLO)
                connection.close()
            except OSError:
                return


def greeted_by(node: str, suffix: str, port: int) -> bool:
    """Return whether another node's listener is reached; nodes start apart, so it is tried again."""
    end = time.monotonic() + PEERS_S
    target = next((name for name in (node + suffix, node) if addresses(name)), node)
    while time.monotonic() < end:
        try:
            with socket.create_connection((target, port), CONNECT_S) as connection:
                connection.settimeout(CONNECT_S)
                return connection.recv(len(_HELLO)) == _HELLO
        except ConnectionRefusedError:
            time.sleep(1)
        except OSError:
            time.sleep(2)
    return False


def wait_for_peers(out: Path, nodes: list[str], mark: str) -> list[str]:
    """Leave a mark in the shared directory and wait for those of all nodes; return the nodes without one."""
    (out / f"{mark}-{own_name(nodes)}").touch()
    end = time.monotonic() + PEERS_S
    while missing := [node for node in nodes if not (out / f"{mark}-{node}").exists()]:
        if time.monotonic() > end:
            return missing
        os.listdir(out)  # refreshes what a network file system has cached of the directory
        time.sleep(0.3)
    return []


def own_name(nodes: list[str]) -> str:
    """Return this node's name as the job lists it."""
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    return name if name in nodes else nodes[0]


def all_reduce(spec: dict[str, Any], python: str, backend: str, port: int) -> dict[str, Any]:
    """Return the result of an all-reduce over all nodes."""
    nodes = spec["nodes"]
    rank = nodes.index(own_name(nodes))
    first = next((name for name in (nodes[0] + spec["suffix"], nodes[0]) if addresses(name)), "127.0.0.1")
    return probe(python, "reduce", backend, first, str(port), str(rank), str(len(nodes)), limit_s=120)


# ---------------------------------------------------------------- Python environments


def probe(python: str, *arguments: str, limit_s: float) -> dict[str, Any]:
    """Return what the probe prints, run by an environment's Python."""
    begun = time.monotonic()
    try:
        done = run([python, str(PROBE), *arguments], limit_s)
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {limit_s:g} s", "seconds": limit_s}
    except OSError as error:
        return {"error": f"{python}: {error.strerror}", "seconds": 0.0}
    seconds = round(time.monotonic() - begun, 2)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return {"seconds": seconds, **json.loads(line)}
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return {"error": f"{ended}: {lines[-1][:400] if lines else 'no output'}", "seconds": seconds}


def environment(venv: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """Return the imports of an environment, each in a process of its own, and its CUDA libraries."""
    python = str(Path(venv["path"], "bin", "python"))
    tried = [
        {"name": name, **probe(python, "imports", name, limit_s=limit_s)}
        for name in venv.get("imports") or ()
    ]
    return {"path": venv["path"], "imports": tried, "libraries": probe(python, "libraries", limit_s=limit_s)}


def environments(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the environments of the driver and of the workers, which are looked at side by side."""
    venvs, limit_s = spec.get("venvs") or {}, float(spec.get("limit_s") or 180)
    with ThreadPoolExecutor(max_workers=4) as pool:
        futures = {label: pool.submit(environment, venv, limit_s) for label, venv in venvs.items()}
        return {label: future.result() for label, future in futures.items()}


# ---------------------------------------------------------------- all of it


def say(text: str) -> None:
    """Print a line with the time, for who reads the job's log."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Return everything that is measured on this node."""
    out, nodes, port = Path(spec["out"]), spec["nodes"], spec["port"]
    name = own_name(nodes)
    greeter = Greeter(port)
    result: dict[str, Any] = {"schema": 1, "node": name, "machine": machine(spec), "gpu": gpus()}
    say(f"{name}: network")
    result["network"] = network(spec)
    result["late"] = wait_for_peers(out, nodes, "began")
    peers = [node for node in nodes if node != name]
    result["peers"] = {node: greeted_by(node, spec["suffix"], port) for node in peers}
    result["listener"] = greeter.problem
    say(f"{name}: Python environments")
    result["venvs"] = environments(spec)
    driver = result["venvs"].get("driver")
    if driver is not None and driver["libraries"].get("torch"):
        python = str(Path(driver["path"], "bin", "python"))
        wait_for_peers(out, nodes, "imported")
        say(f"{name}: all-reduce")
        result["gloo"] = all_reduce(spec, python, "gloo", port + 1)
        if driver["libraries"]["torch"].get("available"):
            result["nccl"] = all_reduce(spec, python, "nccl", port + 2)
    wait_for_peers(out, nodes, "ended")
    return result


def port_of(job: str) -> int:
    """Return the first of three ports of a job: 24000-24899, beside those of Ray and NeMo-RL."""
    return 24000 + 3 * (int(job) % 300 if job.isdecimal() else 299)


def main() -> int:
    """Measure, and write the result."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    names = os.environ.get("DOCTOR_NODES", "").split() or [socket.gethostname().partition(".")[0]]
    spec = {"nodes": names, "suffix": "", "port": port_of(os.environ.get("SLURM_JOB_ID", "")), **spec}
    result = measure(spec)
    path = Path(spec["out"], f"doctor-{result['node']}.json")
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
    say(f"{result['node']}: written {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
