"""The rank that others waited for: in another operation, behind, or missing."""

from __future__ import annotations

import random

import pytest

from launcher.logs.events import FindingSeen
from tests.launcher.test_diagnosis import driver, state_of


def timed_out(
    rank: int, number: int = 4084, name: str = "ALLREDUCE", sizes: tuple[int, int] = (64, 64)
) -> str:
    """Return the line of a rank's watchdog."""
    return (
        f"[rank{rank}]:[E1128 02:07:{rank:02}.408 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={number}, OpType={name}, NumelIn={sizes[0]}, "
        f"NumelOut={sizes[1]}, Timeout(ms)=600000) ran for 600077 milliseconds before timing out.\n"
    )


def told(rank: int, enqueued: int, by: str = "rank 0") -> str:
    """Return the lines of a rank that did not time out itself."""
    head = f"[rank{rank}]:[E1128 02:08:00.1 ProcessGroupNCCL.cpp:1987] "
    head += f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
    return (
        f"{head}Observed flight recorder dump signal from another rank via TCPStore.\n"
        f"{head}Received a dump signal due to a collective timeout from  {by} and we will try our best to "
        f"dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {enqueued}.\n"
    )


def group(rank: int, number: int = 4084, name: str = "0(default_pg)") -> str:
    """Return the line in which a rank's watchdog names its process group."""
    return (
        f"[rank{rank}]:[E1128 02:07:{rank:02}.500 ProcessGroupNCCL.cpp:2268] "
        f"[PG ID 0 PG GUID {name} Rank {rank}]  failure detected by watchdog at work sequence id: {number} "
        f"PG status: last enqueued work: {number}, last completed work: {number - 1}\n"
    )


def cause(*lines: str) -> FindingSeen:
    """Return the root of a driver's log."""
    root = state_of(driver("".join(lines))).diagnosis.root
    assert root is not None
    return root


@pytest.mark.parametrize("seed", range(6))
def test_the_rank_in_another_operation_is_named_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    odd, size = rng.randrange(8), rng.choice((3, 4, 8))
    odd %= size
    other = rng.choice(((4084, "BROADCAST"), (4083, "ALLREDUCE"), (4090, "_ALLGATHER_BASE")))
    lines = [timed_out(rank, *(other if rank == odd else ())) for rank in range(size)]
    lines += [group(rank) for rank in range(size)] if seed % 2 else []
    rng.shuffle(lines)
    root = cause(*lines)
    assert (root.id, root.rank, root.confidence) == ("nccl-timeout", odd, "medium")
    assert f"rank {odd}" in root.title
    assert f"look at rank {odd}" in root.fix
    assert f"[Rank {odd}]" in root.text


def test_of_two_ranks_the_one_behind_is_named_and_none_where_both_are_as_far() -> None:
    assert cause(timed_out(0, 90), timed_out(1, 88, "BROADCAST")).rank == 1
    assert "odd" not in cause(timed_out(0), timed_out(1, name="BROADCAST")).title


def test_a_rank_that_had_not_begun_what_the_others_waited_in_is_named() -> None:
    lines = [timed_out(rank) + group(rank) for rank in (0, 1, 3)]
    root = cause(*lines, told(2, 4083))
    assert (root.rank, "which rank 2 had not begun (its last one: 4083)" in root.fix) == (2, True)
    # It took part, but its own watchdog was slower.
    assert "odd" not in cause(*lines, told(2, 4084)).title


def test_a_rank_without_a_time_out_is_missing_among_the_others() -> None:
    root = cause(*(timed_out(rank) for rank in (0, 1, 2, 4, 5, 6, 7)))
    assert (root.rank, "ranks 0-2, 4-7" in root.fix.lower()) == (3, True)
    # The last one: the sizes of the operation tell how many there are.
    gathered = [timed_out(rank, name="_ALLGATHER_BASE", sizes=(10, 40)) for rank in range(3)]
    assert cause(*gathered).rank == 3
    assert "odd" not in cause(*(timed_out(rank) for rank in range(4))).title


def test_lines_that_ray_prints_once_for_many_are_no_list_of_ranks() -> None:
    lines = [f"(W[rank={rank}] pid={40 + rank}, ip=10.0.0.1) {timed_out(rank)}" for rank in (0, 1, 3, 4)]
    assert "odd" not in cause(*lines).title


def test_every_second_rank_is_a_group_of_its_own_and_none_is_missing() -> None:
    assert "odd" not in cause(*(timed_out(rank) for rank in (0, 2, 4, 6))).title


def test_groups_are_compared_each_by_itself() -> None:
    one = [timed_out(rank, 100) + group(rank, 100, "41") for rank in (0, 1)]
    other = [timed_out(rank, 900) + group(rank, 900, "42") for rank in (2, 3, 4)]
    assert "odd" not in cause(*one, *other).title
    assert cause(*one, *other, timed_out(5, 899) + group(5, 899, "42")).rank == 5


@pytest.mark.parametrize(
    ("lines", "rank"),
    [
        ("\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
         "\t   - [0,1,2] joined but didn't finish collective #1234 (count from 1)\n"
         "\t     [3] finished collective #1233, but didn't join collective #1234 (count from 1)\n", 3),
        ("\t - To our best knowledge, ranks [6,7] are the lagging ranks that caused this timeout. They never "
         "joined any collectives\n", 6),
    ],
)  # fmt: skip
def test_torchs_own_report_of_who_did_not_join(lines: str, rank: int) -> None:
    assert cause(timed_out(0), lines).rank == rank


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("RuntimeError: [Rank 0]: Rank 5 failed to pass monitoredBarrier in 1800000 ms", 5),
        ("RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 1800000 ms", 4),
        ("RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting for "
         "send/recv from rank 0. Please check rank 0 logs for faulty rank.", 0),
        ("torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving "
         "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: wait "
         "timeout after 600000ms", 0),
    ],
)  # fmt: skip
def test_a_rank_that_a_barrier_or_the_store_misses_is_named(line: str, rank: int) -> None:
    top = 'Traceback (most recent call last):\n  File "/x/run.py", line 1, in <module>\n    main()\n'
    assert cause(f"{top}{line}\n").rank == rank


def test_the_rank_that_did_not_come_to_the_barrier_of_a_process_group_is_missing() -> None:
    lines = [
        f"[rank{rank}]: RuntimeError: Timed out initializing process group in store based barrier on "
        f"rank: {rank}, for key: store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)\n"
        for rank in (0, 1, 2, 3, 4, 6, 7)
    ]
    root = cause(*lines)
    assert (root.id, root.rank) == ("rdzv-timeout", 5)


def test_an_error_of_one_rank_outweighs_who_waited_for_whom() -> None:
    own = 'Traceback (most recent call last):\n  File "x"\n    f()\nKeyError: 3\n'
    failed = "".join(f"[rank2]: {line}\n" for line in own.splitlines())
    root = cause(*(timed_out(rank) for rank in (0, 1)), timed_out(3, 9, "BROADCAST"), failed)
    assert (root.text, root.rank) == ("KeyError: 3", 2)
