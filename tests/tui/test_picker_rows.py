"""The picker's rows: any of hundreds of workers by a number of few digits, or by its node or rank."""

from __future__ import annotations

import random

import pytest

from launcher.logs.events import Role
from launcher.logs.log_survey import LogHealth, LogHints, SurveyedLog, ranks_text, survey
from launcher.logs.sources import LogFile
from tui.screens.picker_rows import LogMatcher, RowLayout, log_row

WORKERS = 400


def surveyed() -> list[SurveyedLog]:
    """Return the logs of 400 workers on nodes whose numbers are others', with four ranks each."""
    numbers = random.Random(7).sample(range(1, 1248), WORKERS + 1)
    nodes = [f"jwb{number:04d}" for number in numbers]
    files = [LogFile("ray-driver.log", "/l/ray-driver.log", Role.DRIVER)]
    files += [
        LogFile(f"ray-worker-{number}.log", f"/l/ray-worker-{number}.log", Role.WORKER)
        for number in range(1, WORKERS + 1)
        if number != 237
    ]
    addresses = {file.path: f"10.0.{number // 250}.{number % 250}" for number, file in enumerate(files[1:])}
    ranks = {address: tuple(range(4 * at, 4 * at + 4)) for at, address in enumerate(addresses.values())}
    return survey(files, None, (), nodes, LogHints({}, addresses, ranks))


LOGS = surveyed()
MATCHER = LogMatcher(LOGS)


def test_any_worker_of_four_hundred_is_reached_in_five_keys() -> None:
    for number in range(1, WORKERS + 1):
        typed = str(number)
        first = MATCHER.matching(typed)[0]
        assert first.name == f"ray-worker-{number}.log"
        assert first.health is (LogHealth.MISSING if number == 237 else LogHealth.WELL)
        assert len(["l", *typed, "enter"]) <= 5


def test_a_node_or_a_rank_by_its_number() -> None:
    workers = [log for log in LOGS if log.role is Role.WORKER and log.path]
    for log in workers[::10]:
        assert MATCHER.matching(log.node) == [log]
        by_node = MATCHER.matching(log.node.removeprefix("jwb"))
        assert log in by_node[:2]  # after the worker that has the number as its own
        rank = log.ranks.split()[1].partition("-")[0]
        assert log in MATCHER.matching(str(int(rank) + 2))


@pytest.mark.parametrize(
    ("typed", "count"),
    [("", WORKERS + 1), ("missing", 1), ("driver", 1), ("worker-39", 11), ("none such", 0)],
)
def test_words_match_any_part(typed: str, count: int) -> None:
    assert len(MATCHER.matching(typed)) == count


@pytest.mark.parametrize("typed", ["9" * 5000, "²", "-1", "4-7", "0x1", "٣"])
def test_what_is_no_number_is_text(typed: str) -> None:
    assert all(isinstance(log, SurveyedLog) for log in MATCHER.matching(typed))


@pytest.mark.parametrize("width", [24, 63, 131])
def test_a_row_fits_and_names_the_node(width: int) -> None:
    layout = RowLayout.of(LOGS, width)
    assert (layout.title, layout.folders) == (30, False)
    for log in LOGS[:20]:
        row = log_row(log, 0.0, layout, current=True, marked=True)
        assert row.cell_length <= width
        assert row.plain.startswith("▸▪ ")
    assert log.node in log_row(log, 0.0, RowLayout.of(LOGS, 63), current=False, marked=False).plain


def test_a_number_beyond_all_jobs_is_no_gap() -> None:
    names = ["ray-worker-1.log", f"ray-worker-{10**12}.log"]
    logs = survey([LogFile(name, name, Role.WORKER) for name in names], None, ())
    assert [log.name for log in logs] == names
    assert ranks_text((4, 5, 6, 7)) == "ranks 4-7"
