"""Kinds of exceptions: their words and their advice; one that was caught is no failure."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from launcher.logs.events import FindingSeen, Role
from launcher.logs.exception_kinds import exception_kind, exception_kinds
from launcher.logs.signatures import catalogue
from recipes.inheritance import resolve
from tests.launcher.test_diagnosis import state_of

CASES: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases" / "logs" / "exceptions.toml").read_text(encoding="utf-8")
)
_LINES_OF_80 = 2 * 80
_WORKER = "(DTensorPolicyWorkerV2[rank=3] pid=87, ip=10.1.4.14) "


def root_of(log: str, role: Role = Role.DRIVER) -> FindingSeen | None:
    return state_of(("log", role, log.encode())).diagnosis.root


def failed_with(*message: str) -> str:
    """Return a driver's log that ends with an exception of a worker."""
    return "\n".join((
        "Traceback (most recent call last):",
        '  File "/r/examples/run_distillation.py", line 9, in <module>',
        "    main()",
        "ray.exceptions.RayTaskError(ValueError): ray::DTensorPolicyWorkerV2.train() (pid=87, ip=10.1.4.14, "
        "actor_id=ff, repr=DTensorPolicyWorkerV2[rank=3])",
        '  File "/r/nemo_rl/models/policy/workers/dtensor_policy_worker_v2.py", line 812, in train',
        "    self.step(batch)",
        '  File "/v/lib/python3.12/site-packages/torch/nn/functional.py", line 2551, in embedding',
        "    return torch.embedding(weight)",
        *message,
        "",
    ))  # fmt: skip


@pytest.mark.parametrize("identity", sorted(CASES))
def test_its_words_are_of_its_kind(identity: str) -> None:
    case = CASES[identity]
    for text in case["yes"]:
        kind = exception_kind(text)
        assert kind is not None
        assert kind.id == identity
        root = root_of(failed_with(text))
        assert root is not None
        assert (root.id, root.rank, root.node) == (identity, 3, "10.1.4.14")
        assert root.fix.endswith(kind.fix)
    for text in case["no"]:
        assert exception_kind(text) is None


def test_every_kind_has_cases_and_advice_that_fits_on_two_lines() -> None:
    kinds = exception_kinds()
    assert set(CASES) == set(kinds)
    assert not set(kinds) & set(catalogue().signatures)
    assert {name: len(kind.fix) for name, kind in kinds.items() if len(kind.fix) > _LINES_OF_80 + 10} == {}
    assert all(kind.source and not kind.title.endswith(".") for kind in kinds.values())


def test_its_edits_name_keys_that_recipes_have(shared: Path) -> None:
    recipe = resolve(shared / "corpus" / "nemo-rl" / "examples" / "configs" / "distillation_math.yaml")
    edits = [edit for kind in exception_kinds().values() for edit in kind.edits]
    assert [edit.key for edit in edits if not recipe.has(edit.key)] == []
    assert all((edit.to is None) != (edit.how == "") for edit in edits)


@pytest.mark.parametrize("identity", sorted(CASES))
def test_one_that_was_caught_is_no_failure(identity: str) -> None:
    text = CASES[identity]["yes"][0]
    traceback = ["Traceback (most recent call last):", '  File "/v/x.py", line 3, in probe', "    go()", text]
    log = "".join(f"{_WORKER}{line}\n" for line in traceback) + f"{_WORKER}falling back to the slow path\n"
    assert root_of(log) is None
    assert root_of(f"{_WORKER}WARNING 11-28 02:16:40 [x.py:1] {text}\n") is None


def test_one_of_no_kind_says_where_it_was_raised() -> None:
    root = root_of(failed_with("IndexError: index out of range in self"))
    assert root is not None
    assert root.id == "exception"
    assert root.fix == (
        "Raised in torch/nn/functional.py:2551, called from nemo_rl/models/policy/workers/"
        "dtensor_policy_worker_v2.py:812. Read the traceback above this line."
    )


def test_a_file_of_no_package_is_named_by_its_end() -> None:
    frame = '  File "/p/project1/x/train.py", line 3, in <module>\n    main()\n'
    root = root_of(f"Traceback (most recent call last):\n{frame}KeyError: 'loss'\n")
    assert root is not None
    assert root.fix.startswith("Raised in project1/x/train.py:3. ")


_ENGINE = (
    "(VllmGenerationWorker pid=5, ip=10.0.0.2) (EngineCore_DP0 pid=7) ERROR 11-20 12:15:03 [core.py:895] "
)


def chain_of(first: str, words: str, second: str) -> str:
    """Return a log in which an engine's exception was raised while another one was handled."""
    lines = (
        "Traceback (most recent call last):", '  File "/v/shm.py", line 614, in acquire_read',
        "    raise error", first, "", words, "",
        "Traceback (most recent call last):", '  File "/v/rpc.py", line 345, in rpc', "    raise e", second,
    )  # fmt: skip
    return "".join(f"{_ENGINE}{line}\n" for line in lines) + (
        "Traceback (most recent call last):\n"
        '  File "/r/examples/run_distillation.py", line 9, in <module>\n'
        "    main()\n"
        "ray.exceptions.RayTaskError(EngineDeadError): ray::VllmGenerationWorker.generate() "
        "(pid=5, ip=10.0.0.2, actor_id=f, repr=VllmGenerationWorker)\n"
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
    )


CAUSED = "The above exception was the direct cause of the following exception:"
DURING = "During handling of the above exception, another exception occurred:"


@pytest.mark.parametrize(
    ("first", "words", "second", "cause"),
    [
        ("TimeoutError", CAUSED, "TimeoutError: RPC call to sample_tokens timed out.", "RPC call"),
        ("queue.Empty", DURING, "RuntimeError: the scheduler gave nothing", "gave nothing"),
        ("ValueError", CAUSED, "RuntimeError: block 7 is not free", "block 7"),
        # A name of its own says more than that the process could not go on.
        ("packing.ShapeError", CAUSED, "RuntimeError: could not go on", "ShapeError"),
        # What went wrong while an error was handled does not explain it.
        ("AssertionError", DURING, "RuntimeError: cannot close the pool", "AssertionError"),
        ("ValueError: page 3 is twice in use", CAUSED, "RuntimeError: step failed", "page 3"),
        ("TimeoutError", CAUSED, "RuntimeError", "TimeoutError"),
    ],
)
def test_the_exception_with_a_message_explains_the_one_without(
    first: str, words: str, second: str, cause: str
) -> None:
    root = root_of(chain_of(first, words, second))
    assert root is not None
    assert cause in root.text
    assert root.node == "10.0.0.2"


def test_a_subprocess_that_failed_is_the_cause_of_what_reports_it() -> None:
    lines = [
        "Error in inspecting model architecture 'Q'",
        "Traceback (most recent call last):",
        '  File "/v/registry.py", line 1120, in _run_in_subprocess',
        "    returned.check_returncode()",
        "subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.",
        "",
        CAUSED,
        "",
        "Traceback (most recent call last):",
        '  File "/v/registry.py", line 770, in inspect',
        "    return model.inspect()",
        "RuntimeError: Error raised in subprocess:",
        "Traceback (most recent call last):",
        '  File "/v/fla/utils.py", line 14, in <module>',
        "    import triton",
        "ModuleNotFoundError: No module named 'triton.knobs'",
    ]
    printed = "".join(f"(W pid=4426) ERROR 06-03 12:30:46 [registry.py:772] {line}\n" for line in lines)
    root = root_of(printed + failed_with(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, Model architectures ['Q'] failed to be inspected. Please check the logs",
    ))  # fmt: skip
    assert root is not None
    assert (root.id, root.text) == ("package-missing", "ModuleNotFoundError: No module named 'triton.knobs'")


def test_a_validation_that_names_a_setting_stays_one() -> None:
    root = root_of(failed_with(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, max_model_len must be positive [type=value_error]",
    ))  # fmt: skip
    assert root is not None
    assert root.id == "cfg-pydantic"


TORCHRUN = """\
[rank6]: Traceback (most recent call last):
[rank6]:   File "/r/t.py", line 3, in <module>
[rank6]:     main()
[rank6]: {error}
Traceback (most recent call last):
  File "/v/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
t.py FAILED
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_03:12:44
  host      : jwb0077.juwels
  rank      : 6 (local_rank: 2)
  exitcode  : {code} (pid: 2302)
  error_file: <N/A>
  traceback : {traceback}
"""


def test_the_host_of_a_rank_is_that_of_the_launchers_report() -> None:
    log = TORCHRUN.format(error="ValueError: odd batch", code=1, traceback="To enable traceback see: x")
    root = root_of(log, Role.SLURM)
    assert root is not None
    assert (root.text, root.rank, root.node) == ("ValueError: odd batch", 6, "jwb0077.juwels")


def test_a_rank_that_printed_under_its_number_is_not_silent() -> None:
    error = "torch.distributed.DistBackendError: NCCL error in: x.cpp:77, unhandled system error, NCCL 2.26"
    root = root_of(TORCHRUN.format(error=error, code=1, traceback="To enable traceback see: x"), Role.SLURM)
    assert root is not None
    assert (root.id, root.rank) == ("nccl-sys", 6)


def test_a_rank_that_was_killed_is_told_as_killed_and_ends_the_run() -> None:
    log = TORCHRUN.partition("Traceback (most recent call last):\n  File")[2]
    log = f"Traceback (most recent call last):\n  File{log}".format(
        code=-9, traceback="Signal 9 (SIGKILL) received by PID 2302"
    )
    state = state_of(("log", Role.SLURM, log.encode()))
    root = state.diagnosis.root
    assert root is not None
    assert (root.rank, root.node, root.confidence) == (6, "jwb0077.juwels", "low")
    assert "Signal 9 (SIGKILL)" in root.text
    assert root.fix.startswith("SIGKILL ended rank 6 ")


def test_the_engines_memory_has_the_engines_advice_in_any_phase() -> None:
    oom = "ERROR 05-08 19:06:38 [core.py:866] torch.OutOfMemoryError: CUDA out of memory."
    log = "▶ Setting up teacher policy...\n(VllmGenerationWorker pid=5) (EngineCore_DP0 pid=7) " + oom + "\n"
    root = root_of(log)
    assert root is not None
    assert root.fix.startswith("Generation ran out")
    root = root_of(
        log.replace("(VllmGenerationWorker pid=5) (EngineCore_DP0 pid=7)", "(DTensorPolicyWorker pid=5)")
    )
    assert root is not None
    assert root.fix.startswith("The teacher ran out")


BOX = (
    "╭─────────────── Traceback (most recent call last) ───────────────╮",
    "│ /p/x/train.py:300 in <module>                                   │",
    "│ ❱ 300     main()                                                │",
    "│ ValueError: in the source, not the cause                        │",
    "╰─────────────────────────────────────────────────────────────────╯",
)


@pytest.mark.parametrize(
    "prefix", ["", "[rank2]: ", "(W[rank=2] pid=7, ip=10.0.0.2) ", "2026-07-01T10:00:00.1Z "]
)
@pytest.mark.parametrize("error", ["ValueError: sample 8123 has no tokens", "StopIteration"])
def test_the_exception_below_a_box_of_frames_is_read(prefix: str, error: str) -> None:
    log = "".join(f"{prefix}{line}\n" for line in (*BOX, error))
    root = root_of(log + TORCHRUN.partition("main()\n")[2].format(error="x", code=1, traceback="To enable"))
    assert root is not None
    assert error in root.text


def test_of_chained_boxes_the_first_counts() -> None:
    root = root_of(
        "\n".join((*BOX, "KeyError: 'labels'", "", CAUSED, "", *BOX, "RuntimeError: bad batch", ""))
    )
    assert root is not None
    assert root.text == "KeyError: 'labels'"


def test_a_box_in_a_models_text_is_text() -> None:
    sample = "".join(f"│ {line}\n" for line in (*BOX, "ValueError: x"))
    assert root_of(f"╭─ Sample 1 ─╮\n{sample}╰────────────╯\n") is None


def test_nccls_last_error_stands_with_the_exception() -> None:
    root = root_of(failed_with(
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:7, unhandled cuda error, NCCL version 2.26",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        "Last error:",
        "Cuda failure 'peer access is not supported'",
    ))  # fmt: skip
    assert root is not None
    assert root.id == "nccl-cuda"
    assert root.text.endswith("Last error: Cuda failure 'peer access is not supported'")


def test_an_engine_that_was_killed_is_told_as_killed() -> None:
    words = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    killed = root_of(failed_with(words.replace("{}", "{'EngineCore_DP0': -9}")))
    ended = root_of(failed_with(words.replace("{}", "{'EngineCore_DP0': 1}")))
    assert killed is not None
    assert ended is not None
    assert killed.fix.startswith("SIGKILL ended ")
    assert "SIGKILL" not in ended.fix


def test_a_validation_that_quotes_a_kind_is_of_that_kind() -> None:
    root = root_of(failed_with(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, User-specified max_model_len (9) is greater than the derived max_model_len (4).",
    ))  # fmt: skip
    assert root is not None
    assert (root.id, root.tier) == ("model-length", 2)


def test_of_a_bare_assertion_the_source_is_told() -> None:
    frames = [
        "Traceback (most recent call last):",
        '  File "/r/nemo_rl/models/policy/worker.py", line 120, in train',
        "    assert batch.size > 0",
        "           ^^^^^^^^^^^^^^",
        "AssertionError",
    ]
    root = root_of("\n".join(frames) + "\n")
    assert root is not None
    assert (root.text, root.fix.partition(". ")[0]) == (
        "AssertionError assert batch.size > 0", "Raised in nemo_rl/models/policy/worker.py:120",
    )  # fmt: skip


@pytest.mark.parametrize(("host", "advice"), [("jwb0077.juwels", "--exclude=jwb0077"), ("10.0.0.2", "=NODE")])
def test_the_advice_names_the_node_to_leave_out(host: str, advice: str) -> None:
    error = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    log = TORCHRUN.format(error=error, code=1, traceback="To enable traceback see: x")
    root = root_of(log.replace("jwb0077.juwels", host), Role.SLURM)
    assert root is not None
    assert (root.id, root.node) == ("gpu-ecc", host)
    assert advice in root.fix
