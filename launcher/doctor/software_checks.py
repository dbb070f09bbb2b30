"""Checks of software: uv, the checkout, the driver's Python environment."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.checkout import check_venv
from launcher.checkout_state import checkout_state
from launcher.doctor.package_gaps import direct_packages, few, gap_words, gaps_of
from launcher.doctor.uv_cache import absent_packages
from launcher.doctor.venv import Venv
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.errors import TransportError
from launcher.interpreter import interpreter_state
from launcher.plan import passed_on
from launcher.text import clean
from recipes.checks.offline import package_cache
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject

_UV_TIMEOUT_S = 1.5
_BUILT = "one Python environment; packages come from uv's cache or the internet"
CHANGES_WORKERS = "the workers' Python environments; packages come from uv's cache or the internet"


def checkout_path(subject: Subject) -> Path:
    """Return the checkout's directory; only for checks that need one."""
    assert subject.checkout is not None
    return subject.path(subject.checkout.path)


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
            [path, "--version"], env=passed_on(subject.shell), timeout_s=subject.call_limit(_UV_TIMEOUT_S)
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
    command = in_checkout(subject, cache.command) if subject.checkout is not None else cache.command
    if cache.present:
        if absent := _not_cached(subject, subject.path(cache.path)):
            text = f"{cache.path} lacks {few(absent)}, and nodes have no internet"
            return warned(text, command, changes=CHANGES_WORKERS)
        return passed(f"{cache.path} holds packages")
    if cache.present is None:
        return unknown(f"it is in {cache.path}", cache.command)
    return failed(f"{cache.path} is empty, and nodes have no internet", command, changes=CHANGES_WORKERS)


def _not_cached(subject: Subject, cache: Path) -> list[str]:
    """Return packages that the environments which are missing need, and that uv's cache lacks."""
    if subject.checkout is None:
        return []
    missing = [subject.actors.get(need.actor) for need in subject.worker_needs if not need.present]
    extras = tuple(dict.fromkeys(name for item in missing if item is not None for name in item.extras))
    names = direct_packages(checkout_path(subject), extras, subject.node.architecture)
    return absent_packages(cache, checkout_path(subject), names or ())


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
        return unknown(f"{name}; git tells no commit", f"git -C {shlex.quote(checkout.path)} status")
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
        text = read_regular(root / ".gitmodules", SOURCE_BYTES).decode("utf-8", "replace")
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
    gaps = gaps_of(checkout_path(subject), Venv(venv), (), subject.node.architecture)
    if gaps is None:
        return unknown(f"{checkout_path(subject)}/pyproject.toml cannot be read")
    if not gaps:
        return passed(f"{counted(len(Venv(venv).packages), 'package')} in {venv}")
    judge = failed if any(gap.stops_runs for gap in gaps) else warned
    return judge(f"{venv}: {gap_words(gaps)}", sync_command(subject), changes=_BUILT, automatic=True)


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
