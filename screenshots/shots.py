"""Which pictures there are: keys to press, and texts to wait for. Tables."""

from __future__ import annotations

from dataclasses import dataclass

SIZES = ((80, 24), (160, 48))
WIZARD_SIZES = ((80, 24), (120, 40), (160, 48))


@dataclass(frozen=True)
class Late:
    """A text that a worker puts on the screen of one size, and how often: columns and lines need space."""

    size: tuple[int, int]
    text: str
    times: int = 1


@dataclass(frozen=True)
class Shot:
    """A screenshot: keys to press, and texts to wait for."""

    name: str
    keys: tuple[str, ...]
    shows: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...] = SIZES
    late: tuple[Late, ...] = ()
    down: bool = False
    """Whether Slurm gives no answer from here on."""
    login: bool = False
    """Whether a host asks for a code."""

    def is_on(self, screen: str, size: tuple[int, int]) -> bool:
        """Tell whether a painted screen of this size has all its texts."""
        due = [late for late in self.late if late.size == size]
        return all(text in screen for text in self.shows) and all(
            screen.count(late.text) >= late.times for late in due
        )


SHOTS = (
    Shot("home", (), ("3 runs", "● running", "✓ completed", "✗ failed")),
    Shot("monitor", ("enter",), ("● running", "✓ First checkpoint saving", "at step 17")),
    Shot(
        "logs",
        ("3", "slash", *"loss", "enter"),
        ("paused", "Loss: "),
        ((80, 24),),
        (Late((80, 24), "match 17 of 17"), Late((80, 24), "450/468 lines")),
    ),
    Shot("panes", ("p",), ("▸driver",)),
    Shot("picker", ("l",), ("enter opens", "launcher.log")),
    Shot("help", ("escape", "1", "f1"), ("Help", "Monitor")),
    Shot("failed", ("q", "b", "down", "enter"), ("✗ reason: ValueError", "not reached")),
)
"""In this order, in one session for each size."""
WIZARD_SHOTS = (
    Shot("wizard-cluster", (), ("▸ booster", "node-h", "GiB")),
    Shot("wizard-models", ("pagedown", *["down"] * 3), ("NeMo-RL checkout", "vocabulary")),
    Shot(
        "wizard-parallelism", ("pagedown", "down", "down", "2"), ("Student TP", "● Teacher TP", "2 copies of")
    ),
    Shot("wizard-batches", ("pagedown", "down", "down", *"30"), ("● Global batch", "✗ C22")),
    Shot("wizard-data", ("backspace", "backspace", *"16", "pagedown"), ("Data set", "Log directory")),
    Shot("wizard-job", ("pagedown", "2", "down", "down", *"2h30"), ("each node", "02:30:00")),
    Shot("wizard-review", ("pagedown",), ("Job", "resources", "press t", "1 not ready")),
    Shot("wizard-saving", ("w", "down"), ("Your choices", "save into"), ((80, 24),)),
)
"""Each step of the wizard, with typed values, one of which would fail; and what becomes of them."""
EDITOR_SHOTS = (
    Shot("editor", ("slash", *"tensor_parallel", "enter"), ("_parallel_size", "this file, line", "C37")),
    Shot("editor-value", ("enter",), ("present value",)),
    Shot("editor-checks", ("escape", "3"), ("World size",), ((80, 24),)),
    Shot("editor-text", ("1", "f", "2", "enter"), ("text mode", "no failure predicted"), ((80, 24),)),
    Shot("editor-diff", ("escape", "D"), ("what would be saved", "+1"), ((80, 24),)),
)
"""The recipe editor: a size that would fail, its legal values, the checks, the text, the fix as a diff."""
OVERVIEW_SHOTS = (
    Shot(
        "jobs", (), ("other-train", "◌ queued", "✓ completed", "✗ failed"), late=(Late((160, 48), " kB ", 2),)
    ),
    Shot("jobs-grouped", ("v",), ("▾ rehearsal.yaml", "by recipe")),
    Shot(
        "jobs-filtered", ("v", "slash", *"tr"), ("1 of 3 runs, 1 of 2 other jobs", "other-train", "first-try")
    ),
    Shot("jobs-marked", ("escape", "o", "o", "home", "space", "space"), ("● 2 marked", "by name")),
    Shot("jobs-remove", ("d",), ("Remove this run?", "first-try", "1 run that may still run: kept")),
    Shot("comparison", ("escape", "D"), ("A demo", "B first-try", "loss")),
    Shot("comparison-figures", ("2",), ("step, median", "until Driver started")),
    Shot("comparison-recipes", ("3",), ("A demo", "B first-try", "policy.optimizer.kwargs.lr", "2e-05")),
    Shot("comparison-three", ("b", "down", "space", "D"), ("A demo", "B first-try", "C topk-64", "loss")),
    Shot("charts", ("b", "escape", "home", "m"), ("▸loss", "2 of 4 GPUs of jwb0001 idle")),
    Shot("chart", ("enter", "L", "s"), ("log scale, mean of 5",)),
    Shot("chart-closer", ("L", "plus", "plus", "less_than_sign"), ("mean of 5", "▸loss")),
    Shot("charts-filtered", ("b", "minus", "minus", "slash", *"gpu"), ("gpu/jwb0001", "(18 charts)")),
    Shot("chart-time", ("enter", "right", "enter"), ("▸gpu/jwb0001/memory_gib_max", "4m45s")),
    Shot("jobs-down", ("b", "b", "b", "f5"), ("! Slurm gives no answer", "● running~"), down=True),
)
"""The list with jobs of other programs, runs beside each other, charts; at last Slurm gives no answer."""
EMPTY_SHOTS = (
    Shot("home-empty", (), ("No runs yet.", "distill-tui demo")),
    Shot("home-watch", ("w",), ("Watch a job", "number of a Slurm job")),
    Shot("home-help", ("escape", "f1"), ("Help", "Filter the list")),
)
"""The list without a run, the question what to watch, and its help."""
DRAFT_SHOTS = (
    Shot("drafts", (), ("3 runs, 2 other jobs, 2 drafts", "◇ draft", "mine.yaml", "✓ completed")),
    Shot("new-run", ("n",), ("New run", "continue the draft", "start over")),
    Shot("palette", ("escape", "ctrl+p"), ("Cancel", "Charts")),
    Shot("doctor", ("escape", "f9"), ("✗ not ready", "D18", "prefetch_venvs")),
    Shot("doctor-fix", ("f",), ("Run this command?", "run in this terminal")),
    Shot("login", ("escape", "b"), ("Log in to juwels", "Verification code"), login=True),
)
"""The list with drafts, which are offered for a new run; all commands; the doctor; a host asks for a code."""
