"""Several logs as one: times from the launcher's clock or from stamps; order within a file; growth."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs import merged_log as merge
from launcher.logs.merged_log import MergedLog
from launcher.transports.local import LocalTransport

T = 1_795_831_200.0
"""A moment, in seconds since the epoch."""


def merged(directory: Path, names: Sequence[str], now: float = 0.0) -> MergedLog:
    files = [(Path(name).stem, str(directory / name)) for name in names]
    return MergedLog(LocalTransport(), files, now=lambda: now, wall=lambda: T + 999)


def ready(log: MergedLog) -> bytes:
    """Return all that there is, in its order."""
    while log.prepare() < 1:
        pass
    entry = log.stat()
    assert entry is not None
    return log.read(0, entry.size)


def clock(directory: Path, *ticks: tuple[float, str, int]) -> None:
    lines = [f"{T + time:.0f}\t{name}\t{size}\n" for time, name, size in ticks]
    (directory / "log-clock.tsv").write_text("".join(lines))


def test_the_clock_tells_the_order_and_cut_lines_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a1\na2\na3\n")
    (tmp_path / "b.log").write_text("b1\nb2 goes on\nb3\n")
    # The second tick of b falls into its second line: that line began before it.
    clock(tmp_path, (1, "a.log", 3), (2, "b.log", 3), (3, "a.log", 6), (4, "b.log", 6), (5, "a.log", 9))
    for name in ("a.log", "b.log"):
        os.utime(tmp_path / name, (T + 9, T + 9))
    log = merged(tmp_path, ["a.log", "b.log"])
    text = ready(log).decode()
    assert text.split() == ["a1", "b1", "a2", "b2", "goes", "on", "a3", "b3"]
    assert log.untimed == ()
    place = text.index("b2")
    assert log.label(place) == "b"
    assert log.moment(place) == T + 4
    assert log.origin(place) == (str(tmp_path / "b.log"), 3)
    assert log.locate(str(tmp_path / "b.log"), 3) == place
    assert log.locate(str(tmp_path / "none.log"), 0) is None


def test_stamps_tell_the_order_where_there_is_no_clock(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "first\n2026-11-28 02:00:01 a1\nmore of a1\n2026-11-28 02:00:05 a2\nend of a\n"
    )
    (tmp_path / "b.log").write_text("INFO 11-28 02:00:03 [x.py:1] b1\n    more of b1\n")
    (tmp_path / "c.log").write_text("no times\n")
    for name in ("a.log", "b.log", "c.log"):
        os.utime(tmp_path / name, (T + 4000, T + 4000))
    log = merged(tmp_path, ["a.log", "b.log", "c.log"])
    lines = ready(log).decode().splitlines()
    assert [line.split()[-1] for line in lines] == ["first", "a1", "a1", "b1", "b1", "a2", "a", "times"]
    assert log.untimed == ("c",)
    assert log.moment(0) is not None
    assert log.moment(len("\n".join(lines))) is None


def test_what_comes_is_appended_in_whole_lines(tmp_path: Path) -> None:
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("a1\n")
    b.write_text("b1\nb2 not yet")
    now = [0.0]
    log = MergedLog(LocalTransport(), [("a", str(a)), ("b", str(b))], now=lambda: now[0])
    assert sorted(ready(log).split()) == [b"a1", b"b1"]
    with a.open("a") as file:
        file.write("a2\n")
    assert ready(log).endswith(b"a2\n")
    with b.open("a") as file:
        file.write(" but now\n")
    assert ready(log).endswith(b"b2 not yet but now\n")
    with a.open("a") as file:
        file.write("bar 50%")
    assert ready(log).endswith(b"but now\n")
    now[0] += merge.UNFINISHED_S + 1
    assert ready(log).endswith(b"bar 50%\n")
    (tmp_path / "c.log").write_text("c1\n")
    log.add([("a", str(a)), ("c", str(tmp_path / "c.log"))])
    assert ready(log).endswith(b"bar 50%\nc1\n")


def test_truncation_begins_anew_and_what_is_gone_stays_as_far_as_it_can(tmp_path: Path) -> None:
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("a1\na2\n")
    b.write_text("b1\n")
    log = merged(tmp_path, ["a.log", "b.log"])
    ready(log)
    before = log.stat()
    a.write_text("x\n")
    after = log.stat()
    assert before is not None
    assert after is not None
    assert after.inode != before.inode
    assert sorted(ready(log).split()) == [b"b1", b"x"]
    for path in (a, b):
        path.unlink()
    tmp_path.rmdir()
    entry = log.stat()
    assert entry is not None
    assert entry.size == 5


@given(
    files=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=12), min_size=2, max_size=4),
    cuts=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300)), max_size=20),
)
def test_no_line_is_lost_doubled_or_out_of_its_file_s_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], cuts: list[tuple[int, int]]
) -> None:
    directory = tmp_path_factory.getbasetemp() / "merge"
    directory.mkdir(exist_ok=True)
    lines = [
        [f"{name}-{n}-{'x' * length}" for n, length in enumerate(file)] for name, file in enumerate(files)
    ]
    for name, content in enumerate(lines):
        (directory / f"{name}.log").write_text("\n".join(content) + "\n")
    ticks: list[tuple[float, str, int]] = []
    sizes = [0] * len(files)
    for time, (name, more) in enumerate(cuts):
        if name < len(files):
            sizes[name] = min(sizes[name] + more, sum(map(len, lines[name])) + len(lines[name]))
            ticks.append((time, f"{name}.log", sizes[name]))
    clock(directory, *ticks)
    log = merged(directory, [f"{name}.log" for name in range(len(files))])
    found = ready(log).decode().splitlines()
    assert sorted(found) == sorted(line for file in lines for line in file)
    for name, file in enumerate(lines):
        assert [line for line in found if line.startswith(f"{name}-")] == file
    position = 0
    for line in found:
        assert log.label(position) == line.partition("-")[0]
        position += len(line) + 1


def test_a_line_that_two_files_hold_is_shown_once(tmp_path: Path) -> None:
    both = [f"[INFO] step {number} of the launcher\n" for number in range(30)]
    own = [f"srun: a line of Slurm alone, number {number}\n" for number in range(10)]
    (tmp_path / "launcher.log").write_text("".join(both))
    mixed = [*own[:4], *both[:10], own[4], "\n", *both[10:], *own[5:]]
    (tmp_path / "slurm-14.out").write_text("".join(mixed))
    (tmp_path / "ray-worker-1.log").write_text("".join(both[:3]))
    log = merged(tmp_path, ["launcher.log", "slurm-14.out", "ray-worker-1.log"])
    lines = ready(log).decode().splitlines(keepends=True)
    assert sorted(lines) == sorted([*both, *own, "\n", *both[:3]])  # a worker's are its own
    for name in ("slurm-14.out", "launcher.log"):  # both go on; which is read first does not matter
        with (tmp_path / name).open("a") as file:
            file.write("[INFO] a later line of the launcher\n")
    entry = log.stat()
    assert entry is not None
    added = log.read(0, entry.size).decode().splitlines(keepends=True)[len(lines) :]
    assert added == ["[INFO] a later line of the launcher\n"]


@given(
    st.lists(st.tuples(st.sampled_from(["both", "one", "other"]), st.integers(0, 5)), max_size=60),
    st.integers(100, 2000),
)
def test_copied_lines_are_neither_lost_nor_doubled(lines: list[tuple[str, int]], step: int) -> None:
    shared = [f"line {number} that both files hold" for number in range(40)]
    one = [*shared, *(f"{where} {number:020d}" for where, number in lines if where != "other")]
    other = [*shared, *(f"{where} {number:020d}" for where, number in lines if where != "one")]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "_READ_STEP", step)
        folder = Path(name)
        for file, text in (("ray-driver.log", one), ("slurm-1.out", other)):
            (folder / file).write_text("".join(f"{line}\n" for line in text))
        shown = ready(merged(folder, ["ray-driver.log", "slurm-1.out"])).decode().splitlines()
    assert Counter(shown) == Counter(one) | Counter(other)


def test_logs_that_share_no_lines_are_not_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_text("".join(f"driver's own line {n}\n" for n in range(50)))
    (tmp_path / "slurm-14.out").write_text("".join(f"Slurm's own line {n}\n" for n in range(50)))
    log = merged(tmp_path, ["ray-driver.log", "slurm-14.out"])
    ready(log)
    assert not log._copies.has_copy(str(tmp_path / "slurm-14.out"))
