"""A run and its directory, which is the only persistent state.

One directory per run, below a runs root; it can be read, moved and copied:

    run.json        the request (RunSpec)
    recipe.yaml     the recipe as submitted
    effective.yaml  its values after inheritance, overrides and interpolation
    plan.json       the launch plan: command and environment
    jobs.json       the submitted jobs (Jobs)
    ray_bare.sub …  the scripts that ran
    logs/           the logs
    summary.json    the state at its end, so that listing runs need not read logs again
"""

from __future__ import annotations

import builtins
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from launcher.checkout_state import CheckoutState
from launcher.errors import AmbiguousError, InputError, TransportError
from launcher.paths import runs_roots_on
from launcher.run_directories import list_directories, user_roots
from launcher.run_reference import JOB_ID, RunNames, is_job_id, referenced
from launcher.stored import MAX_STORED_BYTES, dump, parse_stored, read_stored
from launcher.transports.base import FileStat, NewFile, ProcessId, Transport

JOB_TOKEN = "[A-Za-z]{1,16}-[A-Za-z0-9]{1,64}"  # noqa: S105 - a pattern, no secret
"""Pattern of what a job is known by before it has a number, and of the ids of jobs without a scheduler."""


def _in_calendar(time: datetime) -> datetime:
    if not 1970 <= time.year < 9000:
        raise ValueError("the year is not between 1970 and 9000")
    return time


StoredTime = Annotated[AwareDatetime, AfterValidator(_in_calendar)]
"""A time of a stored file: with its zone, and in a range in which it can be computed with."""
Launcher = Literal["ray_bare", "ray.sub"]
"""What starts Ray in a job: the script that comes with this program, or NeMo-RL's own, in a container."""
SPEC, JOBS, SUMMARY = "run.json", "jobs.json", "summary.json"
RUN_FILES = (SPEC, "plan.json", "recipe.yaml", "effective.yaml")
"""Files that every run's directory begins with."""
OTHERS_WORK = (
    "Other runs are not affected; this one's logs can be watched: `distill-tui watch DIRECTORY/logs`."
)
SECRETS = "secrets.env"
"""Keys that the driver needs, for the user's eyes alone."""


class _Stored(BaseModel):
    """Base of stored models; unknown keys of a newer version are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal[1] = Field(1, alias="schema")


class RecipeRef(BaseModel):
    """The recipe of a run."""

    model_config = ConfigDict(frozen=True)

    source: str
    """Path as given."""
    overrides: tuple[str, ...] = ()


class SlurmRequest(BaseModel):
    """Resources requested from Slurm."""

    model_config = ConfigDict(frozen=True)

    partition: str
    account: str | None = None
    time_s: Annotated[int, Field(ge=0, le=10**9)]
    """Time limit of each job, in seconds."""
    qos: str | None = None
    reservation: str | None = None
    chain: Annotated[int, Field(ge=1, le=10**4)] = 1
    """Number of jobs that follow one another."""
    options: Mapping[str, str] = Field(default_factory=dict)
    """Further options by the name of their row in `launcher.fields`."""
    cluster: str | None = None
    """One of several clusters that share a login node; None: the login node's own."""
    without: tuple[str, ...] = ()
    """Long options of sbatch, without dashes, that the site does not take from users."""
    gres: bool = True
    """Whether GPUs are asked for; a Slurm that lists none refuses that, and gives whole nodes."""

    def option(self, name: str) -> str | None:
        """Return an option by the name of its row; None where it is left to Slurm."""
        value = getattr(self, name, None) if name in type(self).model_fields else self.options.get(name)
        return str(value) if value is not None else None


class SkippedCheck(BaseModel):
    """A check that failed before the submission, which went on all the same."""

    model_config = ConfigDict(frozen=True)

    id: str
    message: str = ""


class RequestRecord(BaseModel):
    """Parts of a request that only concern its jobs' rendering, to make the same request again."""

    model_config = ConfigDict(frozen=True)

    profile: str | None = None
    env_file: str | None = None
    env: tuple[str, ...] = ()
    no_env: tuple[str, ...] = ()
    sbatch_args: tuple[str, ...] = ()
    container: str | None = None
    mounts: tuple[str, ...] = ()
    modules: str | None = None
    driver: str | None = None
    """Script of the checkout that was requested; None: the one that the recipe is for."""


class RunSpec(_Stored):
    """The request of a run."""

    id: str = Field(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]*\z", max_length=255)
    name: str
    kind: Literal["rehearsal", "smoke", "training", "doctor"]
    created: StoredTime
    user: str
    host: str
    recipe: RecipeRef
    cluster: Literal["local", "slurm"]
    nodes: Annotated[int, Field(ge=0, le=10**6)]
    gpus_per_node: Annotated[int, Field(ge=0, le=10**4)]
    max_steps: Annotated[int, Field(le=10**12)] | None = None
    slurm: SlurmRequest | None = None
    checkout: str | None = None
    """The NeMo-RL checkout that its jobs run in; None for a rehearsal."""
    checkout_state: CheckoutState = CheckoutState()
    """Its commit and local changes when the run was submitted."""
    launcher: Launcher = "ray_bare"
    request: RequestRecord = RequestRecord()
    skipped_checks: tuple[SkippedCheck, ...] = ()
    """Failing checks that the user skipped."""
    estimated_gib: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """What the largest phase was estimated to need on a GPU; None where that was not known."""
    logs: str = "logs"
    """Directory of the logs: relative to the run's directory, or absolute."""


class JobProcess(BaseModel):
    """A process that is a job, on a machine without a scheduler."""

    model_config = ConfigDict(frozen=True)

    host: str
    boot: str
    pid: Annotated[int, Field(ge=1, le=2**31)]
    started: Annotated[int, Field(ge=0, le=2**63)]

    def identity(self) -> ProcessId:
        """Return the process as transports identify it."""
        return ProcessId(self.host, self.boot, self.pid, self.started)


class Job(BaseModel):
    """One job of a run."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(pattern=rf"\A(?:{JOB_ID}|{JOB_TOKEN})\z")
    """Slurm's number; the token from the intent until that is known."""
    submitted: StoredTime
    token: str = Field(default="", pattern=rf"\A(?:{JOB_TOKEN})?\z")
    """Token in the job's comment, by which it is found if sbatch's answer is lost."""
    link: int = 1
    """Its place in a chain, from 1."""
    refused: str = ""
    """Why it was refused; empty if it was not."""
    process: JobProcess | None = None
    """None from the intent until the start is known."""
    cancel_requested: StoredTime | None = None


class Jobs(_Stored):
    """The jobs of a run."""

    jobs: tuple[Job, ...] = ()
    cancel_requested: StoredTime | None = None
    """Time of the latest request to stop the run: submissions that began before it submit no further job."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as found in its directory."""

    directory: str
    spec: RunSpec
    jobs: tuple[Job, ...]
    cancel_requested: datetime | None = None
    """Time of the latest request to stop it."""

    @property
    def logs(self) -> str:
        """Directory of the logs."""
        return str(Path(self.directory, self.spec.logs))

    @property
    def names(self) -> RunNames:
        """Names by which the run can be referred to."""
        return RunNames(self.spec.id, self.spec.name, self.spec.created, tuple(job.id for job in self.jobs))

    @property
    def job(self) -> Job | None:
        """The latest job."""
        return self.jobs[-1] if self.jobs else None


@dataclass(frozen=True, slots=True)
class Damaged:
    """A directory in the runs root that cannot be read as a run."""

    directory: str
    problem: str


def new_id(name: str, now: datetime) -> str:
    """Return a unique identifier that sorts by time and is valid as a file name."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24] or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class RunStore:
    """The runs under one root."""

    transport: Transport
    root: str
    """Where new runs are made."""
    earlier: tuple[str, ...] = ()
    """Further directories whose runs are listed; of two of one name, the first counts."""

    def directories(self) -> builtins.list[tuple[str, FileStat]]:
        """Return the directories that may be runs with their entries, newest first; nothing of them is read.

        Raises:
            TransportError: a root cannot be listed.
        """
        return list_directories(self.transport, (self.root, *self.earlier))

    def list(self) -> builtins.list[Run | Damaged]:
        """Return all runs, newest first; a directory that is no run at all is passed over."""
        found: builtins.list[Run | Damaged] = []
        with self.looking():
            for directory, _ in self.directories():
                try:
                    if self.transport.stat(str(Path(directory, SPEC))) is not None:
                        found.append(load(self.transport, directory))
                except (InputError, TransportError) as error:
                    found.append(Damaged(directory, error.what))
        return found

    def looking(self) -> AbstractContextManager[None]:
        """Return a context in which the records of all runs are those of its beginning, read at once.

        Raises (on entering):
            TransportError: the machine does not answer.
        """
        return self.transport.looking_at_files((self.root, *self.earlier), (SPEC, JOBS, SUMMARY))

    def find(self, reference: str) -> Run:
        """Return the run with an id, an unambiguous part of one, the id of a job, or a path to its directory.

        A number is the id of a job first; a run's name is meant by it only in full.

        Raises:
            InputError: there is no such run.
            AmbiguousError: there are several.
        """
        is_directory = self.transport.stat(str(Path(reference, SPEC))) is not None
        if "/" in reference or (is_directory and not is_job_id(reference)):
            return load(self.transport, reference)
        runs = [item for item in self.list() if isinstance(item, Run)]
        try:
            return runs[referenced([run.names for run in runs], reference, self.root)]
        except AmbiguousError:
            raise
        except InputError:
            if not is_directory:
                raise
            return load(self.transport, reference)

    def create(self, spec: RunSpec, files: Mapping[str, bytes]) -> Run:
        """Make a run's directory with its files, whole or not at all.

        Raises:
            TransportError: the root cannot be written.
        """
        directory = str(Path(self.root, spec.id))
        try:
            self.transport.make_directory(directory)
        except TransportError as error:
            raise TransportError(
                f"runs cannot be kept in {self.root}: {error.what.rpartition(': ')[2]}",
                fix="Set DISTILL_TUI_RUNS to another directory.",
            ) from error
        try:
            new = [NewFile(str(Path(directory, name)), data, _mode_of(name)) for name, data in files.items()]
            self.transport.make_directory(str(Path(directory, spec.logs)))
            self.transport.write_files([*new, NewFile(str(Path(directory, SPEC)), dump(spec))])
        except BaseException:
            if self.transport.stat(directory) is not None:
                self.transport.remove_tree(directory)
            raise
        return Run(directory, spec, ())


def _mode_of(name: str) -> int:
    """Return the access rights of a file of a run."""
    if name == SECRETS:
        return 0o600
    return 0o755 if name.endswith((".sub", ".sh", ".py")) else 0o644


def user_store(transport: Transport, root: Path, environment: Mapping[str, str] = os.environ) -> RunStore:
    """Return the store at a root; if that is the user's, with the runs of earlier roots.

    Raises:
        InputError: the settings cannot be read.
    """
    first, *earlier = user_roots(root, environment)
    return RunStore(transport, first, tuple(earlier))


def store_on(transport: Transport) -> RunStore:
    """Return the store of the user's runs on a transport's machine, as the environment there has it.

    Raises:
        InputError: the settings there cannot be read.
        TransportError: the machine does not answer.
    """
    root, *earlier = runs_roots_on(transport)
    return RunStore(transport, root, tuple(earlier))


def load(transport: Transport, directory: str) -> Run:
    """Read a run's directory.

    Raises:
        InputError: it is not a run, or its files are damaged.
    """
    if transport.stat(str(Path(directory, SPEC))) is None:
        raise InputError("this is not a run's directory (no run.json)", where=directory)
    spec = read_stored(transport, Path(directory, SPEC), RunSpec, works=OTHERS_WORK)
    stored = read_jobs(transport, directory)
    return Run(directory, spec, stored.jobs, stored.cancel_requested)


def read_jobs(transport: Transport, directory: str) -> Jobs:
    """Return the record of a run's jobs; an empty one before the first.

    Raises:
        InputError: it is damaged.
    """
    path = Path(directory, JOBS)
    if transport.stat(str(path)) is None:
        return Jobs(schema=1)
    return read_stored(transport, path, Jobs, works=OTHERS_WORK)


def jobs_of(data: bytes | None, directory: str) -> Jobs:
    """Return the record of a run's jobs from the bytes of its file; None: there is no file.

    Raises:
        InputError: they are damaged.
    """
    if data is None:
        return Jobs(schema=1)
    return parse_stored(data, Path(directory, JOBS), Jobs, works=OTHERS_WORK)


def effective_values(transport: Transport, directory: str) -> dict[str, Any]:
    """Return the effective recipe that a run was started with.

    Raises:
        InputError: it is damaged.
        TransportError: it cannot be read.
    """
    import yaml

    path = Path(directory, "effective.yaml")
    data = transport.read(str(path), 0, MAX_STORED_BYTES + 1)
    try:
        if len(data) > MAX_STORED_BYTES:
            raise ValueError("too large")
        values = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that there is not
        raise InputError("the run's effective recipe is damaged", where=path) from error
    return values if isinstance(values, dict) else {}
