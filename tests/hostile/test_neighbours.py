"""Colleagues in a shared directory and file systems that fail: nothing of the user's is lost, nothing hangs."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from launcher.clusters.slurm.accounting import accounted
from launcher.clusters.slurm.client import SlurmClient
from launcher.errors import LaunchError, TransportError
from launcher.logs import scalar_columns
from launcher.logs.gpu_samples import node_samples
from launcher.logs.scalar_columns import ScalarColumns
from launcher.logs.tensorboard import DamagedError, EventFile
from launcher.monitor.watch import watch_directory
from launcher.overview import run_series
from launcher.overview.lister import RunLister
from launcher.overview.run_series import RunSeries, all_series
from launcher.request import SubmitRequest
from launcher.runs import Run, RunStore, effective_values, load
from launcher.storage.moving import move_run
from launcher.storage.removal import remove_checkpoints
from launcher.storage.run_edits import remove_run, rename_run
from launcher.transports import local
from launcher.transports.base import FileStat, Ownership
from launcher.transports.directory_scan import DirectoryScan
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.ssh_config import SshHost
from launcher.transports.ssh.transport import SshTransport
from recipes.cache_root import cache_root, default_cache_root
from recipes.errors import ExplainedError
from recipes.file_calls import WHILE_SILENT_S, patience, unanswered_paths
from recipes.limits import Limit
from recipes.reading import kind_of, read_regular
from tests.driver_text import DriverText
from tests.hostile.attempts import SECRET, SECRET_NAME
from tests.hostile.broken_machine import BrokenFiles
from tests.hostile.chart_inputs import record, scalar
from tests.launcher.ordering import Desk
from tests.tui.replay import make_run
from tui.cli import main
from tui.run_report import report_of
from tui.screens.wizard import recipe_paths


class OfBob(LocalTransport):
    """A machine on which every file belongs to bob."""

    def ownership(self, path: str) -> Ownership | None:
        del path
        return Ownership("bob", is_own=False, writable_by="")


def ended_run(root: Path) -> Run:
    run = make_run(root)
    Path(run.directory, "summary.json").write_text(
        '{"schema": 1, "state": "completed", "reason": "", "ended": 1.8e9, "job": null, "attempts": [], "findings": [],'
        ' "milestones": [], "metrics": {"step": 3, "max_steps": 5, "loss": [], "steps": [], "checkpoints": []}}'
    )
    return run


# ------------------------------------------------------------ colleagues


def test_another_users_run_is_neither_removed_nor_renamed_nor_moved(tmp_path: Path) -> None:
    run, transport = ended_run(tmp_path / "runs"), OfBob()
    store = RunStore(transport, str(tmp_path / "runs"))
    with pytest.raises(LaunchError, match="is not removed: its directory belongs to bob") as refused:
        remove_run(transport, run.directory)
    assert f"`rm -r -- {run.directory}`" in refused.value.fix
    with pytest.raises(LaunchError, match="belongs to bob"):
        rename_run(transport, run.directory, "mine")
    with pytest.raises(LaunchError, match="keeps its checkpoints: its directory belongs to bob"):
        remove_checkpoints(store, run)
    assert "belongs to bob" in move_run(store, run, tmp_path / "elsewhere").problem
    assert load(LocalTransport(), run.directory).spec == run.spec


def test_a_run_that_was_exchanged_since_the_question_stays(tmp_path: Path) -> None:
    asked, other = ended_run(tmp_path / "a"), ended_run(tmp_path / "b")
    measured = asked.directory
    Path(asked.directory).rename(tmp_path / "aside")
    Path(asked.directory).symlink_to(other.directory)
    with pytest.raises(LaunchError, match=r"another one now|has ended|not known"):
        remove_run(LocalTransport(), asked.directory, measured)
    assert Path(other.directory, "run.json").exists()


def test_checkpoints_behind_a_link_are_not_those_of_a_run(tmp_path: Path) -> None:
    run = ended_run(tmp_path / "runs")
    precious = tmp_path / "precious" / "checkpoints" / "step_5"
    precious.mkdir(parents=True)
    Path(run.directory, "output").symlink_to(tmp_path / "precious")
    assert remove_checkpoints(RunStore(LocalTransport(), str(tmp_path / "runs")), run).bytes == 0
    assert precious.is_dir()


def test_a_planted_pipe_in_the_place_of_a_runs_keys_does_not_hang_its_report(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    os.mkfifo(Path(run.directory, "secrets.env"))
    report, _ = report_of("x", watch_directory(LocalTransport(), run.logs), run, lambda _: None)
    assert report["run"] == "x"


def test_a_file_is_written_in_the_place_of_a_link_and_not_through_it(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "report.md").symlink_to(tmp_path / "victim")
    LocalTransport().write_atomic(str(tmp_path / "report.md"), b"report")
    assert ((tmp_path / "victim").read_text(), (tmp_path / "report.md").read_text()) == ("kept", "report")


def test_a_cache_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    shared = tmp_path / "runs" / ".cache"
    pointer = tmp_path / "config" / "distill-tui" / "cache"
    pointer.parent.mkdir(parents=True)
    pointer.write_text(f"{shared}\n")
    assert cache_root(environment) == shared  # to be made
    shared.mkdir(parents=True)
    shared.chmod(0o700)
    assert cache_root(environment) == shared
    shared.chmod(0o770)
    assert cache_root(environment) == default_cache_root(environment)
    shared.rmdir()
    shared.symlink_to(tmp_path)
    assert cache_root(environment) == default_cache_root(environment)


def test_recipes_that_inherit_each_other_many_times_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number}.yaml" for number in range(30)]
    for name in names:
        (tmp_path / name).write_text(f"defaults: [{', '.join(names)}]\n")
    (tmp_path / "kernel.yaml").symlink_to("/proc/kmsg")
    reads: list[Path] = []

    def read(path: Path, limit: Limit) -> bytes:
        reads.append(path)
        return read_regular(path, limit)

    monkeypatch.setattr(recipe_paths, "read_regular", read)
    assert recipe_paths._distillation_recipes(tmp_path) == []
    assert len(reads) <= len(names) + 1


def test_the_value_of_a_secret_is_not_taken_from_a_command_line(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    request = SubmitRequest(desk.recipe, 1, "2:00:00", env=(f"{SECRET_NAME}={SECRET}", "PLAIN=1"))
    with pytest.raises(ExplainedError, match="must not be on a command line") as refused:
        desk.plan_of(request)
    assert SECRET not in str(refused.value)


def test_a_percent_sign_of_the_runs_root_is_doubled_for_slurm(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path / "100%j")
    (plan,) = desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00")).submission.plans
    (output,) = (word for word in plan.argv if word.startswith("--output="))
    assert output == f"--output={str(Path(plan.output).parent).replace('%', '%%')}/slurm-%j.out"
    assert "/100%%j/" in output


# ------------------------------------------------------------ file systems


def test_a_mount_without_answer_is_waited_for_once(tmp_path: Path) -> None:
    with BrokenFiles(str(tmp_path), "hang", 1.0, 1).patched():
        transport = LocalTransport(0.3)
        with pytest.raises(TransportError, match="no answer from the file system for"):
            transport.stat(str(tmp_path / "x"))
        for reader in (transport, LocalTransport(0.3)):  # another one knows it, too
            begun = time.process_time()
            with pytest.raises(TransportError, match="no answer from the file system still"):
                reader.read(str(tmp_path / "x"))
            assert time.process_time() - begun < 1
        # Calls of earlier tests may still wait in this process.
        first = patience(str(tmp_path / "y"), 15)
        assert 0 < first <= WHILE_SILENT_S
        with pytest.raises(TimeoutError):
            kind_of(tmp_path / "y", deadline_s=0.2)
        assert patience(str(tmp_path / "z"), 15) == pytest.approx(max(first / 2, 0.02))
        assert patience("/proc/self/stat", 15) >= first
        assert {str(tmp_path / "x"), str(tmp_path / "y")} <= set(unanswered_paths())
    assert kind_of("a\0b") == ""


class SilentEntry(DirectoryScan):
    """A listing in which the entry "dead" gives no answer before an event."""

    answers = threading.Event()

    def look_at(self, item: os.DirEntry[str]) -> FileStat:
        if item.name == "dead":
            self.answers.wait(60)
        return super().look_at(item)


def test_an_entry_without_answer_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "DirectoryScan", SilentEntry)
    run = ended_run(tmp_path / "runs")
    (tmp_path / "runs" / "dead").symlink_to(tmp_path)
    transport = LocalTransport(0.3)
    for _ in range(2):
        entries = {entry.name: entry for entry in transport.listdir(str(tmp_path / "runs"))}
        assert entries["dead"].is_silent
        assert entries[Path(run.directory).name].is_dir
    assert unanswered_paths().count(str(tmp_path / "runs" / "dead")) == 1
    rows = RunLister(transport, str(tmp_path / "runs"))
    rows.relist()
    assert [row.directory for row in rows.rows() if not row.damaged] == [run.directory]
    assert "no answer from the file system" in next(row.damaged for row in rows.rows() if row.damaged)
    SilentEntry.answers.set()


def test_a_log_directory_that_cannot_be_listed_hides_no_other_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ray-driver.log").write_text(DriverText([0.5]).text())
    (tmp_path / "4711-logs").mkdir()
    scan = os.scandir

    def refused(path: str) -> object:
        if str(path).endswith("4711-logs"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up(final=True)
    assert watch.problem == ""
    assert [log.name for log in watch.known_logs] == ["ray-driver.log"]
    assert [notice.text for notice in watch.state.notices][-1].endswith("4711-logs: Permission denied")
    assert main("0", ["watch", "--once", str(tmp_path)]) in (0, 1)
    assert "4711-logs: Permission denied" in capsys.readouterr().out


def test_a_thread_of_files_ends_with_its_transport(tmp_path: Path) -> None:
    before = {thread for thread in threading.enumerate() if thread.name == "files"}
    for _ in range(20):
        LocalTransport().stat(str(tmp_path))
    gc.collect()
    new = {thread for thread in threading.enumerate() if thread.name == "files"} - before
    for thread in new:
        thread.join(60)
        assert not thread.is_alive()


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 36)
    with pytest.raises(TransportError, match="larger than 64 MiB"):
        LocalTransport().read(str(tmp_path / "x"))
    assert LocalTransport().read(str(tmp_path / "x"), 1 << 35, 5) == bytes(5)


def test_an_answer_of_another_machine_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Garbage:
        def stat(self, path: str) -> None:
            int(f"{path} is no number")

    transport = SshTransport(SshHost("x", "127.0.0.1", "u"))
    monkeypatch.setattr(transport, "_files", Garbage())
    with pytest.raises(TransportError, match="x: an answer cannot be read"):
        transport.stat("/y")


@pytest.mark.parametrize(
    "text", ["a: 2020-13-45\n", "[" * 5000, "x" * 9_000_000], ids=["date", "deep", "large"]
)
def test_effective_values_that_are_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "effective.yaml").write_text(text)
    with pytest.raises(ExplainedError, match="effective recipe is damaged"):
        effective_values(LocalTransport(), str(tmp_path))


def test_a_line_of_separators_is_no_record_of_accounting(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, sacct="|" * 17 + "\n4711" + "|" * 17 + "name\n")
    records = accounted(SlurmClient(desk.transport, desk.environment), ["4711"])
    assert records == {"4711": ({"JobID": "4711", "JobName": "name"},)}


# ------------------------------------------------------------ files of charts


def test_steps_and_values_of_event_files_that_no_driver_writes() -> None:
    columns = ScalarColumns()
    columns.feed(b"".join(scalar(b"a", step, 1.0, 1e308) for step in (2**64 - 1, 2**63, 2**69)))
    assert columns.columns()["a"].steps.tolist() == [-1, -(2**63), 0]
    with pytest.raises(DamagedError, match="more than 20000 tags"):
        columns.feed(b"".join(scalar(b"t%d" % number, 1, 1.0, 1.0) for number in range(20_001)))


def test_records_without_content_or_without_a_pattern_end_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DamagedError, match="a record of 0 bytes"):
        ScalarColumns().feed(bytes(4096))
    with pytest.raises(DamagedError, match="a record of 0 bytes"):
        list(EventFile().feed(bytes(4096)))
    monkeypatch.setattr(scalar_columns, "_MOST_ALONE", 100)
    columns, regular = ScalarColumns(), b"".join(scalar(b"a", step, 1.0, 1.0) for step in range(100, 5000))
    columns.feed(regular)  # as a driver writes it
    with pytest.raises(DamagedError, match="more than 100 records without a pattern"):
        columns.feed(b"".join(record(b"\x1a\x01%c" % (number % 128)) for number in range(200)))
    assert len(columns.columns()["a"].steps) == 4900


def test_a_tag_for_each_record_copies_nothing_again_and_again() -> None:
    columns = ScalarColumns()
    columns.feed(scalar(b"first", 1, 1.0, 1.0))
    history = columns._history
    columns.feed(b"".join(scalar(b"t%d" % number, 1, 1.0, 1.0) for number in range(500)))
    assert columns._history is history
    columns.feed(b"".join(scalar(b"u%d" % number, 1, 1.0, 1.0) for number in range(3000)))
    assert len(columns._history) == len(columns._positions) <= 2048


def test_columns_are_thinned_out_from_the_longest_on() -> None:
    columns = ScalarColumns()
    columns.feed(b"".join(scalar(b"long", step, float(step), 1.0) for step in range(1000)))
    columns.feed(b"".join(scalar(b"short", step, 1.0, 1.0) for step in range(10)))
    columns.thin(300)
    kept = columns.columns()
    assert kept["long"].steps.tolist() == list(range(0, 1000, 4))
    assert kept["long"].values[-1] == 996
    assert len(kept["short"].steps) == 10
    assert columns.left_out == {"long": 750}
    columns.feed(scalar(b"long", 1000, 5.0, 1.0))
    assert columns.columns()["long"].steps[-1] == 1000


def test_a_run_has_at_most_so_many_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_series, "_MOST_TAGS", 15)
    for number in range(4):
        data = b"".join(scalar(b"%d/%d" % (number, tag), 1, 1.0, 1.0) for tag in range(10))
        (tmp_path / f"events.out.tfevents.{number}").write_bytes(data + scalar(b"x" * 1001, 1, 1.0, 1.0))
    reader = RunSeries(LocalTransport(), watch_directory(LocalTransport(), str(tmp_path)))
    reader.find()
    for _ in range(10):
        reader.read()
    assert len(reader.series()) <= 40
    assert len(reader._damaged) >= 2


def test_a_long_table_of_gpus_keeps_its_peak() -> None:
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W]"
    rows = [f"2026-11-28T02:00:{n:02d}+0000,{gpu},50,{1024 + n},40960,9" for n in range(60) for gpu in (0, 1)]
    rows[7] = rows[7].replace("1027", "20480")
    samples = node_samples("gpu-n1.csv", "\n".join([heading, *rows]).encode(), 10)
    assert samples is not None
    assert (len(samples.samples), samples.peak_gib) == (12, (20.0, 40.0))


def test_steps_of_a_log_that_no_float_can_hold(tmp_path: Path) -> None:
    text = DriverText([0.5, 0.4]).text().replace("Step 2/", f"Step {2**53 + 1}/")
    (tmp_path / "ray-driver.log").write_text(text)
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up(final=True)
    series, _ = all_series(LocalTransport(), watch)
    assert "loss" in series
    assert np.isfinite(series["loss"].values).all()


def test_a_cell_without_an_end_is_passed_over() -> None:
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W]"
    row = "2026-11-28T02:00:00+0000,0,50,1024,40960,1e400"
    samples = node_samples("gpu-n1.csv", f'{heading}\n{row}\n"{"x" * 200_000}\n{row}\n'.encode())
    assert samples is not None
    assert [dict(item.values) for item in samples.samples] == [
        {"utilisation_percent": 50.0, "memory_gib": 1.0}
    ] * 2


def test_an_event_file_whose_pattern_breaks_is_not_compared_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each few rows it did: 26 MB took 26 s."""
    random, compared = Random(1), 0
    matches = scalar_columns._matches

    def counted(matrix: scalar_columns.Bytes, pattern: scalar_columns._Pattern) -> NDArray[np.bool_]:
        nonlocal compared
        compared += len(matrix)
        return matches(matrix, pattern)

    monkeypatch.setattr(scalar_columns, "_matches", counted)
    records = [scalar(random.choice((b"a", b"b")) * 50, 5, 1.0, 1.7e9) for _ in range(4000)]
    columns = ScalarColumns()
    columns.feed(b"".join(records))
    assert sum(len(column.steps) for column in columns.columns().values()) == 4000
    assert compared < 40_000
