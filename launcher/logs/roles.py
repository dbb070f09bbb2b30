"""Part of a run that wrote a log: by the log's name, else by what it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

from launcher.errors import TransportError
from launcher.logs.events import Role
from launcher.transports.base import FileStat, Transport

_ENDING = r"(?:[-_.].*)?$"
_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(rf"ray[-_]driver{_ENDING}"), Role.DRIVER),
    (re.compile(rf"ray[-_]job{_ENDING}"), Role.DRIVER),  # NeMo-Run's launcher (templates/ray.sub.j2)
    (re.compile(rf"ray[-_]head{_ENDING}"), Role.HEAD),
    (re.compile(r"ray[-_]workers?(?:[-_.]|\d).*$"), Role.WORKER),
    (re.compile(r"(?:launcher\.log|slurm-.*\.(?:out|err)|sbatch_.*\.(?:out|err))$"), Role.SLURM),
    (re.compile(r"companion.*\.log$"), Role.COMPANION),
)
# Names that other launchers give their logs; mostly the role is a part of them.
_ROLE_IN_NAME = re.compile(
    r"(?:^|.*[-_.])(?P<role>driver|head|worker|workers|slurm|companion)(?:[-_.\d].*)?\.(?:log|out|err)$"
)
# Files beside the logs that have names like theirs: scripts, tables, what an editor or a copy leaves behind.
_NO_LOG = re.compile(
    r".*\.(?:sh|sub|py|ya?ml|json|jsonl|csv|tsv|pid|lock|gz|xz|zst|swp|bak|tmp|toml|md)$|.*~$"
)
_LOG_NAME = re.compile(r".*\.(?:log|out|err|o\d+|e\d+)$")
_SAMPLE = 256 * 1024
"""Bytes of a log by which its part is recognised; what precedes a driver in one is shorter, mostly."""

# Lines that only a driver of NeMo-RL prints, Ray's head, a node that joins it, a batch script: at the start
# of a line, or behind what carried it, but not in a shell's trace of a script.
_DRIVER_TEXT = re.compile(
    rb"^(?!\++ ).*?(?:INFO:nemo_rl\.|\xe2\x96\xb6 Setting up |={25} (?:Step|Epoch) \d+/\d+ ={25}"
    rb"|(?:Training|Validation) data(?:set|loader) loaded with \d+ samples| {6}SETUP COMPLETE)",
    re.MULTILINE,
)
_HEAD_TEXT = re.compile(
    rb"^(?!\++ ).*?(?:To add another node to this Ray cluster|head: (?:starting Ray head|Ray GCS listening))",
    re.MULTILINE,
)
_WORKER_TEXT = re.compile(rb"^(?!\++ ).*?Ray runtime started\.", re.MULTILINE)
_SLURM_TEXT = re.compile(
    rb"^(?!\++ ).{0,40}?(?:\[NRL_PHASE\]|srun: |slurmstepd: |Number of actors online: |worker_units: \d)",
    re.MULTILINE,
)
_CONTENTS = (
    (_DRIVER_TEXT, Role.DRIVER),
    (_HEAD_TEXT, Role.HEAD),
    (_WORKER_TEXT, Role.WORKER),
    (_SLURM_TEXT, Role.SLURM),
)


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role | None:
    """Return the role in a file's name, or None."""
    base = PurePosixPath(name).name
    if _NO_LOG.match(base):
        return None
    role = next((role for pattern, role in _ROLES if pattern.match(base)), None)
    if role is None and (match := _ROLE_IN_NAME.match(base)):
        return Role(match["role"].removesuffix("s"))
    return role


def is_log_name(name: str) -> bool:
    """Return True for a name that a log may have."""
    return _LOG_NAME.match(name) is not None


def role_of_content(data: bytes) -> Role | None:
    """Return the role that the beginning of a log shows, or None."""
    return next((role for pattern, role in _CONTENTS if pattern.search(data)), None)


@dataclass(slots=True)
class ContentRoles:
    """Roles of logs whose names have none, each read again only while it grows to the size that is read."""

    transport: Transport
    _roles: dict[str, tuple[int, Role | None]] = field(default_factory=dict)

    def of(self, path: str, entry: FileStat) -> Role | None:
        """Return the role that a log's content shows; None where it shows none, or cannot be read."""
        size = min(entry.size, _SAMPLE)
        read, role = self._roles.get(path, (-1, None))
        if role is None and size > read:
            try:
                role = role_of_content(self.transport.read(path, 0, size)) if size else None
            except TransportError:
                return None
            self._roles[path] = (size, role)
        return role


def holds_job_id(name: str, job: str) -> bool:
    """Return True for a name that holds a job's id as a number of its own: `14-logs`, `run_14`."""
    return re.search(rf"(?<!\d){re.escape(job)}(?!\d)", name) is not None
