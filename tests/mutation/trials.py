"""Trials of mutants: each in a process of its own, forked where the tests are collected already.

Most mutants are put into the imported module. What cannot be (a dataclass's defaults, a compiled pattern) is
imported anew, with all that uses it, in a process that has only the libraries.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

import grimp
import pytest

from tests.mutation.mutants import Mutant
from tests.mutation.transplant import transplant

PACKAGES = ("recipes", "launcher", "tui")
_OPTIONS = (
    "-x", "-q", "-s", "--assert=plain", "-p", "no:cacheprovider", "-p", "pytest_timeout",
    "-p", "pytest_asyncio.plugin", "-o", "addopts=", "--import-mode=importlib",
    "-m", "not slow and not slurm",
)  # fmt: skip
_FAILED = 1
_NEEDS_IMPORT = 77
"""Exit code of a trial whose mutant cannot be put into an imported module."""
_BROKEN = 70


class TrialError(Exception):
    """The tests do not pass without a mutant, or could not be run."""


@dataclass
class Forks:
    """Processes that run beside one another, at most `jobs` of them, none longer than `limit_s`."""

    jobs: int
    scratch: Path
    limit_s: float = 300.0

    def run(self, works: Iterable[Callable[[], int]]) -> Iterator[tuple[int, int]]:
        """Yield each work's number and exit code, -1 of one that took too long."""
        running: dict[int, tuple[int, float]] = {}
        for number, work in enumerate(works):
            while len(running) >= self.jobs:
                yield from self._ended(running)
            pid = os.fork()
            if pid == 0:
                self._child(work, self.scratch / str(number))
            running[pid] = (number, time.monotonic())
        while running:
            yield from self._ended(running)

    def _child(self, work: Callable[[], int], base: Path) -> None:
        code = _BROKEN
        try:
            os.setsid()
            log = os.open(f"{base}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            base.mkdir()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(base)
            code = work()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _ended(self, running: dict[int, tuple[int, float]]) -> Iterator[tuple[int, int]]:
        time.sleep(0.005)
        for pid, (number, begun) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            late = not ended and time.monotonic() - begun > self.limit_s
            if not ended and not late:
                continue
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # also what its tests started
            if late:
                os.waitpid(pid, 0)
            del running[pid]
            shutil.rmtree(self.scratch / str(number), ignore_errors=True)
            yield number, -1 if late else os.waitstatus_to_exitcode(status)


@dataclass
class Laboratory:
    """Where the mutants of one module are tried."""

    module: str
    """Path of the module's file, from the project's root."""
    tests: Sequence[str]
    jobs: int
    scratch: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="mutation-")))

    def survivors(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Return the mutants that the tests do not notice.

        Raises:
            TrialError: the tests fail without a mutant.
        """
        try:
            collected = _Collected(self, mutants)
            first = Forks(1, self.scratch / "first", 3600.0)
            first.scratch.mkdir()
            for _, code in first.run(
                [lambda: int(pytest.main([*_OPTIONS, *self.tests], plugins=[collected]))]
            ):
                if code:
                    log = (first.scratch / "0.log").read_text(errors="replace")
                    raise TrialError(f"{self.module}: the tests do not pass without a mutant\n{log[-4000:]}")
            answer = json.loads(self.answer.read_text())
            survived, again = answer["survived"], answer["again"]
            if again:
                self._load(answer["loaded"])
                forks = Forks(self.jobs, self.scratch, answer["limit_s"] + 30)
                works = [partial(self._imported_anew, mutants[number]) for number in again]
                survived += [again[number] for number, code in forks.run(works) if code == 0]
            return [mutants[number] for number in sorted(survived)]
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def answer(self) -> Path:
        """The file that the process with the collected tests writes."""
        return self.scratch / "answer.json"

    @property
    def name(self) -> str:
        """The module's name."""
        return self.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def _load(self, names: Iterable[str]) -> None:
        """Import what does not depend on the module."""
        changed = {self.name, *grimp.build_graph(*PACKAGES).find_downstream_modules(self.name)}
        for name in names:
            if name not in changed:
                importlib.import_module(name)

    def _imported_anew(self, mutant: Mutant) -> int:
        sys.meta_path.insert(0, _Finder(self.name, str(Path(mutant.module).absolute()), mutant.code))
        return int(pytest.main([*_OPTIONS, *self.tests]))


class _Collected:
    """Plugin that, once the tests are collected, runs them for each mutant in a fork instead of once."""

    def __init__(self, laboratory: Laboratory, mutants: Sequence[Mutant]) -> None:
        self._laboratory, self._mutants = laboratory, mutants
        self._took: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[report.nodeid] = self._took.get(report.nodeid, 0.0) + report.duration

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        laboratory, items = self._laboratory, list(session.items)
        if not items:
            raise TrialError(f"{laboratory.module}: no tests")
        loaded = _loaded()
        durations = laboratory.scratch / "durations.json"

        def unchanged() -> int:
            code = _run(session)
            durations.write_text(json.dumps(self._took))
            return code

        forks = Forks(laboratory.jobs, laboratory.scratch)
        for _, code in forks.run([unchanged]):
            if code:
                session.testsfailed = 1
                print((laboratory.scratch / "0.log").read_text(errors="replace"))
                return True
        took = json.loads(durations.read_text())
        session.items = sorted(items, key=lambda item: took.get(item.nodeid, 0.0))
        forks.limit_s = 10 + 5 * sum(took.values())
        codes = dict(forks.run([self._trial(session, mutant) for mutant in self._mutants]))
        if broken := [number for number, code in codes.items() if code == _BROKEN]:
            raise TrialError((laboratory.scratch / f"{broken[0]}.log").read_text(errors="replace"))
        answer = {
            "survived": [number for number, code in codes.items() if code == 0],
            "again": [number for number, code in codes.items() if code == _NEEDS_IMPORT],
            "loaded": loaded,
            "limit_s": forks.limit_s,
        }
        laboratory.answer.write_text(json.dumps(answer))
        return True

    def _trial(self, session: pytest.Session, mutant: Mutant) -> Callable[[], int]:
        def work() -> int:
            module = sys.modules.get(self._laboratory.name) or importlib.import_module(self._laboratory.name)
            try:
                fits = transplant(module, mutant.function, mutant.code)
            except Exception as error:  # noqa: BLE001 - the mutant cannot even be imported
                print(f"not importable: {error!r}")
                return _FAILED
            return _run(session) if fits else _NEEDS_IMPORT

        return work


def _run(session: pytest.Session) -> int:
    """Run the collected tests up to the first that fails."""
    for place, item in enumerate(session.items):
        following = session.items[place + 1] if place + 1 < len(session.items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return _FAILED
    return 0


def _loaded() -> list[str]:
    """Return the names of the imported modules that a later process may import in the same way."""
    return [
        name
        for name, module in list(sys.modules.items())
        if (spec := getattr(module, "__spec__", None)) is not None
        and spec.name == name
        and name.partition(".")[0] not in ("tests", "conftest", "__main__", "distill_tui")
    ]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, with another source."""

    def __init__(self, name: str, path: str, code: str) -> None:
        self._name, self._path, self._loader = name, path, _Loader(name, path, code)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        package = [str(Path(self._path).parent)] if Path(self._path).name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self._loader, submodule_search_locations=package
        )


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads another source than the file's."""

    def __init__(self, name: str, path: str, code: str) -> None:
        super().__init__(name, path)
        self._code = code

    def get_data(self, path: str | bytes) -> bytes:
        return self._code.encode()

    def path_stats(self, path: str | bytes) -> Mapping[str, float]:
        raise OSError  # no bytecode of it is kept
