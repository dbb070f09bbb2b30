"""Checks run side by side with limits; fixes are shown, run, interrupted and gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from launcher.doctor.fixing import run_step, script, steps
from launcher.doctor.isolation import isolated
from launcher.doctor.runner import examine
from launcher.doctor.subject import Subject
from launcher.doctor.verdict import DoctorCheck, Examination, HealthReport, Verdict, failed, passed, warned
from launcher.errors import TransportError
from launcher.sites import Site
from launcher.transports.local import LocalTransport

SITE = Site("test", "Test", (), (), ())


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(LocalTransport(), {}, {}, SITE, tmp_path)


def check(id_: str, judge: object, *needs: str) -> DoctorCheck:
    return DoctorCheck(id_, id_, "login", judge, frozenset(needs))  # type: ignore[arg-type]


def test_a_check_that_hangs_costs_its_own_verdict(subject: Subject) -> None:
    release = threading.Event()
    told: list[str] = []

    def hangs(_: Subject) -> Verdict:
        release.wait(60)
        return passed("late")

    checks = [check("A", lambda _: passed("1")), check("B", hangs), check("C", lambda _: failed("3"))]
    report = examine(checks, subject, limit_s=0.5, tell=lambda item: told.append(item.check.id))
    release.set()
    assert [(item.check.id, item.verdict.outcome) for item in report.examinations] == [
        ("A", "pass"), ("B", "unknown"), ("C", "fail"),
    ]  # fmt: skip
    assert "no answer within 0.5 s" in report.examinations[1].verdict.evidence
    assert sorted(told) == ["A", "B", "C"]
    assert not report.ok
    assert report.in_words() == "1 not ready, 0 warnings, 1 unknown, 1 passed"


def test_all_run_side_by_side(subject: Subject) -> None:
    together = threading.Barrier(8)
    checks = [check(f"A{number}", lambda _: passed(str(together.wait(30)))) for number in range(8)]
    report = examine(checks, subject, limit_s=30)
    assert {item.verdict.outcome for item in report.examinations} == {"pass"}


def test_errors_of_the_machine_are_unknown_and_what_does_not_apply_is_left_out(subject: Subject) -> None:
    def raises(error: Exception) -> object:
        def judge(_: Subject) -> Verdict:
            raise error

        return judge

    checks = [
        check("A", raises(TransportError("no file server"))),
        check("B", raises(PermissionError(13, "Permission denied"))),
        check("C", lambda _: None),
        check("D", lambda _: passed(""), "recipe"),
    ]
    report = examine(checks, subject, limit_s=20)
    assert [item.verdict.outcome for item in report.examinations] == ["unknown", "unknown"]
    assert report.examinations[0].verdict.evidence == "no file server"
    assert report.ok


def report_of(*verdicts: Verdict) -> HealthReport:
    checks = [check(f"D{number}", lambda _: None) for number in range(len(verdicts))]
    return HealthReport(tuple(map(Examination, checks, verdicts)))


def test_each_command_is_offered_once_in_order() -> None:
    report = report_of(
        failed("a", "one", "two", changes="c", automatic=True),
        warned("b", "two", "three", changes="d"),
        passed("c"),
    )
    listed = [(step.command, step.checks, step.automatic) for step in steps(report)]
    assert listed == [("one", ("D0",), True), ("two", ("D0", "D1"), True), ("three", ("D1",), False)]


def test_the_script_is_one_that_bash_reads_and_runs(tmp_path: Path) -> None:
    report = report_of(
        failed("a\nb; `rm -rf x`", f"touch {tmp_path}/one", automatic=True),
        failed("manual", f"touch {tmp_path}/two"),
        warned("again", f"touch {tmp_path}/one", f"touch {tmp_path}/three", automatic=True),
        failed("elsewhere", f"cd {tmp_path} && touch three", "test ! -e three", automatic=True),
    )
    text = script(report)
    assert text.count(f"\ntouch {tmp_path}/one") == 1
    subprocess.run(["bash"], input=text, text=True, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "three"]


def test_a_step_runs_in_the_user_s_environment_and_tells_its_code(tmp_path: Path) -> None:
    (first,) = steps(report_of(failed("a", f'test "$NAME" = x && touch {tmp_path}/done', automatic=True)))
    assert run_step(first, {"PATH": os.environ["PATH"], "NAME": "x"}) == 0
    assert (tmp_path / "done").exists()
    assert run_step(first, {"PATH": os.environ["PATH"], "NAME": "y"}) == 1


def test_an_interrupt_ends_the_command_with_its_children(tmp_path: Path) -> None:
    command = f"sleep 60 & echo $! > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait"
    (step,) = steps(report_of(failed("a", command, automatic=True)))

    def interrupt() -> None:
        end = time.monotonic() + 30
        while not (tmp_path / "pid").exists() and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_step(step, dict(os.environ))
    thread.join()
    pid = (tmp_path / "pid").read_text().strip()
    end = time.monotonic() + 30
    while _lives(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _lives(pid)


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ISOLATED = """
import subprocess, sys, threading, time
from launcher.doctor.isolation import isolated
from launcher.errors import TransportError

def action():
    if sys.argv[1] == "hangs":
        time.sleep(600)
    if sys.argv[1] == "fails":
        raise TransportError("what", where="there", fix="so")
    threading.Thread(target=time.sleep, args=(600,)).start()
    if sys.argv[1] == "leaves a process":
        # It stands for a child that cannot be ended: what is read from this program must end all the same.
        return ["x" * subprocess.Popen(["sleep", "200"]).pid]
    return ["x" * 100_000]

try:
    print(len(isolated(action, float(sys.argv[2]))[0]))
except TransportError as error:
    print(error.what, error.where, error.fix, int(error.exit_code))
except TimeoutError as error:
    print(error)
"""


def test_what_is_left_behind_keeps_no_stream_open() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, "leaves a process", "60"],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    os.kill(int(done.stdout), signal.SIGKILL)


@pytest.mark.parametrize(
    ("case", "limit_s", "printed"),
    [
        ("leaves a thread", 60, "100000"),
        ("fails", 60, "what there so 3"),
        ("hangs", 0.1, "the examination gave no result"),
    ],
)
def test_an_examination_has_a_process_of_its_own(case: str, limit_s: float, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, case, str(limit_s)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.stdout.strip(), done.returncode) == (printed, 0), done.stderr
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    assert isolated(os.getpid, 60) == os.getpid()  # other threads: no fork
    stop.set()
    other.join()
