"""Following one log: what is read, when it is begun anew, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from launcher.errors import TransportError
from launcher.logs import follow
from launcher.logs.driver_log import DriverReader
from launcher.logs.events import (
    DriverEnded,
    Event,
    LauncherEnded,
    LogChanged,
    LogRestarted,
    MetricRecorded,
    MilestoneReached,
    Role,
    Source,
)
from launcher.logs.follow import BUDGET, CHUNK, Follower, reader_for
from launcher.logs.sources import LogFile
from launcher.transports.base import FileStat
from launcher.transports.local import LocalTransport
from tests.driver_text import DriverText

NAME = "41-logs/ray-driver.log"


def clock(offset: int) -> float:
    return 1000.0 + offset


@dataclass
class Disk(LocalTransport):
    """A file whose bytes, inode and time are what the test says; it counts what is read of it."""

    data: bytes = b""
    inode: int = 1
    mtime: float = 5.0
    problem: str = ""
    reads: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        self.reads.append((path, offset, size))
        if self.problem:
            raise TransportError(self.problem)
        return self.data[offset : offset + size]

    @property
    def entry(self) -> FileStat:
        return FileStat(NAME, len(self.data), self.mtime, self.inode, is_dir=False)


def following(disk: Disk, role: Role = Role.DRIVER) -> Follower:
    return Follower.of(disk, LogFile(NAME, "/x/log", role))


def poll(follower: Follower, disk: Disk, budget: int = BUDGET) -> list[Event]:
    return list(follower.poll(disk.entry, clock, budget))


def changed(disk: Disk, size: int, lines: int, problem: str = "") -> LogChanged:
    return LogChanged(NAME, Role.DRIVER, size, lines, problem, disk.mtime)


STARTED = MilestoneReached("driver-started", Source(NAME, Role.DRIVER, 1), 1000.0)


def test_each_role_has_its_reader() -> None:
    assert isinstance(reader_for(LogFile("a", "/a", Role.DRIVER)), DriverReader)
    for role in (Role.HEAD, Role.WORKER, Role.SLURM, Role.COMPANION):
        assert not isinstance(reader_for(LogFile("a", "/a", role)), DriverReader)
    text = DriverText([0.5]).text().encode()
    follower = following(Disk(text))
    metrics = [event for event in poll(follower, Disk(text)) if isinstance(event, MetricRecorded)]
    assert metrics
    assert {event.source.log for event in metrics} == {NAME}
    assert {event.source.role for event in metrics} == {Role.DRIVER}


def test_what_the_first_bytes_tell() -> None:
    disk = Disk(b"one\ntwo\n")
    follower = following(disk)
    assert follower.offset == 0
    assert poll(follower, disk) == [STARTED, changed(disk, 8, 2)]
    assert (follower.offset, follower.inode) == (8, 1)
    assert disk.reads == [("/x/log", 0, 8)]


def test_an_empty_log_has_not_begun() -> None:
    disk = Disk()
    follower = following(disk)
    assert poll(follower, disk) == [changed(disk, 0, 0)]
    assert disk.reads == []
    disk.data = b"x\n"
    assert poll(follower, disk) == [STARTED, changed(disk, 2, 1)]


def test_a_log_that_is_not_the_drivers_tells_no_start() -> None:
    disk = Disk(b"one\n")
    assert poll(following(disk, Role.HEAD), disk) == [LogChanged(NAME, Role.HEAD, 4, 1, "", 5.0)]


def test_only_what_is_new_is_read_and_the_start_is_told_once() -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.data += b"two\nthr"
    assert poll(follower, disk) == [changed(disk, 11, 2)]
    assert disk.reads[1:] == [("/x/log", 4, 7)]


def test_a_silent_log_is_neither_read_nor_told() -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.reads.clear()
    assert poll(follower, disk) == []
    disk.mtime = 6.0
    assert poll(follower, disk) == [changed(disk, 4, 1)]
    assert disk.reads == []


def test_another_file_of_the_same_name_size_and_time_is_read_anew() -> None:
    """`cp --preserve` and a rename, say: only the inode tells."""
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.data, disk.inode = b"two\n", 2
    assert poll(follower, disk) == [LogRestarted(Source(NAME, Role.DRIVER, 0)), STARTED]
    assert disk.reads == [("/x/log", 0, 4), ("/x/log", 0, 4)]
    assert follower.inode == 2
    assert poll(follower, disk) == []


@pytest.mark.parametrize("data", [b"", b"one", b"on\n"])
def test_a_log_that_is_shorter_begins_anew(data: bytes) -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.data = data
    events = poll(follower, disk)
    assert events[0] == LogRestarted(Source(NAME, Role.DRIVER, 0))
    assert events[-1] == changed(disk, len(data), data.count(b"\n"))
    assert (STARTED in events) == bool(data)


def test_a_log_that_is_as_long_as_what_was_read_does_not_begin_anew() -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.mtime = 7.0
    assert not [event for event in poll(follower, disk) if isinstance(event, LogRestarted)]


def test_what_is_left_of_the_turn_comes_with_the_next_one() -> None:
    disk = Disk(b"0123456\n" * 10)
    follower = following(disk)
    assert poll(follower, disk, 20) == [STARTED, changed(disk, 20, 2)]
    assert poll(follower, disk, 20) == [changed(disk, 40, 5)]
    assert poll(follower, disk, 100) == [changed(disk, 80, 10)]
    assert [size for _, _, size in disk.reads] == [20, 20, 40]


def test_a_turn_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (CHUNK, BUDGET) == (1 << 20, 8 << 20)
    monkeypatch.setattr(follow, "CHUNK", 16)
    disk = Disk(b"0123456\n" * 5)
    follower = following(disk)
    list(follower.poll(disk.entry, clock))
    assert disk.reads == [("/x/log", 0, 16), ("/x/log", 16, 16), ("/x/log", 32, 8)]
    assert follower.offset == 40


def test_without_a_limit_a_turn_has_one() -> None:
    disk = Disk(b"\n" * (BUDGET + 5))
    follower = following(disk, Role.COMPANION)
    list(follower.poll(disk.entry, clock))
    assert follower.offset == BUDGET


def test_a_log_that_is_gone_and_comes_back() -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    gone = LogChanged(NAME, Role.DRIVER, 4, 1, "the file is gone", None)
    assert list(follower.poll(None, clock)) == [gone]
    assert list(follower.poll(None, clock)) == []
    assert poll(follower, disk) == [changed(disk, 4, 1)]
    assert len(disk.reads) == 1


def test_a_log_that_cannot_be_read_is_tried_again_each_time() -> None:
    disk = Disk(b"one\n", problem="cannot read it")
    follower = following(disk, Role.HEAD)
    expected = LogChanged(NAME, Role.HEAD, 0, 0, "cannot read it", 5.0)
    assert poll(follower, disk) == [expected]
    assert poll(follower, disk) == []
    assert len(disk.reads) == 2
    disk.problem = ""
    assert poll(follower, disk) == [LogChanged(NAME, Role.HEAD, 4, 1, "", 5.0)]


def test_a_problem_is_looked_at_again_also_where_the_bytes_were_read() -> None:
    disk = Disk(b"one\n")
    follower = following(disk)
    poll(follower, disk)
    disk.data, disk.problem = b"one\ntwo\n", "cannot read it"
    assert poll(follower, disk) == [changed(disk, 4, 1, "cannot read it")]
    disk.data, disk.problem = b"one\n", ""
    assert poll(follower, disk) == [changed(disk, 4, 1)]


def test_a_log_that_was_truncated_since_it_was_listed() -> None:
    disk = Disk(b"one\ntwo\n")
    follower = following(disk)
    entry = disk.entry
    disk.data = b"one\n"
    assert list(follower.poll(entry, clock)) == [STARTED, changed(disk, 4, 1)]
    assert disk.reads == [("/x/log", 0, 8), ("/x/log", 4, 4)]


def test_an_unfinished_last_line_is_read_at_the_end_alone(tmp_path: Path) -> None:
    from tests.driver_text import LAUNCHER, launcher_end

    disk = Disk((LAUNCHER + launcher_end(3)).rstrip("\n").encode())
    follower = following(disk, Role.SLURM)
    ends = (DriverEnded, LauncherEnded)
    assert not [event for event in poll(follower, disk) if isinstance(event, LauncherEnded)]
    finished = [event for event in follower.finish(clock) if isinstance(event, ends)]
    assert [event.code for event in finished] == [3]
    assert (finished[0].source.log, finished[0].source.role) == (NAME, Role.SLURM)
