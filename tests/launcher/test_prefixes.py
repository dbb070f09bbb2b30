"""Lines under prefixes of whatever carried them, and behind loggers' headers, are read as without."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, ExceptionSeen, FindingSeen, MetricRecorded, MilestoneReached
from launcher.logs.headers import LineSeverity
from launcher.logs.lines import segments
from launcher.logs.prefixes import LineOrigin, split_prefixes
from launcher.logs.scanner import Scanner
from launcher.logs.signatures import catalogue
from tests.driver_text import DriverText
from tests.launcher.carriers import CARRIERS, Carrier, stacked
from tests.launcher.failures import CASES

LINES = [
    line for case in tomllib.loads(CASES.read_text()).values() for line in case["yes"] if "\n" not in line
]
INNER = (
    "",
    "(DTensorPolicyWorkerV2[rank=5] pid=4415, ip=10.9.0.5) ",
    "(VllmGenerationWorker pid=900, ip=10.9.0.6) (VllmWorker rank=2 pid=213) ",
    "(VllmGenerationWorker pid=900, ip=10.9.0.6) (Worker_TP1 pid=214) ",
    "(EngineCore_DP0 pid=19001) ",
    "[rank6]: ",
)
HEADERS = (
    "",
    "ERROR 11-28 01:41:50 [core.py:708] ",
    "ERROR 07-10 16:53:50 multiproc_worker_utils.py:120] ",
    "[E1128 02:07:08.400000 ProcessGroupNCCL.cpp:629] ",
    "[E218 02:07:08.400000000 ProcessGroupNCCL.cpp:629] ",
    "E1128 16:12:33.000000 4021 torch/distributed/elastic/api.py:874] ",
    "2025-07-03 14:20:51,565 - ERROR - trainer.core - ",
    "[2025-07-03 14:20:51,565] [ERROR] [launch.py:321:main] ",
    "[2025-07-03 14:20:51,565][__main__][ERROR] - ",
    "07/03/2025 14:20:51 - ERROR - __main__ - ",
    "2025-07-03 14:20:51 | ERROR    | core:main:12 - ",
    "ERROR:trainer.core:",
    "[NeMo E 2025-07-03 14:20:51 nemo_logging:349] ",
)
Facts = list[tuple[str, int | None, str | None, float | None]]


def facts(lines: list[str]) -> Facts:
    """Return what is found in lines: id, rank, node, and the time that is in the line."""
    scanner = Scanner(DriverReader("log"))
    result: Facts = []
    data = "".join(f"{line}\n" for line in lines).encode()
    for event in (*scanner.feed(data, lambda _: None), *scanner.finish(lambda _: None)):
        result += described(event)
    return result


def described(event: Event) -> Facts:
    match event:
        case FindingSeen():
            return [(event.id, event.rank, event.node, event.stamp)]
        case ExceptionSeen():
            return [(event.message, event.rank, event.node, event.stamp)]
        case MilestoneReached():
            return [(event.id, None, None, None)]
        case MetricRecorded():
            return [(f"{event.name}={event.value}", event.step, None, None)]
        case _:
            return []


def assert_same(plain: Facts, carried: Facts) -> None:
    """A carrier may add a rank, a node and a time; it takes away and changes nothing."""
    assert [item[0] for item in carried] == [item[0] for item in plain]
    for (_, rank, node, stamp), (_, new_rank, new_node, new_stamp) in zip(plain, carried, strict=True):
        assert rank is None or rank == new_rank
        assert node is None or node == new_node
        assert stamp is None or stamp == new_stamp


@given(
    st.sampled_from(LINES), st.sampled_from(INNER), st.sampled_from(HEADERS),
    st.lists(st.sampled_from(sorted(CARRIERS)), min_size=1, max_size=4, unique=True),
)  # fmt: skip
def test_a_known_line_under_any_stack_of_prefixes_is_the_same(
    line: str, inner: str, header: str, names: list[str]
) -> None:
    plain = inner + header + line
    assert_same(facts([plain]), facts([stacked(names)(plain, 1)]))


@given(st.lists(st.sampled_from(sorted(CARRIERS)), min_size=1, max_size=3, unique=True))
def test_a_run_under_any_stack_of_prefixes_is_the_same(names: list[str]) -> None:
    lines = list(DriverText([0.9, 0.8], validate_at=(1,), end="").lines())
    plain = facts(lines)
    assert len(plain) > 10
    assert_same(plain, facts([stacked(names)(line, number) for number, line in enumerate(lines)]))


TRACEBACK = [
    "Traceback (most recent call last):", '  File "y.py", line 3', "    x = table[k]", "KeyError: 'labels'",
]  # fmt: skip


@given(
    st.sampled_from(INNER), st.lists(st.sampled_from(sorted(CARRIERS)), min_size=1, max_size=3, unique=True),
    st.sampled_from(HEADERS[:3]),
)  # fmt: skip
def test_a_traceback_under_any_stack_of_prefixes_is_read(inner: str, names: list[str], header: str) -> None:
    lines = [inner + header + line for line in TRACEBACK]
    plain = facts(lines)
    assert [item[0] for item in plain] == ["KeyError: 'labels'"]
    carry: Carrier = stacked(names)
    assert_same(plain, facts([carry(line, number) for number, line in enumerate(lines)]))


@pytest.mark.parametrize("header", [item for item in HEADERS if item])
def test_headers_are_taken_off_and_give_the_severity(header: str) -> None:
    (error,) = segments(f"{header}boom".encode())
    assert (error.body, error.severity) == ("boom", LineSeverity.ERROR)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("[W218 10:12:01.100000000 socket.cpp:755] [c10d] x", LineSeverity.WARNING),
        ("[W socket.cpp:436] [c10d] x", LineSeverity.WARNING),
        ("[rank3]:W1128 16:12:33.000000 4021 torch/run.py:1] x", LineSeverity.WARNING),
        ("[2026-11-28 01:42:26,011 C 5 5] core_worker.cc:69:  Check failed: x", LineSeverity.FATAL),
        ("[2026-11-28 01:42:26,011 W 5 5] (raylet) x.cc:69: y", LineSeverity.WARNING),
        ("[rank6]:[F429 14:03:49.385461578 ProcessGroupNCCL.cpp:1554] x", LineSeverity.FATAL),
        ("WARNING:megatron.core.utils:utils.py:890: x", LineSeverity.WARNING),
        ("[NeMo W 2025-07-03 14:20:51 x:1] y", LineSeverity.WARNING),
        ("[WARNING|trainer.py:12] 2025-07-03 14:20:51,565 >> y", LineSeverity.WARNING),
        ("2023-10-09 23:04:29,519\tWARNING worker.py:2058 -- A worker died", LineSeverity.WARNING),
        ("jwb1:12:13 [0] NCCL INFO x", LineSeverity.INFO),
        ("INFO:     Started server process [1]", LineSeverity.INFO),
        ("KeyError: 'x'", LineSeverity.UNKNOWN),
        ("Epoch 3: loss 0.2", LineSeverity.UNKNOWN),
        ("[ERROR] Timed out waiting for all workers to connect", LineSeverity.UNKNOWN),
    ],
)
def test_severities_of_lines(line: str, severity: LineSeverity) -> None:
    assert segments(line.encode())[-1].severity is severity


@pytest.mark.parametrize("month", range(1, 13))
def test_the_months_of_c10_have_no_leading_zero(month: int) -> None:
    stamps = []
    for hour in (10, 11):
        line = f"[rank0]:[E{month * 100 + 7} {hour}:20:00.000000000 x.cpp:1] SIGSEGV received"
        (event,) = facts([line])
        stamps.append(event[3])
    assert stamps[0] is not None
    assert stamps[1] is not None
    assert stamps[1] - stamps[0] == 3600


def test_text_behind_an_unfinished_bar_is_a_line_of_its_own() -> None:
    bar = "(W pid=3, ip=10.0.0.1) Loading:   0%|          | 0/40315 [00:00<?, ? examples/s]"
    first, second = segments(f"{bar}Traceback (most recent call last):".encode())
    assert (first.actor, second.actor, second.text) == ("W", "W", "Traceback (most recent call last):")
    _, other = segments(f"{bar}[rank1]: KeyError: 3".encode())
    assert (other.rank, other.text) == (1, "KeyError: 3")


@pytest.mark.parametrize(
    "line",
    [
        "python3: can't open file 'x'",
        "libcudnn.so.9: cannot open shared object file",
        "KeyError: 3",
        "step1: loss 3",
    ],
)
def test_words_before_a_colon_are_no_host(line: str) -> None:
    (segment,) = segments(line.encode())
    assert (segment.text, segment.node) == (line, None)


def test_severity_comes_before_signature() -> None:
    for line in LINES:
        for header in (
            "WARNING 11-28 01:41:50 [core.py:708] ",
            "[W218 10:12:01.1 x.cpp:7] ",
            "WARNING:root:",
        ):
            for identity, *_ in facts([header + line]):
                signature = catalogue().signatures.get(identity)
                assert signature is None or signature.severity == "warning" or signature.informs, line


@pytest.mark.parametrize(
    "line",
    [
        "F1004 12:37:49.333159 129114 129114 raylet_client.cc:54] Could not connect to socket /x",
        "[2026-11-28 01:42:26,011 C 9 9] (raylet) local_object_manager.cc:70: something new",
        "(raylet, ip=10.0.0.3) [2026-11-28 01:42:26,011 C 9 9] (raylet) node_manager.cc:70: something new",
        "(W pid=3, ip=10.0.0.3) [2026-11-28 01:42:26,011 C 9 9] core_worker.cc:70: something new",
    ],
)
def test_a_line_of_the_highest_severity_ends_its_process(line: str) -> None:
    assert [item[0] for item in facts([line])] == ["process-aborted"]
    assert facts([line.replace(" C 9", " E 9").replace("F1004", "E1004")]) == []


def test_what_a_line_begins_with_is_kept_behind_a_journal_s_prefix() -> None:
    carried = "2025-07-03T14:00:21+0200 jwb0007 train[4021]: "
    for text in ("\tpid: 18634", "  File 'x'", " one", "none"):
        origin = LineOrigin(node="jwb0007", stamp="2025-07-03T14:00:21+0200")
        assert split_prefixes(carried + text) == (text, origin)
