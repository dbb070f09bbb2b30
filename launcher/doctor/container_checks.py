"""Checks of container runtimes, where the job needs one: image, Pyxis, the service's socket, its networks."""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import shlex
import socket
from typing import TYPE_CHECKING, Any

from launcher.doctor.verdict import Verdict, failed, passed, unknown, warned
from launcher.errors import TransportError
from launcher.plan import passed_on
from launcher.text import clean

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject

_TIMEOUT_S = 1.5
_LARGEST_ANSWER = 4 << 20
DEFAULT_NETWORKS = 31
"""Networks that Docker's default pools give: 15 of /16 and 16 of /20 (moby, daemon/libnetwork/ipamutils)."""
_FEW = 4
_NOT_FAR = "a service is not asked over SSH"
_PING = "docker version"
_POOLS = '"default-address-pools": [{"base": "10.200.0.0/16", "size": 24}]'


def image_is_there(subject: Subject) -> Verdict | None:
    """D34: the image of the job's container is a file that nodes can read."""
    image = subject.container
    if not image:
        return None
    if image.startswith(("/", "./")) or image.endswith(".sqsh"):
        path = subject.path(image)
        if path.is_file():
            return passed(f"{image}, {path.stat().st_size / 1e9:.1f} GB")
        return failed(f"there is no {image}", f"enroot import --output {shlex.quote(image)} docker://IMAGE")
    source = image if "://" in image else f"docker://{image}"
    name = re.sub(r"[^\w.-]+", "+", image.rpartition("://")[2])
    command = f"enroot import --output {shlex.quote(name)}.sqsh {shlex.quote(source)}"
    if subject.offline:
        return failed(
            f"{image} would be fetched by nodes without internet", command, changes="this directory"
        )
    return warned(f"{image} is fetched anew by each node", command, changes="this directory")


def slurm_starts_containers(subject: Subject) -> Verdict | None:
    """D35: Slurm has the Pyxis plugin, which ray.sub starts its container with."""
    if not subject.container:
        return None
    try:
        done = subject.transport.run(
            ["srun", "--help"], env=passed_on(subject.shell), timeout_s=subject.call_limit(_TIMEOUT_S)
        )
    except TransportError as error:
        return unknown(error.what, "srun --help")
    if "--container-image" in done.stdout:
        return passed("srun has --container-image")
    text = "srun has no --container-image: the Pyxis plugin is not installed here"
    return failed(text, "distill-tui submit FILE --launcher ray_bare")


def service_answers(subject: Subject) -> Verdict | None:
    """D36: the container service that DOCKER_HOST or CONTAINER_HOST names answers."""
    name, address = _service(subject)
    if not address:
        return None
    if subject.is_far:
        return unknown(f"{name}={address}: {_NOT_FAR}", _PING)
    answer, problem = _ask(address, "/_ping")
    if answer is not None:
        return passed(f"{name}={address} answers")
    return failed(
        f"{name}={address}: {problem}",
        "systemctl --user enable --now podman.socket",
        "loginctl enable-linger",
        changes="your user's services",
    )


def networks_are_left(subject: Subject) -> Verdict | None:
    """D37: the service has addresses for further container networks: a sandbox takes one each."""
    _, address = _service(subject)
    if not address:
        return None
    if subject.is_far:
        return unknown(f"{address}: {_NOT_FAR}", "docker network ls")
    facts, networks = _ask(address, "/info")[0], _ask(address, "/networks")[0]
    if not isinstance(facts, dict) or not isinstance(networks, list):
        return unknown(f"{address} does not tell its networks", "docker network ls")
    capacity = _capacity(facts.get("DefaultAddressPools"))
    used = sum(isinstance(item, dict) and item.get("Driver") == "bridge" for item in networks)
    text = f"{used} of {capacity} networks are in use"
    if capacity - used > _FEW:
        return passed(text)
    commands = ("docker network prune",)
    advice = f"{text}; more pools are in daemon.json: {_POOLS}"
    judge = failed if capacity <= used else warned
    return judge(advice, *commands, changes="removes networks that no container uses")


def _capacity(pools: object) -> int:
    """Return how many networks the address pools hold."""
    if not isinstance(pools, list) or not pools:
        return DEFAULT_NETWORKS
    total = 0
    for pool in pools:
        try:
            base = ipaddress.ip_network(str(pool["Base"]), strict=False)
            total += 2 ** max(int(pool["Size"]) - base.prefixlen, 0)
        except (KeyError, TypeError, ValueError):
            continue
    return total or DEFAULT_NETWORKS


def _service(subject: Subject) -> tuple[str, str]:
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        if subject.job.get(name):
            return name, subject.job[name]
    return "", ""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


def _ask(address: str, path: str) -> tuple[Any, str]:
    """Return what the service answers (JSON or text), None and the reason where it does not."""
    scheme, _, rest = address.partition("://")
    if scheme == "unix":
        connection: http.client.HTTPConnection = _UnixConnection(rest)
    elif scheme in ("tcp", "http"):
        connection = http.client.HTTPConnection(rest, timeout=_TIMEOUT_S)
    else:
        return None, f"{scheme or 'no'} address is not asked"
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        data = response.read(_LARGEST_ANSWER)
        if response.status >= 400:
            return None, f"answered {response.status}"
        return (json.loads(data) if data[:1] in b"{[" else clean(data.decode("utf-8", "replace"))), ""
    except (OSError, ValueError, http.client.HTTPException) as error:
        return None, clean(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    finally:
        connection.close()
