"""Evidence of failures: what is kept, what counts as overcome, what a retried start takes back."""

from __future__ import annotations

import dataclasses

import pytest

from launcher.logs.events import ExceptionSeen, FindingSeen, Role, Source, StartRetried
from launcher.monitor.open_evidence import RETRYING, OpenEvidence, retry_finding

KEPT_PROCESSES = 1024


def source(line: int, log: str = "ray-driver.log", role: Role = Role.DRIVER) -> Source:
    return Source(log, role, line)


def finding(
    line: int, log: str = "ray-driver.log", role: Role = Role.DRIVER, **fields: object
) -> FindingSeen:
    event = FindingSeen("oom", "out of memory", "fatal", "the line", source(line, log, role))
    return dataclasses.replace(event, **fields)  # type: ignore[arg-type]


def exception(
    line: int, log: str = "ray-driver.log", role: Role = Role.DRIVER, text: str = "E: x"
) -> ExceptionSeen:
    return ExceptionSeen(text, source(line, log, role), line - 2, own=True, wrapper=False)


def retried(line: int, log: str = "launcher.log") -> StartRetried:
    return StartRetried(
        node="jwb0002",
        attempt=1,
        of=3,
        text="starting it again",
        source=source(line, log, Role.SLURM),
        time=7.5,
    )


def retry_line(kept: OpenEvidence) -> int | None:
    return kept.retry.source.line if kept.retry is not None else None


def evidence(*events: FindingSeen | ExceptionSeen) -> OpenEvidence:
    kept = OpenEvidence()
    for event in events:
        if isinstance(event, FindingSeen):
            kept.add_finding(event)
        else:
            kept.add_exception(event)
    return kept


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_the_next_lines_tell_where_a_finding_happened(distance: int) -> None:
    kept = evidence(finding(5), finding(5 + distance, node="jwb0001", rank=3, pid=77))
    (only,) = kept.findings()
    assert (only.source.line, only.node, only.rank, only.pid) == (5, "jwb0001", 3, 77)
    kept.add_finding(finding(6, node="jwb0002", rank=4, pid=78))  # it has its place already
    assert [item.node for item in kept.findings()] == ["jwb0001", "jwb0002"]


@pytest.mark.parametrize("line", [4, 12])
def test_other_lines_are_of_another_process(line: int) -> None:
    kept = evidence(finding(5), finding(line, node="jwb0001", rank=3, pid=77))
    assert [item.node for item in kept.findings()] == [None, "jwb0001"]


def test_a_second_line_without_a_process_adds_nothing() -> None:
    kept = evidence(finding(5, text="first"), finding(6, text="second"))
    assert [item.text for item in kept.findings()] == ["first"]


def test_the_first_line_of_a_process_is_kept() -> None:
    kept = evidence(finding(9, node="a"), finding(5, node="a"), finding(7, node="a"))
    assert [item.source.line for item in kept.findings()] == [5]


@pytest.mark.parametrize(
    ("stamps", "line"),
    [
        ((100.0, 98.0), 20),
        ((100.0, 99.0), 10),
        ((100.0, 100.0), 10),
        ((98.0, 100.0), 10),
        ((100.0, None), 10),
    ],
)
def test_a_line_with_an_earlier_time_is_the_first(stamps: tuple[float, float | None], line: int) -> None:
    one, other = stamps
    kept = evidence(finding(10, node="a", stamp=one), finding(20, node="a", stamp=other))
    assert [item.source.line for item in kept.findings()] == [line]


def test_times_that_are_equal_keep_the_first_line() -> None:
    kept = evidence(
        finding(10, node="a", stamp=5.0, text="one"), finding(10, node="a", stamp=5.0, text="two")
    )
    assert [item.text for item in kept.findings()] == ["one"]


def test_of_each_kind_and_log_so_many_processes_are_kept() -> None:
    kept = evidence(*(finding(number + 1, pid=number) for number in range(KEPT_PROCESSES + 2)))
    assert [item.pid for item in kept.findings()] == list(range(KEPT_PROCESSES))
    kept.add_finding(finding(1, pid=5, stamp=-9.0, text="earlier"))
    assert len(kept.findings()) == KEPT_PROCESSES
    kept.add_finding(finding(1, "other.log"))
    kept.add_finding(finding(1, id="nan"))
    assert len(kept.findings()) == KEPT_PROCESSES + 2


def test_logs_that_stay_keep_their_count() -> None:
    kept = evidence(
        *(finding(number + 1, pid=number) for number in range(KEPT_PROCESSES)),
        *(finding(number + 1, "oom", pid=number) for number in range(KEPT_PROCESSES)),
    )
    kept.drop_log("oom")
    kept.add_finding(finding(9999, pid=9999))
    assert len(kept.findings()) == KEPT_PROCESSES
    kept.add_finding(finding(1, "oom"))
    assert len(kept.findings()) == KEPT_PROCESSES + 1


def test_what_an_owner_survived_is_no_longer_open() -> None:
    warning = dataclasses.replace(finding(3, id="slow"), severity="warning")
    kept = evidence(finding(3), warning, exception(4), finding(6, pid=2), exception(7))
    kept.note_progress(source(4))
    kept.note_progress(source(2))  # read later, written earlier
    assert [(item.id, item.source.line) for item in kept.findings()] == [("slow", 3), ("oom", 6)]
    assert [item.source.line for item in kept.exceptions()] == [7]
    assert kept.went_on_after(source(4))
    assert not kept.went_on_after(source(5))
    assert not kept.went_on_after(source(1, "other.log"))
    assert not kept.went_on_after(source(1, "another.log", Role.WORKER))


def test_what_is_retried_is_open_until_it_succeeds() -> None:
    kept = evidence(finding(3, retried=True), finding(3, id="other"))
    kept.note_recovery(source(2))
    assert len(kept.findings()) == 2
    kept.note_recovery(source(3))
    assert [item.id for item in kept.findings()] == ["other"]


def test_a_finding_that_was_overcome_gives_way_to_its_next_line() -> None:
    kept = evidence(finding(3, node="a"))
    kept.note_progress(source(4))
    kept.add_finding(finding(8, node="a"))
    assert [item.source.line for item in kept.findings()] == [8]


def test_an_exception_that_comes_again_says_more_and_is_the_latest() -> None:
    kept = evidence(
        exception(4, text="E: x"), exception(9, text="F: y"), exception(4, text="E: x; of rank 3")
    )
    assert [item.message for item in kept.exceptions()] == ["F: y", "E: x; of rank 3"]


def test_a_retried_start_takes_back_what_ray_wrote_and_what_the_launcher_quoted() -> None:
    launcher, worker = ("launcher.log", Role.SLURM), ("ray-worker-1.log", Role.WORKER)
    warning = dataclasses.replace(finding(2, *launcher, id="slow"), severity="warning")
    kept = evidence(
        warning, finding(3, *launcher), finding(6, *launcher, id="later"), finding(50, *worker),
        finding(50, "ray-head.log", Role.HEAD), finding(1), exception(3, *launcher), exception(6, *launcher),
        exception(50, *worker), exception(1),
    )  # fmt: skip
    everything = (kept.findings(), kept.exceptions())
    assert [len(items) for items in everything] == [6, 4]
    assert (kept.findings(retrying=False), kept.exceptions(retrying=False)) == everything
    kept.add_retry(retried(3))
    assert (kept.findings(), kept.exceptions()) == everything
    assert [(item.id, item.source.log) for item in kept.findings(retrying=True)] == [
        ("slow", "launcher.log"), ("later", "launcher.log"), ("oom", "ray-driver.log"),
    ]  # fmt: skip
    assert [item.source[:3:2] for item in kept.exceptions(retrying=True)] == [
        ("launcher.log", 6), ("ray-driver.log", 1),
    ]  # fmt: skip


def test_without_a_retry_only_rays_own_logs_are_of_a_start() -> None:
    kept = evidence(finding(3, "launcher.log", Role.SLURM), finding(3, "ray-worker-1.log", Role.WORKER))
    assert [item.source.log for item in kept.findings(retrying=True)] == ["launcher.log"]


def test_the_latest_retry_is_kept_whatever_the_order_of_reading() -> None:
    kept = OpenEvidence()
    for line in (5, 9, 7):
        kept.add_retry(retried(line))
    assert kept.retry is not None
    assert kept.retry.source.line == 9
    again = dataclasses.replace(retried(9), attempt=2)
    kept.add_retry(again)
    assert kept.retry is again


def test_a_retry_goes_with_its_log_alone() -> None:
    kept = evidence(
        finding(3), finding(3, "launcher.log", Role.SLURM), exception(3), exception(3, "launcher.log")
    )
    kept.add_retry(retried(9))
    kept.drop_log("ray-driver.log")
    assert retry_line(kept) == 9
    assert [item.source.log for item in kept.findings()] == ["launcher.log"]
    assert [item.source.log for item in kept.exceptions()] == ["launcher.log"]
    kept.drop_log("launcher.log")
    assert retry_line(kept) is None
    assert not kept.findings()


def test_a_log_that_restarted_forgets_how_far_it_came() -> None:
    kept = OpenEvidence()
    kept.note_progress(source(9))
    kept.note_recovery(source(9))
    kept.drop_log("ray-driver.log")
    kept.add_finding(finding(1, retried=True))
    assert len(kept.findings()) == 1
    assert not kept.went_on_after(source(1))


def test_the_warning_of_a_retried_start() -> None:
    warning = retry_finding(retried(9))
    assert (warning.id, warning.severity, warning.tier) == ("ray-start-retried", "warning", 3)
    assert RETRYING == "ray-start-retried"
    assert warning.title == "Ray on jwb0002 did not start in time: retrying (1 of 3)"
    assert (warning.text, warning.node, warning.time) == ("starting it again", "jwb0002", 7.5)
    assert warning.fix.startswith("Nothing: the launcher starts it again")
    assert warning.source == source(9, "launcher.log", Role.SLURM)
