"""Report on a run: one redacted document to give to others."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from launcher.errors import TransportError
from launcher.logs.events import Source
from launcher.logs.sources import LogFile
from launcher.monitor.redact import Redactor
from launcher.monitor.summary import state_json
from launcher.monitor.watch import Watch
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.printable import escaped_json, visible, visible_lines

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CONTEXT_LINES = 4
_CONTEXT_BYTES = 8 * 1024
_LINE_LIMIT = 400
_TAIL_LIMIT = 4000
_EVIDENCE = 8
"""Number of findings shown with their context."""
# Variables that affect a run; no others are disclosed.
_VARIABLES = (
    "NEMO_RL_ROOT", "NEMO_RL_VENV_DIR", "RAY_BARE_VENV", "RAY_TMPDIR", "RAY_ADDRESS", "GPUS_PER_NODE",
    "COMMAND",
    "HF_HOME", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "WANDB_MODE", "UV_OFFLINE",
    "UV_CACHE_DIR", "TORCH_CUDA_ARCH_LIST", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "PYTHONPATH",
    "PYTORCH_CUDA_ALLOC_CONF", "OMP_NUM_THREADS", "SLURM_OVERLAP", "TMPDIR",
)  # fmt: skip
_VARIABLE_PREFIXES = ("NCCL_", "GLOO_", "NRL_", "NVTE_", "VLLM_", "RAY_BARE_", "TORCH_NCCL_")


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Facts about a run besides its logs; any may be missing."""

    recipe: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()
    """Key, the parent's value, the recipe's value."""
    recipe_problem: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[Mapping[str, Any], ...] = ()
    checkout: Mapping[str, Any] = field(default_factory=dict)
    """Path, commit, branch, changes (`diff --stat`) and number of untracked files of the checkout."""
    doctor: Mapping[str, Any] = field(default_factory=dict)
    """The doctor's latest report: `at`, `host`, `recipe` and `checks`."""


def relevant_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that affect a run."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES)
    }


def report_json(name: str, watch: Watch, facts: ReportFacts, redact: Redactor) -> dict[str, Any]:
    """Return the report as data, redacted."""
    state = state_json(name, watch.state)
    logs = {log.name: log for log in watch.known_logs}
    evidence = [
        {
            **item,
            "context": context(watch.transport, logs.get(item["log"]), finding.source),
        }
        for item, finding in zip(state["findings"], watch.state.findings, strict=True)
    ]
    redact = redact.having_read(json.dumps([state, evidence]))
    for item in evidence:  # lines of one text: a key may go over several
        texts = redact.lines([line["text"] for line in item["context"]])
        item["context"] = [{**line, "text": text} for line, text in zip(item["context"], texts, strict=True)]
    document = {
        **state,
        "findings": evidence,
        "jobs": list(facts.jobs),
        "recipe": {
            "file": facts.recipe,
            "problem": facts.recipe_problem,
            "changes": [
                {
                    "key": key,
                    "parent": _redacted_entry(key, a, redact),
                    "value": _redacted_entry(key, b, redact),
                }
                for key, a, b in facts.changes
            ],
        },
        "checkout": dict(facts.checkout) or None,
        "environment": dict(facts.environment),
        "doctor": dict(facts.doctor) or None,
    }
    cleaned: dict[str, Any] = _redacted(document, redact.having_read(json.dumps(document)))
    commit = str(facts.checkout.get("commit", ""))
    if _COMMIT.fullmatch(commit):  # it has the form of a key, too
        cleaned["checkout"]["commit"] = commit
    return {**cleaned, "redacted": dict(sorted(redact.removed.items()))}


def _redacted(value: Any, redact: Redactor) -> Any:  # noqa: ANN401 - JSON is anything
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted_entry(str(key), item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redacted(item, redact) for item in value]
    return value


def _redacted_entry(key: str, item: Any, redact: Redactor) -> Any:  # noqa: ANN401
    """Redact a value together with its name, which may mark it as a secret."""
    if not isinstance(item, str):
        return _redacted(item, redact)
    _, _, value = redact(f"{key}={redact(item)}").partition("=")
    return value


def context(transport: Transport, log: LogFile | None, source: Source) -> list[dict[str, Any]]:
    """Return the lines around a source, cleaned; none where the log cannot be read (any more)."""
    line, offset = source.line, source.offset
    if log is None or line == 0:
        return []
    start = max(0, offset - _CONTEXT_BYTES)
    try:
        data = transport.read(log.path, start, 2 * _CONTEXT_BYTES)
    except TransportError:
        return []
    before, after = data[: offset - start], data[offset - start :]
    above = before.split(b"\n")[:-1][-_CONTEXT_LINES:]
    if start > 0 and len(above) < _CONTEXT_LINES:
        above = above[1:]  # its beginning is missing
    first = line - len(above)
    lines = above + after.split(b"\n")[: _CONTEXT_LINES + 1]
    return [{"line": first + index, "text": _cleaned(raw)} for index, raw in enumerate(lines)]


def _cleaned(raw: bytes) -> str:
    last = raw.rstrip(b"\r").rpartition(b"\r")[2]
    return clean(last.decode("utf-8", errors="replace"))[:_LINE_LIMIT]


def markdown(report: Mapping[str, Any]) -> str:
    """Return a report's data as a Markdown document."""
    return visible_lines("\n".join(_sections(report))) + "\n"


def _sections(report: Mapping[str, Any]) -> Iterator[str]:
    metrics = report["metrics"]
    yield f"# {report['run']}: {report['state']}"
    yield from ("", report["reason"] or "No reason is known.", "")
    yield f"Step {metrics['step']} of {metrics['max_steps'] or 'an unknown number'}."
    if metrics["loss"]:
        yield f"First loss {metrics['loss'][0]}, last loss {metrics['loss'][-1]}."
    if len(report["attempts"]) > 1:
        yield from ("", "## Attempts", "")
        yield from (f"- {attempt['text']}" for attempt in report["attempts"])
    yield from _cause(report["findings"])
    yield from _timeline(report)
    yield from _recipe(report["recipe"])
    yield from _checkout(report["checkout"])
    yield from _table("Environment", report["environment"])
    yield from _doctor(report["doctor"])
    if report["job"] is not None or report["jobs"]:
        yield from ("", "## Job", "")
        if report["job"] is not None and report["state"] != "completed":
            yield f"The cluster reports: {report['job']['state']} {report['job']['reason']}".rstrip()
        for job in report["jobs"]:
            records = job.get("slurm", ())
            yield f"- {json.dumps({key: job[key] for key in job if key != 'slurm'}, ensure_ascii=False)}"
            yield from _accounting(records)
    yield from ("", "## Logs", "")
    for log in report["logs"]:
        problem = f" ({log['problem']})" if log["problem"] else ""
        yield f"- {log['role']}: `{log['name']}`, {log['bytes']} bytes, {log['lines']} lines{problem}"
    for tracker in report["trackers"]:
        yield f"- {tracker['kind']}: `{tracker['path']}`"
    if report["redacted"]:
        yield from ("", "## Removed from this report", "")
        yield from (f"- {kind}: {count}" for kind, count in report["redacted"].items())


def _accounting(records: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield Slurm's accounting records of a job, one table per start of the job."""
    for record in records:
        yield from ("", "  | Slurm | |", "  |---|---|")
        yield from (f"  | {name} | {_cell(value)} |" for name, value in record.items())
        yield ""


def _cause(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Cause", "")
    if not findings:
        yield "No failure was recognised."
        return
    for index, item in enumerate(findings):
        location = [f"`{item['log']}:{item['line']}`"] if item["line"] else ["reported by the cluster"]
        location += [f"{name} {item[name]}" for name in ("node", "rank") if item[name] is not None]
        if item["root"]:
            yield f"**{item['title']}** ({', '.join(location)}; confidence: {item['confidence']})"
            yield from ("", f"What to do: {item['fix']}")
            yield from (f"- `{edit['key']}`: {_edit(edit)}" for edit in item["edits"])
            if item["doctor"]:
                yield from ("", f"`distill-tui doctor` looks for it before: {', '.join(item['doctor'])}.")
        else:
            kind = "Warning" if item["severity"] == "warning" else "Also seen"
            yield from ("", f"{kind}: {item['title']} ({', '.join(location)})")
        if item["context"] and index < _EVIDENCE:
            yield from ("", "```text")
            for line in item["context"]:
                mark = ">" if line["line"] == item["line"] else " "
                yield f"{mark}{line['line']:7} {line['text']}".replace("```", "'''")
            yield "```"


def _edit(edit: Mapping[str, Any]) -> str:
    return str(edit["how"]) if edit["to"] is None else json.dumps(edit["to"])


def _timeline(report: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Timeline", "", "| time | event | source |", "|---|---|---|")
    entries = [(item["time"], item["title"], item) for item in report["milestones"]]
    entries += [(item["time"], f"✗ {item['title']}", item) for item in report["findings"]]
    for time, title, item in sorted(entries, key=lambda entry: (entry[0] is None, entry[0] or 0.0)):
        moment = datetime.fromtimestamp(time).astimezone().isoformat(" ", "seconds") if time else "unknown"
        yield f"| {moment} | {_cell(title)} | {item['log']}:{item['line']} |"


def _recipe(recipe: Mapping[str, Any]) -> Iterator[str]:
    if not recipe["file"]:
        return
    yield from ("", "## Recipe", "", f"`{recipe['file']}`")
    if recipe["problem"]:
        yield from ("", f"It could not be compared with its parent: {recipe['problem']}")
    if recipe["changes"]:
        yield from ("", "| key | parent | this recipe |", "|---|---|---|")
        for change in recipe["changes"]:
            yield f"| `{change['key']}` | {_cell(change['parent'])} | {_cell(change['value'])} |"


def _checkout(checkout: Mapping[str, Any] | None) -> Iterator[str]:
    if checkout is None:
        return
    yield from ("", "## NeMo-RL checkout", "", f"`{checkout['path']}`")
    if not checkout["commit"]:
        yield "Its commit is unknown."
        return
    branch = f" ({checkout['branch']})" if checkout["branch"] not in ("", "HEAD") else ""
    state = "with local changes" if checkout["dirty"] else "unchanged"
    yield f"Commit {checkout['commit']}{branch}, {state}."
    if checkout["untracked"]:
        yield f"Untracked files: {checkout['untracked']}."
    if checkout["changes"]:
        yield from ("", "```text", checkout["changes"].replace("```", "'''"), "```")


def _doctor(doctor: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what the doctor said last; checks that passed are only counted."""
    if doctor is None:
        return
    at = doctor["at"]
    moment = datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds") if at else "an unknown time"
    recipe = f", for `{doctor['recipe']}`" if doctor["recipe"] else ""
    yield from ("", "## Doctor", "", f"On {doctor['host']} at {moment}{recipe}.")
    others = [item for item in doctor["checks"] if item["outcome"] != "pass"]
    yield f"{len(doctor['checks']) - len(others)} of {len(doctor['checks'])} checks passed."
    if others:
        yield from ("", "| check | outcome | evidence |", "|---|---|---|")
        for item in others:
            yield f"| {item['id']} {_cell(item['title'])} | {item['outcome']} | {_cell(item['evidence'])} |"


def _table(title: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield from ("", f"## {title}", "", "| name | value |", "|---|---|")
        for name, value in values.items():
            yield f"| `{name}` | {_cell(value)} |"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def write_tar(path: str, report: Mapping[str, Any], watch: Watch, redact: Redactor, lines: int) -> None:
    """Write the report and the last lines of every log, redacted, into a gzipped tar.

    Raises:
        TransportError: the file cannot be written, or a secret would be left in it.
    """
    logs: dict[str, str] = {}
    for log in watch.known_logs:
        name = visible(redact(log.name)).replace("..", "_").lstrip("/")
        while name in logs:
            name += "_"
        logs[name] = tail(watch.transport, log, lines, redact)
    report = {**report, "redacted": dict(sorted(redact.removed.items()))}
    members = {
        "report.md": redact(markdown(report)),
        "report.json": escaped_json(json.dumps(report, ensure_ascii=False, indent=1)),
        **{f"logs/{name}": text for name, text in logs.items()},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            data = text.encode("utf-8", "backslashreplace")
            info = tarfile.TarInfo(f"report/{name}")
            info.size = len(data)
            info.mode = 0o600
            archive.addfile(info, io.BytesIO(data))
    _check_archive(buffer.getvalue(), redact)
    watch.transport.write_atomic(path, buffer.getvalue(), 0o600)


def _check_archive(data: bytes, redact: Redactor) -> None:
    """Read an archive back as its receiver does, and look for secrets.

    Raises:
        TransportError: it holds one.
    """
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for item in archive.getmembers():
            file = archive.extractfile(item)
            text = file.read().decode() if file is not None else ""
            texts = _texts(json.loads(text)) if item.name.endswith("report.json") else (item.name, text)
            kind = next(filter(None, map(redact.remaining, texts)), "")
            if kind:
                raise TransportError(
                    f"the archive was not written: a secret would be left in {item.name} ({kind})",
                    fix="Send the output of `report` without --tar.",
                )


def _texts(value: Any, key: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON is anything
    """Yield the texts of a document; the commit of a checkout has the form of a key, too."""
    if isinstance(value, str) and not (key == "commit" and _COMMIT.fullmatch(value)):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def tail(transport: Transport, log: LogFile, lines: int, redact: Redactor) -> str:
    """Return the last lines of a log, cleaned and redacted; only its end is read."""
    try:
        entry = transport.stat(log.path)
        size = entry.size if entry is not None else 0
        start = max(0, size - lines * _LINE_LIMIT)
        data = transport.read(log.path, start, size - start)
    except TransportError as error:
        return f"{redact(str(error))}\n"
    kept = data.split(b"\n")[1 if start else 0 :][-lines - 1 :]
    cleaned = [clean(line.decode("utf-8", errors="replace"))[:_TAIL_LIMIT] for line in kept]
    redact = redact.having_read("\n".join(cleaned))
    return "\n".join(redact.lines(cleaned))
