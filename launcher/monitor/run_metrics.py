"""Measurements of a run, as a basis for planning the next one: its pace and the memory of its GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from launcher.errors import InputError
from launcher.logs.gpu_samples import peak_of_table
from launcher.monitor.watch_run import summary_of
from launcher.runs import Run
from launcher.transports.base import Transport


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Measurements of a run; None: not measured."""

    run: str
    nodes: int
    gpus_per_node: int
    step_s: float | None
    """Median of the last steps, in seconds."""
    steps: int
    peak_gib: float | None
    """Largest memory in use on one of its GPUs, sampled every 15 s: short peaks are missed."""
    gpu_gib: float | None
    """Total memory of that GPU."""


def run_metrics(transport: Transport, run: Run) -> RunMetrics:
    """Return the measurements of a run so far.

    Raises:
        InputError: it was a rehearsal, whose models are stand-ins.
        TransportError: its files cannot be read.
    """
    if run.spec.kind == "rehearsal":
        raise InputError(
            f"{run.spec.id} was a rehearsal: its models are stand-ins, so there are no measurements",
            fix="Give a smoke run (`submit --smoke`) or a training run.",
        )
    metrics = summary_of(transport, run)["metrics"]
    peak = peak_memory(transport, run)
    return RunMetrics(
        run.spec.id,
        run.spec.nodes,
        run.spec.gpus_per_node,
        metrics.get("step_time_recent_s"),
        len(metrics.get("step_time_s", ())),
        peak[0] if peak else None,
        peak[1] if peak else None,
    )


def peak_memory(transport: Transport, run: Run) -> tuple[float, float] | None:
    """Return the largest memory in use on a GPU of a run and its total, in GiB; None: no record."""
    peaks = []
    if transport.stat(run.logs) is None:
        return None
    for folder in transport.listdir(run.logs):
        if not folder.name.endswith("-logs"):
            continue
        directory = Path(run.logs, folder.name)
        for entry in transport.listdir(str(directory)):
            if entry.name.startswith("gpu-") and entry.name.endswith(".csv"):
                table = transport.read(str(directory / entry.name)).decode(errors="replace")
                peaks.append(peak_of_table(table))
    return max(filter(None, peaks), default=None)
