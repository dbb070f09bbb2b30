"""Jobs that this program did not submit: their state in Slurm, and their logs.

Launchers put their logs in different places. `ray_bare.sub` and NeMo-RL's `ray.sub`: `<job>-logs`, and
`<job>-<n>-logs` after n requeues, below BASE_LOG_DIR or the directory submitted from. NeMo-Run's: beside
Slurm's own output file, as `ray-head.log`, `ray-worker-<n>.log`, `ray-job.log`. Others: in directories and
files that have the job's id in their names.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.job_status import LEFT_WITHOUT_ACCOUNTS
from launcher.clusters.slurm.jobs import QUEUE_FORMAT, SACCT_COLUMNS, JobRecord, job_change, read_queue
from launcher.clusters.slurm.lost_nodes import ask_lost_nodes, may_have_lost_nodes
from launcher.clusters.slurm.maintenance import EVERY_S, Maintenance, ask_maintenance
from launcher.clusters.slurm.messages import is_accounting_off
from launcher.clusters.slurm.parse import read_records, read_table
from launcher.clusters.slurm.reasons import is_maintenance
from launcher.errors import InputError, RefusedError, TransportError
from launcher.logs.events import FindingSeen, JobChanged, JobState, LostNode, Role, Source, unanswered
from launcher.logs.roles import holds_job_id, is_log_name, role_of
from launcher.logs.sources import LogFile, LogLocations
from launcher.text import clean
from launcher.transports.base import FileStat, Transport

BACK_OFF_MAX_S = 300.0
SACCT_EVERY_S = 60.0
_ASKED_AGAIN_AFTER_S = (1.0, 2.0)
_ACCOUNTED = ("State", "User", "WorkDir", "SubmitLine")
_UNSET_TASK = "4294967294"
_RAY_LOG = re.compile(r"ray[-_](?:head|workers?|job|driver)(?:[-_.]|$)")


@dataclass(frozen=True, slots=True)
class ExternalJob:
    """A job as Slurm describes it."""

    id: str
    user: str = ""
    directory: str = ""
    """Where it was submitted from."""
    outputs: tuple[str, ...] = ()
    """Slurm's output files of it."""
    restarts: int = 0


def describe(
    client: SlurmClient, identity: str, *, pause: Callable[[float], None] = time.sleep
) -> ExternalJob:
    """Return Slurm's description of a job: from the controller, else from accounting.

    Accounting gets a job's directory up to two seconds after its end; it is queried again until it has it.

    Raises:
        InputError: there is no such job.
        TransportError: Slurm gave no answer.
    """
    try:
        records = read_records(client.ask(["scontrol", "show", "job", identity]), what="job")
    except RefusedError:
        records = []
    if records:
        return _described(identity, records[0])
    row = _accounted_for(client, identity, pause)
    outputs = _outputs(row["SubmitLine"], row["WorkDir"], identity)
    return ExternalJob(identity, row["User"], row["WorkDir"], outputs)


def _accounted_for(client: SlurmClient, identity: str, pause: Callable[[float], None]) -> Mapping[str, str]:
    waits = list(_ASKED_AGAIN_AFTER_S)
    while True:
        text = _ask_accounting(client, identity)
        rows = read_table(text, _ACCOUNTED, what="list of jobs").rows
        if not rows:
            raise InputError(f"Slurm knows no job {identity}", fix="`squeue` and `sacct` list jobs.")
        row = {name: clean(value) for name, value in rows[-1].items()}
        if row["WorkDir"] or not waits:
            return row
        pause(waits.pop(0))


def _ask_accounting(client: SlurmClient, identity: str) -> str:
    try:
        return client.ask(["sacct", "-X", "-n", "-P", "-j", identity, f"--format={','.join(_ACCOUNTED)}"])
    except RefusedError as error:
        if not is_accounting_off(error.what):
            raise
        raise InputError(
            f"Slurm no longer lists job {identity}, and this cluster keeps no accounts of ended jobs",
            fix="Name the directory of its logs: distill-tui watch DIRECTORY",
        ) from error


def _described(identity: str, record: Mapping[str, str]) -> ExternalJob:
    record = {name: clean(value) for name, value in record.items()}
    written = (record.get("StdOut", ""), record.get("StdErr", ""))
    outputs = tuple(dict.fromkeys(path for path in written if path.startswith("/") and path != "/dev/null"))
    restarts = record.get("Restarts", "0")
    return ExternalJob(
        identity,
        record.get("UserId", "").partition("(")[0],
        record.get("WorkDir", ""),
        tuple(path.replace(_UNSET_TASK, "0") for path in outputs),
        int(restarts) if restarts.isdecimal() else 0,
    )


def _outputs(line: str, directory: str, identity: str) -> tuple[str, ...]:
    """Return the output files that a submission's command line names; Slurm's default where it names none."""
    paths = re.findall(r"(?:^|\s)(?:--output[= ]|-o\s*)(\S+)", line) or ["slurm-%j.out"]
    return tuple(str(PurePosixPath(directory, re.sub(r"%\d*[jA]", identity, path))) for path in paths if path)


# ------------------------------------------------------------ its logs


@dataclass(slots=True)
class ExternalJobLogs:
    """Finds the logs of a job; each call looks again, since they appear one after another."""

    transport: Transport
    job: ExternalJob
    environment: Mapping[str, str]
    _names: dict[str, tuple[float, tuple[FileStat, ...]]] = field(default_factory=dict)
    """Directory -> time of change and the entries that hold the job's id, as listed last."""

    def __call__(self) -> LogLocations:
        """Return the logs that exist now."""
        problems: list[str] = []
        directories = {path: name for base in self._bases() for path, name in self._attempts(base, problems)}
        files = [
            LogFile(PurePosixPath(path).name, path, role_of(path) or Role.SLURM)
            for path in self.job.outputs
            if self._is_readable(path, problems)
        ]
        if not directories:
            files += self._logs_beside_output(problems)
            for path, entry in self._named_after_job(problems):
                if entry.is_dir:
                    directories[path] = f"{entry.name}/"
                elif path not in {log.path for log in files} and is_log_name(entry.name):
                    files.append(LogFile(entry.name, path, role_of(path) or Role.SLURM))
        readable = bool(directories) or bool(files)
        missing = () if readable else (self._no_logs_finding(problems),)
        return LogLocations(directories, tuple(files), missing, self.job.directory)

    def _bases(self) -> tuple[str, ...]:
        given = (self.environment.get("BASE_LOG_DIR", ""), self.job.directory)
        beside = (str(PurePosixPath(path).parent) for path in self.job.outputs)
        return tuple(dict.fromkeys(path for path in (*given, *beside) if path.startswith("/")))

    def _attempts(self, base: str, problems: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the log directories of the job and of its requeues, and the prefix of their logs' names."""
        number = 0
        while True:
            name = f"{self.job.id}-{number}-logs" if number else f"{self.job.id}-logs"
            path = str(PurePosixPath(base, name))
            readable = self._is_readable(path, problems)
            if readable:
                yield path, f"{name}/"
            elif number > self.job.restarts:
                return
            number += 1

    def _is_readable(self, path: str, problems: list[str]) -> bool:
        try:
            entry = self.transport.stat(path)
            if entry is None:
                return False
            if entry.is_dir:
                self.transport.listdir(path)
            else:
                self.transport.read(path, 0, 1)
        except TransportError as error:
            problems.append(error.what)
            return False
        return True

    def _logs_beside_output(self, problems: list[str]) -> Iterator[LogFile]:
        """Yield Ray's logs that lie beside Slurm's output file."""
        for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in self.job.outputs):
            try:
                entries = self.transport.listdir(folder)
            except TransportError as error:
                problems.append(error.what)
                continue
            for entry in entries:
                role = role_of(entry.name)
                if not entry.is_dir and role is not None and _RAY_LOG.match(entry.name):
                    yield LogFile(entry.name, str(PurePosixPath(folder, entry.name)), role)

    def _named_after_job(self, problems: list[str]) -> Iterator[tuple[str, FileStat]]:
        """Yield the directories and files of other launchers: those with the job's id in their names."""
        for base in self._bases():
            for folder in (base, str(PurePosixPath(base, "logs"))):
                for entry in self._entries_of_job(folder, problems):
                    yield str(PurePosixPath(folder, entry.name)), entry

    def _entries_of_job(self, folder: str, problems: list[str]) -> tuple[FileStat, ...]:
        """Return the entries of a directory that hold the job's id; listed again when it has changed."""
        try:
            stat = self.transport.stat(folder)
            if stat is None or not stat.is_dir:
                return ()
            changed, entries = self._names.get(folder, (None, ()))
            if changed != stat.mtime:
                listed = self.transport.listdir(folder)
                entries = tuple(entry for entry in listed if holds_job_id(entry.name, self.job.id))
                self._names[folder] = (stat.mtime, entries)
        except TransportError as error:
            problems.append(error.what)
            return ()
        return entries

    def _no_logs_finding(self, problems: list[str]) -> FindingSeen:
        searched = ", ".join((*self.job.outputs, *(f"{base}/{self.job.id}-logs" for base in self._bases())))
        text = f"searched {searched or 'nothing: Slurm reports no directory'}"
        text += f"; {'; '.join(dict.fromkeys(problems))}" if problems else ""
        others = self.job.user not in ("", self.environment.get("USER"))
        advice = f"Ask {self.job.user} to let you read them, or" if others else "If they are elsewhere,"
        fix = f"{advice} name their directory: distill-tui watch DIRECTORY"
        return FindingSeen(
            "no-logs",
            "No log of this job can be read",
            "warning",
            text,
            Source("", Role.SLURM, 0),
            fix,
            tier=3,
        )


# ------------------------------------------------------------ its state


@dataclass(slots=True)
class JobProbe:
    """Queries one job: squeue once an interval, accounting once a minute after the job's end."""

    client: SlurmClient
    identity: str
    every_s: float = 30.0
    _tried: float = field(default=float("-inf"))
    _failures: int = 0
    _sacct: float = field(default=float("-inf"))
    _answer: JobChanged | None = None
    _accounting: bool = True
    _maintenance: Maintenance | None = None
    _lost: tuple[LostNode, ...] | None = None
    _maintenance_asked: float = field(default=float("-inf"))

    def __call__(self) -> JobChanged | None:
        """Return the job's state; the last one until the interval is over."""
        now = self.client.now()
        wait = min(self.every_s * 2 ** min(self._failures, 10), max(BACK_OFF_MAX_S, self.every_s))
        ended = self._answer is not None and self._answer.state.ended and self._answer.exit_code
        if ended or now - self._tried < wait:
            return self._answer
        self._tried = now
        try:
            self._answer, self._failures = self._ask(now), 0
        except (TransportError, RefusedError) as error:
            self._failures += 1
            self._answer = unanswered(self._answer, error.what)
        return self._answer

    def _ask(self, now: float) -> JobChanged:
        record = self._queued()
        if record is None or record.over:
            accounted = self._accounted(now)
            record = accounted if accounted is not None and accounted.over else record or accounted
        if record is None and not self._accounting:
            return JobChanged(JobState.UNKNOWN, LEFT_WITHOUT_ACCOUNTS, over=True, job=self.identity)
        if record is None:
            return self._answer or JobChanged(
                JobState.UNKNOWN,
                "it left the queue; accounting has no record of its end yet",
                job=self.identity,
            )
        change = job_change(record, self._maintenance_of(record, now))
        return replace(change, job=self.identity, lost_nodes=self._lost_nodes(change), asked=now)

    def _lost_nodes(self, change: JobChanged) -> tuple[LostNode, ...]:
        """Return the nodes that went down under a failed job; asked once."""
        if self._lost is None and may_have_lost_nodes(change):
            self._lost = ask_lost_nodes(self.client, change)
        return self._lost or ()

    def _maintenance_of(self, record: JobRecord, now: float) -> Maintenance | None:
        """Return the maintenance that the job waits for; asked while it waits, at most once an interval."""
        if record.state != "PENDING" or not is_maintenance(record.reason):
            return None
        if now - self._maintenance_asked >= EVERY_S:
            self._maintenance_asked = now
            self._maintenance = ask_maintenance(self.client, [record.id], now).get(record.id)
        return self._maintenance

    def _queued(self) -> JobRecord | None:
        try:
            text = self.client.ask(["squeue", "-h", "-t", "all", "-j", self.identity, "-o", QUEUE_FORMAT])
        except RefusedError as error:
            if "Invalid job id" in error.what:
                return None
            raise
        return next(iter(read_queue(text)[0]), None)

    def _accounted(self, now: float) -> JobRecord | None:
        if now - self._sacct < SACCT_EVERY_S:
            return None
        self._sacct = now
        argv = ["sacct", "-X", "-n", "-P", "-j", self.identity, f"--format={','.join(SACCT_COLUMNS)}"]
        try:
            records = read_queue(self.client.ask(argv), SACCT_COLUMNS)[0]
        except RefusedError as error:
            if not is_accounting_off(error.what):
                raise
            self._accounting = False
            return None
        return records[-1] if records else None
