"""Checks of software: uv, the checkout, the driver's Python environment and those of the workers."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.checkout import check_venv
from launcher.checkout_state import checkout_state
from launcher.doctor.venv import Venv, locked_versions, read_project, required_names
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.doctor.worker_extras import worker_extras
from launcher.errors import TransportError
from launcher.interpreter import interpreter_state
from launcher.plan import passed_on
from launcher.text import clean
from recipes.checks.offline import package_cache

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from recipes.checks.offline import Need

_UV_TIMEOUT_S = 1.5
_ESSENTIAL = frozenset(
    (
        "torch",
        "ray",
        "transformers",
        "datasets",
        "numpy",
        "omegaconf",
        "hydra-core",
        "vllm",
        "megatron-core",
        "nemo-automodel",
        "transformer-engine",
    )
)
"""Packages without which no worker that has them among its extras starts."""
_NAMED = 4
"""Packages that a verdict names; there may be a hundred."""
_BUILT = "one Python environment; packages come from uv's cache or the internet"
_CHANGES_WORKERS = "the workers' Python environments; packages come from uv's cache or the internet"


def checkout_path(subject: Subject) -> Path:
    """Return the checkout's directory; only for checks that need one."""
    assert subject.checkout is not None
    return Path(subject.checkout.path)


def in_checkout(subject: Subject, command: str) -> str:
    """Return a command as one that runs in the checkout."""
    return f"cd {shlex.quote(str(checkout_path(subject)))} && {command}"


def sync_command(subject: Subject) -> str:
    """Return the command that completes the checkout's own environment, whatever environment is active."""
    return in_checkout(subject, "env -u VIRTUAL_ENV -u UV_PROJECT_ENVIRONMENT -u UV_OFFLINE uv sync --locked")


# ------------------------------------------------------------ uv


def uv_is_there(subject: Subject) -> Verdict | None:
    """D10: uv can be run, if an environment must still be built."""
    path = subject.program("uv")
    if path is None:
        missing = [need.name for need in subject.worker_needs if not need.present]
        install = "python3 -m pip install --user uv"
        if missing or (subject.venv is not None and not (subject.venv / "bin").is_dir()):
            return failed("there is no uv, and environments must be built", install, changes="your home")
        return warned("there is no uv on PATH; nothing needs it now", install, changes="your home")
    try:
        done = subject.transport.run(
            [path, "--version"], env=passed_on(subject.shell), timeout_s=_UV_TIMEOUT_S
        )
    except TransportError as error:
        return unknown(f"{path}: {error.what}", f"{path} --version")
    version = clean(done.stdout.strip() or done.stderr.strip())[:80]
    if done.code:
        return failed(f"{path} does not start: {version}", "python3 -m pip install --user --upgrade uv")
    return passed(f"{version}, {path}")


def uv_cache_is_filled(subject: Subject) -> Verdict | None:
    """D11: nodes without internet can build what is missing from uv's cache."""
    if subject.context is None or not subject.offline:
        return None
    cache = package_cache(subject.context, subject.worker_needs)
    if cache is None:
        return passed("no environment has to be built")
    if cache.present:
        return passed(f"{cache.path} holds packages")
    command = in_checkout(subject, cache.command) if subject.checkout is not None else cache.command
    if cache.present is None:
        return unknown(f"it is in {cache.path}", cache.command)
    return failed(f"{cache.path} is empty, and nodes have no internet", command, changes=_CHANGES_WORKERS)


# ------------------------------------------------------------ checkout


def checkout_is_clean(subject: Subject) -> Verdict:
    """D12: there is a checkout; its commit is the whole truth about its files."""
    if subject.checkout is None:
        problem = subject.checkout_problem
        text = "; ".join(filter(None, (problem.what, problem.fix))) if problem is not None else "not known"
        return failed(text, "export NEMO_RL_ROOT=DIRECTORY-OF-NEMO-RL", changes="your shell")
    checkout = subject.checkout
    state = checkout_state(subject.transport, subject.shell, checkout.path)
    name = f"NeMo-RL {checkout.version or 'of an unknown version'} in {checkout.path}"
    if not state.commit:
        return unknown(f"{name}; git tells no commit")
    text = f"{name}, {state.branch or 'no branch'} at {state.commit[:10]}"
    if not state.dirty:
        return passed(text)
    changes = state.changes.rpartition("\n")[2].strip()
    untracked = counted(state.untracked, "untracked file") if state.untracked else ""
    command = f"git -C {shlex.quote(checkout.path)} status"
    return warned(f"{text}, with changes: {', '.join(filter(None, (changes, untracked)))}", command)


_SUBMODULE = re.compile(r"^\s*path\s*=\s*(\S+)\s*$", re.MULTILINE)


def submodules_are_there(subject: Subject) -> Verdict | None:
    """D13: the submodules are checked out: packages of the environments are built from them."""
    root = checkout_path(subject)
    try:
        text = (root / ".gitmodules").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    paths = [path for path in _SUBMODULE.findall(text) if ".." not in Path(path).parts]
    empty = [path for path in paths if not _has_files(root / path)]
    if empty:
        command = f"git -C {shlex.quote(str(root))} submodule update --init --recursive"
        return failed(
            f"empty: {', '.join(map(clean, empty))}", command, changes="the checkout", automatic=True
        )
    return passed(counted(len(paths), "submodule"))


def _has_files(path: Path) -> bool:
    return path.is_dir() and next(path.iterdir(), None) is not None


# ------------------------------------------------------------ the driver's environment


def driver_venv_has_ray(subject: Subject) -> Verdict | None:
    """D14: `python` and `ray` are in the driver's environment, which nodes start by their paths."""
    venv = subject.venv
    if venv is None:
        return None
    try:
        check_venv(subject.transport, venv)
    except TransportError as error:
        if subject.checkout is None or venv != checkout_path(subject) / ".venv":
            return failed(
                f"{error.what} ({venv})",
                f"uv pip install --python {shlex.quote(str(venv))}/bin/python 'ray[default]'",
            )
        return failed(f"{error.what} ({venv})", sync_command(subject), changes=_BUILT, automatic=True)
    return passed(f"{venv}/bin/python, {venv}/bin/ray")


def driver_python_starts(subject: Subject) -> Verdict | None:
    """D15: the driver's Python starts with the libraries that the job has."""
    venv = subject.venv
    if venv is None or not Venv(venv).python.exists():
        return None
    if subject.site.modules:
        return passed(f"jobs load {', '.join(subject.site.modules)}; it is started there")
    state = interpreter_state(subject.transport, str(venv), subject.shell, subject.job)
    obstacle = state.obstacle(subject.loaded)
    if obstacle is not None:
        names = "loaded" if subject.loaded else "NAMES"
        command = f"distill-tui submit FILE --modules {names}"
        return failed(f"{obstacle.what}: {obstacle.fix}", command, changes="the modules of jobs, remembered")
    if note := state.note(subject.loaded):
        return warned(
            note, "distill-tui submit FILE --modules loaded", changes="the modules of jobs, remembered"
        )
    return passed(f"{state.python} starts")


def driver_venv_is_complete(subject: Subject) -> Verdict | None:
    """D16: the driver's environment has the packages of pyproject.toml, in the versions of uv.lock."""
    venv = subject.venv
    if venv is None or not Venv(venv).packages:
        return None
    gaps = _gaps(subject, Venv(venv), ())
    if gaps is None:
        return unknown(f"{checkout_path(subject)}/pyproject.toml cannot be read")
    if not gaps:
        return passed(f"{counted(len(Venv(venv).packages), 'package')} in {venv}")
    judge = failed if any(gap.stops_runs for gap in gaps) else warned
    return judge(f"{venv}: {_few(gaps)}", sync_command(subject), changes=_BUILT, automatic=True)


def driver_venv_is_in_place(subject: Subject) -> Verdict | None:
    """D17: the driver's environment was built where it is, for a Python that is there."""
    venv = subject.venv
    if venv is None or not (venv / "bin").is_dir():
        return None
    if reason := Venv(venv).misplacement():
        move = f"mv {shlex.quote(str(venv))} {shlex.quote(str(venv) + '.old')}"
        return failed(f"{venv}: {reason}", move, sync_command(subject), changes=_BUILT)
    home = Venv(venv).settings.get("home", "")
    return passed(f"{venv}" + f", Python of {home}" * bool(home))


@dataclass(frozen=True, slots=True)
class PackageGap:
    """A package that an environment lacks, or has in another version."""

    text: str
    stops_runs: bool
    """Whether no run works without it."""


def _gaps(subject: Subject, venv: Venv, extras: tuple[str, ...]) -> list[PackageGap] | None:
    """Return what an environment lacks, with some extras; None where pyproject.toml cannot be read."""
    checkout = checkout_path(subject)
    project = read_project(checkout)
    if project is None:
        return None
    texts = (*project.dependencies, *(text for name in extras for text in project.extras.get(name, ())))
    names = required_names(texts, platform.machine())
    locked = locked_versions(checkout, names)
    # What uv's overrides leave out is not in the lock.
    return list(_differences(venv, names & locked.keys() if locked else names, locked))


def _differences(
    venv: Venv, names: frozenset[str], locked: Mapping[str, frozenset[str]]
) -> Iterator[PackageGap]:
    for name in sorted(names, key=lambda item: (item not in _ESSENTIAL, item)):
        version, versions = venv.packages.get(name), locked.get(name, frozenset())
        if version is None:
            yield PackageGap(f"no {name}", name in _ESSENTIAL)
        # A local version (2.11.0+cu130) is written into the lock or not, by the index that it came from.
        elif versions and version.partition("+")[0] not in {text.partition("+")[0] for text in versions}:
            text = f"{name} {clean(version)}, uv.lock has {' or '.join(map(clean, sorted(versions)))}"
            yield PackageGap(text, stops_runs=False)


def _few(gaps: list[PackageGap]) -> str:
    more = f" and {len(gaps) - _NAMED} more" if len(gaps) > _NAMED else ""
    return ", ".join(gap.text for gap in gaps[:_NAMED]) + more


# ------------------------------------------------------------ the workers' environments


def worker_venvs_are_there(subject: Subject) -> Verdict | None:
    """D18: the environments of the recipe's workers are built."""
    needs = [need for need in subject.worker_needs if not need.stuck]
    missing = [need for need in needs if not need.present]
    if not subject.worker_needs:
        return None
    if missing:
        commands = tuple(dict.fromkeys(prefetch(subject, need) for need in missing))
        text = f"not in {subject.worker_venvs}: {', '.join(need.name for need in missing)}"
        if subject.offline:
            return failed(text, *commands, changes=_CHANGES_WORKERS, automatic=True)
        return warned(f"{text}; the job builds them", *commands, changes=_CHANGES_WORKERS, automatic=True)
    return passed(f"{len(needs)} in {subject.worker_venvs}")


def prefetch(subject: Subject, need: Need) -> str:
    """Return the command that builds a worker's environment, on a node with internet."""
    return in_checkout(subject, re.sub(r"\buv run\b", "env -u UV_OFFLINE uv run", need.command))


def no_building_was_interrupted(subject: Subject) -> Verdict | None:
    """D19: no building of a worker's environment was interrupted: every node would wait for its end."""
    if not subject.worker_needs:
        return None
    stuck = [need for need in subject.worker_needs if need.stuck]
    if stuck:
        commands = tuple(prefetch(subject, need) for need in stuck)
        return failed(
            f"begun and never finished in {subject.worker_venvs}: {', '.join(need.name for need in stuck)}",
            *commands,
            changes=_CHANGES_WORKERS,
            automatic=True,
        )
    return passed(f"no {subject.worker_venvs}/*/STARTED_ENV_BUILDER")


def _built_workers(subject: Subject) -> Iterator[tuple[str, Venv]]:
    """Yield the workers' environments that are there, by the full name of the worker."""
    directory = subject.worker_venvs
    for need in subject.worker_needs:
        if need.present and directory is not None:
            for folder in directory.iterdir():
                if (
                    folder.name.endswith(need.name.rpartition(" ")[2])
                    and (folder / "bin" / "python").exists()
                ):
                    yield folder.name, Venv(folder)


def worker_venvs_are_complete(subject: Subject) -> Verdict | None:
    """D20: the workers' environments have the packages of their extras, as the checkout names these."""
    extras, problems, stops_runs, count = worker_extras(checkout_path(subject)), [], False, 0
    for actor, venv in _built_workers(subject):
        if not venv.packages or actor not in extras:
            continue
        if gaps := _gaps(subject, venv, extras[actor]):
            problems.append(f"{actor.rpartition('.')[2]} ({', '.join(extras[actor])}): {_few(gaps)}")
            stops_runs = stops_runs or any(gap.stops_runs for gap in gaps)
        count += 1
    if problems:
        judge = failed if stops_runs else warned
        return judge("; ".join(problems), _rebuild(subject), changes=_CHANGES_WORKERS)
    return passed(f"{count} hold the packages of their extras") if count else None


def worker_venvs_are_in_place(subject: Subject) -> Verdict | None:
    """D21: the workers' environments were built where they are, for a Python that is there."""
    workers = list(_built_workers(subject))
    reasons = [
        f"{actor.rpartition('.')[2]}: {reason}" for actor, venv in workers if (reason := venv.misplacement())
    ]
    if reasons:
        return failed("; ".join(reasons), _rebuild(subject), changes=_CHANGES_WORKERS)
    return passed(f"{len(workers)} in {subject.worker_venvs}") if workers else None


def _rebuild(subject: Subject) -> str:
    """Return the command that builds the environments of the recipe's workers anew."""
    names = dict.fromkeys(need.command.rpartition(" ")[2] for need in subject.worker_needs)
    command = f"uv run python -m nemo_rl.utils.prefetch_venvs {' '.join(names)}"
    variables = f"NEMO_RL_VENV_DIR={shlex.quote(str(subject.worker_venvs))} NRL_FORCE_REBUILD_VENVS=true"
    return in_checkout(subject, f"env -u UV_OFFLINE {variables} {command}")
