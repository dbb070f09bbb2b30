"""Rows of runs and jobs: cache, order, filter, groups, jobs of the scheduler, and what is remembered."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.clusters.job_list import JobListing, ListedJob
from launcher.clusters.slurm.jobs import JobRecord, read_queue
from launcher.clusters.slurm.own_jobs import listing_of
from launcher.clusters.slurm.queue import Snapshot
from launcher.errors import InputError, LaunchError
from launcher.logs.events import JobChanged, JobState
from launcher.overview.arrangement import SORT_ORDERS, Arrangement, GroupHeading, arranged, merged
from launcher.overview.job_rows import forget, remember, remembered_jobs, with_jobs
from launcher.overview.lister import RunLister
from launcher.overview.row_cache import CachedRow, dumped, load_rows
from launcher.overview.rows import RunRow
from launcher.overview.usual_rows import longer_than_usual, usual_among
from launcher.storage.run_edits import remove_run, rename_run, size_of
from launcher.submit.hints import usual_time_hint
from launcher.transports.local import LocalTransport
from tests.tui.replay import make_run, running

ROWS = tuple(
    RunRow(
        f"id-{number}",
        f"name-{number % 7}",
        f"/runs/{number}",
        state=list(JobState)[number % len(JobState)],
        step=number % 5,
        losses=(1.0, math.nan) if number % 3 else (),
        started=1e9 - number if number % 4 else None,
        recipe=f"/recipes/r{number % 3}.yaml",
        jobs=(str(number),),
        durations=(("data-loaded", 10.0 + number), ("step", 2.0)),
        nodes=number % 2 + 1,
    )
    for number in range(40)
)


def test_the_cache_returns_what_was_kept(tmp_path: Path) -> None:
    rows = {row.directory: CachedRow((1.5, 7), row) for row in ROWS}
    file = tmp_path / "rows.json"
    file.write_bytes(dumped(rows))
    file.chmod(0o600)
    assert repr(load_rows(file)) == repr(rows)  # nan is not equal to itself
    file.chmod(0o666)
    assert load_rows(file) == {}, "others can write it"


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["format", "rows", "row", "version", "state", "losses", "id", "durations", "x"]
                ),
                inner,
            )
        ),
        max_leaves=20,
    )
)
def test_a_damaged_cache_is_no_cache(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.json"
    file.write_text(json.dumps({"format": 1, "rows": [data]}))
    file.chmod(0o600)
    assert load_rows(file) == {}


@pytest.mark.parametrize("order", SORT_ORDERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_every_order_keeps_all_rows_and_puts_unknown_values_last(order: str, reverse: bool) -> None:
    entries = arranged(ROWS, Arrangement(order, reverse=reverse))
    assert sorted(repr(row) for row in entries) == sorted(repr(row) for row in ROWS)
    key = SORT_ORDERS[order].key
    keys = [key(row) for row in entries if isinstance(row, RunRow)]
    known = [value for value in keys if value is not None]
    if (order, reverse) != ("started", False):  # that is the order in which runs are listed
        assert keys == [*known, *[None] * (len(keys) - len(known))]
        descending = SORT_ORDERS[order].descending != reverse
        assert known == sorted(known, reverse=descending)


def test_groups_have_headings_and_the_filter_takes_all_words() -> None:
    entries = arranged(ROWS, Arrangement(grouped=True))
    headings = [entry for entry in entries if isinstance(entry, GroupHeading)]
    assert [heading.title for heading in headings] == ["r0.yaml", "r1.yaml", "r2.yaml"]
    assert sum(heading.rows for heading in headings) == len(ROWS) == len(entries) - 3
    rows = arranged(ROWS, Arrangement(text="R1 running"))
    assert rows
    assert all(isinstance(row, RunRow) and row.state is JobState.RUNNING for row in rows)


def listed(identity: str, state: JobState = JobState.RUNNING, **more: Any) -> ListedJob:
    return ListedJob(identity, f"job-{identity}", JobChanged(state, job=identity), submitted=1.0, **more)


def test_jobs_of_runs_are_no_rows_of_their_own() -> None:
    run = replace(ROWS[0], state=JobState.RUNNING, job="12", jobs=("11", "12"))
    listing = JobListing(
        (listed("11"), listed("12", partition="booster", ended=9.0), listed("13")), asked=5.0
    )
    (known,), jobs = with_jobs([run], listing, ())
    assert (known.partition, known.deadline, known.as_of) == ("booster", 9.0, None)
    assert [row.job for row in jobs] == ["13"]
    down = replace(listing, problem="no answer")
    (known,), jobs = with_jobs([run], down, ())
    assert known.as_of == jobs[0].as_of == 5.0
    assert [row.key for row in merged([known], jobs)] == ["/runs/0", "job 13"]


def test_an_opened_job_stays_after_slurm_forgets_it(tmp_path: Path) -> None:
    file = tmp_path / "state" / "jobs.json"
    done = RunRow("7", "other \x1b[31mone", "", JobState.FAILED, reason="out of memory", started=1.0, job="7")
    remember(file, done)
    remember(file, RunRow("8", "live", "", JobState.RUNNING, job="8"))
    first, second = remembered_jobs(file)
    assert (first.job, first.state) == ("8", JobState.UNKNOWN)
    assert (second.name, second.state, second.reason) == ("other one", JobState.FAILED, "out of memory")
    _, jobs = with_jobs((), JobListing((listed("8"),)), remembered_jobs(file))
    assert [(row.job, row.state) for row in jobs] == [("8", JobState.RUNNING), ("7", JobState.FAILED)]
    forget(file, "8")
    assert [row.job for row in remembered_jobs(file)] == ["7"]
    file.write_text('[{"id": "--all", "name": "x"}, {"id": 5}, 3]')
    assert remembered_jobs(file) == ()


def test_squeue_says_partition_nodes_and_name_behind_the_comment() -> None:
    text = "7|PENDING|10|20|0|(null)|Priority|distill-tui dt-1|x||booster|4|my | job\n"
    text += "8|RUNNING|1|1|1|n|None|a||b\n"
    (first, second), table = read_queue(text)
    assert (first.comment, first.partition, first.node_count, first.name) == (
        "distill-tui dt-1|x", "booster", 4, "my | job",
    )  # fmt: skip
    assert (second.comment, second.partition, second.node_count) == ("a||b", "", None)
    assert not table.unread


def test_a_job_that_only_accounting_lists_has_left_the_queue() -> None:
    recent = {"5": JobRecord("5", "RUNNING", 1.0), "6": JobRecord("6", "FAILED", 2.0, exit_code="1:0")}
    queued = {"6": JobRecord("6", "FAILED", 2.0), "7": JobRecord("7", "RUNNING", 3.0)}
    jobs = {job.id: job for job in listing_of(Snapshot(jobs=queued, recent=recent)).jobs}
    assert jobs["5"].status.state is JobState.UNKNOWN
    assert "exit code 1" in jobs["6"].status.reason
    assert jobs["7"].status.state is JobState.RUNNING


def test_usual_durations_are_of_the_same_recipe_and_size() -> None:
    usual = usual_among(ROWS, "elsewhere/r0.yaml", 1)
    alike = [dict(row.durations) for row in ROWS if row.recipe.endswith("r0.yaml") and row.nodes == 1]
    assert usual.runs == len(alike)
    assert usual.expected_s("data-loaded") in [item["data-loaded"] for item in alike]
    assert usual_among(ROWS, "elsewhere/r0.yaml", 3).runs == 0
    assert usual.longer("data-loaded", 540.0).startswith("Data loaded: 9 min, usually")
    assert usual.longer("data-loaded", 40.0) == ""
    slow = replace(ROWS[0], directory="/slow", durations=(("data-loaded", 540.0), ("step", 900.0)))
    assert longer_than_usual(slow, ROWS) == (usual.longer("data-loaded", 540.0),)
    assert longer_than_usual(ROWS[3], ROWS) == ()


def test_a_time_limit_that_is_too_short_by_earlier_runs() -> None:
    rows = [replace(row, durations=(("first-step", 240.0), ("step", 30.0))) for row in ROWS]
    usual = usual_among(rows, "r0.yaml", 1)
    hint = usual_time_hint(usual, 500, 7200, 1)
    assert "500 steps need 4 h" in hint
    assert "more than the time limit of 2 h" in hint
    assert usual_time_hint(usual, 500, 7200, 3) == ""
    assert usual_time_hint(usual_among((), "r0.yaml", 1), 500, 60, 1) == ""


def test_a_run_is_renamed_and_removed_but_never_a_live_one(tmp_path: Path) -> None:
    transport = LocalTransport()
    done = running(tmp_path, "", host="elsewhere", identity="20261128-020000-done-0002")
    done.finish(0)
    directory = done.run.directory
    assert rename_run(transport, directory, " better name\x1b[31m ").spec.name == "better name"
    with pytest.raises(InputError, match="invalid name"):
        rename_run(transport, directory, " \x1b[31m ")
    assert size_of(transport, directory).bytes > 1000
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    Path(directory).rename(moved)
    Path(directory).symlink_to(moved)
    remove_run(transport, directory)
    assert list(moved.parent.iterdir()) == []
    assert not Path(directory).is_symlink()
    live = running(tmp_path, host="elsewhere", identity="20261128-020000-live-0003")
    unknown = make_run(tmp_path, host="elsewhere", identity="20261128-020000-none-0004")
    for run in (live.run, unknown):
        with pytest.raises(LaunchError, match="is not removed"):
            remove_run(transport, run.directory)
        assert Path(run.directory, "run.json").is_file()
    with pytest.raises(InputError):
        remove_run(transport, str(tmp_path))


def test_a_second_start_reads_no_run_that_has_ended(tmp_path: Path) -> None:
    for number in range(3):
        running(
            tmp_path / "runs", "", host="elsewhere", identity=f"20261128-02000{number}-x-000{number}"
        ).finish(0)

    class Reading(LocalTransport):
        def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
            paths.append(path)
            return super().read(path, offset, size)

    paths: list[str] = []
    cache = tmp_path / "rows.json"
    lister = RunLister(LocalTransport(), str(tmp_path))
    for expected in (True, False):
        paths.clear()
        lister = RunLister(Reading(), str(tmp_path / "runs"), cache=cache)
        lister.relist()
        while lister.poll_next():
            pass
        lister.count_one([row.directory for row in lister.rows()])
        lister.save(now=True)
        assert len(lister.rows()) == 3
        assert all(row.state is JobState.COMPLETED for row in lister.rows())
        assert bool(paths) is expected
    rename_run(LocalTransport(), lister.rows()[0].directory, "renamed")
    lister.relist()
    while lister.poll_next():
        pass
    assert lister.rows()[0].name == "renamed"
