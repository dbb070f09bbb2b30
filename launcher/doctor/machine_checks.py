"""Checks of this machine and of the user's session: limits, clock, terminal, processes, Ray's directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from launcher.doctor.storage_checks import NODE_LOCAL_KINDS, SHARED_KINDS
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.storage.quotas import mount_of
from launcher.text import clean

if TYPE_CHECKING:
    from launcher.doctor.login_node import LoginNode
    from launcher.doctor.subject import Subject

NAME_AND_BASE = 36
"""Bytes of RAY_TMPDIR and the name of the job's directory in it: `find_tmp` in ray_bare.sub, whose longest
socket has 107 bytes."""
OPEN_FILES = 65535
"""The soft limit that ray_bare.sub sets, as NeMo-RL's ray.sub does."""
LEAST_TMP_BYTES = 2_000_000_000
CLOCK_S = 5.0
_RAY = re.compile(rb"(?:^|/)(raylet|gcs_server)$")
_JOB_DIRECTORY = re.compile(r"rb-\d+-(\w+)")


def ray_directory_is_usable(subject: Subject) -> Verdict:
    """D29: RAY_TMPDIR is short enough for Ray's sockets, and on the node's own storage."""
    base = (subject.job.get("RAY_TMPDIR") or "/tmp").rstrip("/")  # noqa: S108 - the launcher's default
    fix = ("export RAY_TMPDIR=/tmp",)
    if not base.startswith("/"):
        return failed(f"RAY_TMPDIR is no absolute path: {base}", *fix, changes="your shell")
    room = NAME_AND_BASE - len(f"rb-{subject.node.user_id}-") - len("12345678")
    if len(os.fsencode(base)) > room:
        text = f"RAY_TMPDIR {base} has {len(os.fsencode(base))} bytes; Ray's sockets leave {room}"
        return failed(text, *fix, changes="your shell")
    mount = mount_of(subject.node.nearest(subject.path(base)), subject.node.mounts())
    if mount is not None and mount[2] in SHARED_KINDS:
        text = f"RAY_TMPDIR {base} is on {mount[2]}, which all nodes share: sockets do not work there"
        return failed(text, *fix, changes="your shell")
    memory = mount is not None and mount[2] in NODE_LOCAL_KINDS[:2]
    return passed(f"{base}" + ", which is memory here" * memory)


def open_files_suffice(subject: Subject) -> Verdict:
    """D30: enough files may be open at once: jobs inherit the limit of the shell at many sites."""
    soft, hard = subject.node.open_files
    if hard is not None and hard < OPEN_FILES:
        text = f"at most {hard:,} files may be open (hard limit); Ray wants {OPEN_FILES:,}"
        return warned(text, "ulimit -Hn")
    return passed(f"{soft:,} now, the launcher raises it to {OPEN_FILES:,}")


def clock_is_right(subject: Subject) -> Verdict:
    """D31: this machine's clock agrees with the file server's."""
    difference = subject.node.clock_difference(subject.runs)
    if difference is None:
        return unknown(f"{subject.runs} does not tell its time")
    text = f"this machine's clock is {abs(difference):.1f} s {'ahead' if difference > 0 else 'behind'}"
    if abs(difference) > CLOCK_S:
        return warned(f"{text} of the file server's: times of logs are off by that", "timedatectl")
    return passed(f"within {CLOCK_S:g} s of the file server's")


def session_survives(subject: Subject) -> Verdict | None:
    """D32: a session over SSH is in tmux or screen, so that downloads go on when the connection breaks."""
    shell = subject.shell
    if subject.is_far:  # the session with the program is another one
        return None
    if not (shell.get("SSH_CONNECTION") or shell.get("SSH_TTY")):
        return None
    if shell.get("TMUX") or shell.get("STY"):
        return passed("tmux" if shell.get("TMUX") else "screen")
    program = "tmux new -A -s distill" if subject.program("tmux") else "screen -DR distill"
    return warned("this session ends with its connection; runs in the queue go on", program)


def no_ray_is_left(subject: Subject) -> Verdict:
    """D33: no Ray of mine lives here from an earlier run: it would take ports, memory and GPUs."""
    try:
        left = list(_ray_processes(subject.node))
    except OSError as error:
        return unknown(f"{error.filename or subject.proc}: {error.strerror}")
    if not left:
        return passed("none")
    jobs = sorted({job for _, _, job in left if job})
    of_jobs = f" of job {', '.join(jobs)}" if jobs else ""
    pids = " ".join(str(pid) for pid, _, _ in left)
    names = ", ".join(f"{name} ({pid})" for pid, name, _ in left[:4])
    return warned(
        f"{counted(len(left), 'process')}{of_jobs}: {names}; to be ended if that run is over",
        f"kill {pids}",
        changes="ends that Ray cluster",
    )


def _ray_processes(node: LoginNode) -> Iterator[tuple[int, str, str]]:
    """Yield my processes of Ray's: number, program, and the job that ray_bare.sub or NeMo-RL gave them."""
    for pid, words in node.processes():
        match = _RAY.search(words[0])
        if match is None:
            continue
        line = b" ".join(words).decode("utf-8", "replace")
        job = _JOB_DIRECTORY.search(line)
        tag = re.search(r"nrl_tag_\w+", line)
        owner = job[1] if job is not None else tag[0] if tag is not None else ""
        yield pid, match[1].decode(), clean(owner)
