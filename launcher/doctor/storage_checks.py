"""Checks of storage: room and file counts, and directories that the run writes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.storage.decision import COMMAND
from launcher.storage.file_counts import file_room
from launcher.storage.location import locate
from launcher.storage.quotas import mount_of
from launcher.storage.size import gigabytes

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject

HOME_FAILS_BELOW, HOME_WARNS_BELOW = 50_000_000, 500_000_000
"""Bytes: logs of one run take tens of megabytes, caches of compilers hundreds."""
FILES_FAIL_BELOW, FILES_WARN_BELOW = 200, 20_000
"""Files: a run makes some hundred; a Python environment of a worker has 30,000 to 60,000."""
_DATED = ", by jutil's last count, which may be days old"
NODE_LOCAL_KINDS = ("tmpfs", "ramfs", "overlay", "squashfs")
"""Types of file systems that another node never has."""
SHARED_KINDS = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "fuse.ceph", "panfs", "afs", "wekafs")


def home_has_room(subject: Subject) -> Verdict:
    """D05: the home directory has room for settings, logs and caches."""
    home = subject.shell.get("HOME", "")
    if not home:
        return unknown("HOME is not set")
    location = locate(subject.transport, subject.path(home), subject.shell, subject.quotas)
    free = location.free_bytes
    if free is None:
        return unknown(f"{home} does not answer", f"df -h {shlex.quote(home)}")
    quota = f" of a quota of {gigabytes(location.quota_bytes)}" if location.quota_bytes else ""
    text = f"{gigabytes(free)} free{quota} in {home}{_DATED * location.dated}"
    commands = (f"du -xsh {shlex.quote(home)}/.[!.]* {shlex.quote(home)}/* | sort -h | tail",)
    if free < HOME_FAILS_BELOW and not location.dated:
        return failed(text, *commands)
    return warned(text, *commands) if free < HOME_WARNS_BELOW else passed(text)


def output_fits(subject: Subject) -> Verdict | None:
    """D06: the run's checkpoints fit where they go."""
    storage = subject.storage
    if storage is None:
        return None
    warnings = storage.warnings()
    target = storage.checkpoints or storage.root
    dated = _DATED * target.dated
    if warnings:
        judge = failed if storage.does_not_fit and not target.dated else warned
        return judge(f"{warnings[0]}{dated}", COMMAND, changes="where runs are kept")
    if target.free_bytes is None:
        return unknown(f"{target.path} does not answer", f"df -h {shlex.quote(str(target.path))}")
    text = f"{gigabytes(target.free_bytes)} free in {target.path}{dated}"
    words = storage.size.in_words()
    return passed(f"{text}; {words}" if words else text)


def files_can_be_made(subject: Subject) -> Verdict:
    """D07: the quota of files (inodes) is not used up where files are made."""
    short: list[str] = []
    fails = False
    rooms: list[str] = []
    for name, path in _written(subject):
        room = file_room(subject.quotas, path)
        if room.free is None:
            continue
        limit = f" of a quota of {room.limit:,}" if room.limit else ""
        text = f"{room.free:,} more files{limit} in {path} ({name}){_DATED * room.dated}"
        rooms.append(text)
        if room.free < FILES_WARN_BELOW:
            short.append(text)
            fails = fails or (room.free < FILES_FAIL_BELOW and not room.dated)
    if short:
        command = f"du --inodes -xs {shlex.quote(str(_written(subject)[0][1]))}/* | sort -n | tail"
        return failed("; ".join(short), command) if fails else warned("; ".join(short), command)
    return passed(rooms[-1]) if rooms else unknown("no file system tells how many files may be made")


def _written(subject: Subject) -> list[tuple[str, Path]]:
    home = subject.shell.get("HOME")
    listed = [("home", subject.path(home))] if home else []
    if subject.worker_venvs is not None:
        listed.append(("environments of the workers", subject.worker_venvs))
    return [*listed, *subject.output_directories]


def output_can_be_made(subject: Subject) -> Verdict:
    """D08: the directories that the run writes can be made and written."""
    refused = []
    for name, path in subject.output_directories:
        if reason := subject.node.refusal(path):
            refused.append(f"{reason} ({name})")
    if refused:
        return failed(
            "; ".join(refused), f"mkdir -p {shlex.quote(str(subject.output_directories[-1][1]))}", COMMAND
        )
    return passed(", ".join(f"{path} ({name})" for name, path in subject.output_directories))


def output_is_shared(subject: Subject) -> Verdict:
    """D09: what the nodes must see does not lie on this node's own disk or memory."""
    table = subject.node.mounts()
    own, shared = [], 0
    for name, path in _shared_paths(subject):
        mount = mount_of(subject.node.nearest(path), table)
        if mount is None:
            continue
        if mount[2] in NODE_LOCAL_KINDS:
            own.append(f"{path} ({name}) is on a {mount[2]} of this node")
        shared += mount[2] in SHARED_KINDS
    if own:
        return failed("; ".join(own), COMMAND, changes="where runs are kept")
    number = counted(len(list(_shared_paths(subject))), "directory")
    text = f"{number}, none on memory or a disk of this node alone"
    return passed(text if not shared else f"{text}, {shared} on a parallel or network file system")


def _shared_paths(subject: Subject) -> Iterator[tuple[str, Path]]:
    yield from subject.output_directories
    if subject.checkout is not None:
        yield "checkout", subject.path(subject.checkout.path)
    if subject.worker_venvs is not None:
        yield "environments of the workers", subject.worker_venvs
    for name in ("HF_HOME", "HF_HUB_CACHE", "UV_CACHE_DIR"):
        if value := subject.job.get(name):
            yield name, subject.path(value)
