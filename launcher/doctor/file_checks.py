"""Checks of what the run reads: models, tokenizers, data sets, prompts, and variables that name them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.doctor.verdict import Verdict, failed, passed, unknown, warned
from launcher.environment import Outcome, kind_of
from recipes.checks.data import datasets
from recipes.files import is_file

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from recipes.checks.offline import Need

_DOWNLOAD = re.compile(
    r"hf download (--repo-type dataset )?\w[\w.-]*(/\w[\w.-]*)?( --include 'token\*' '\*\.json')?", re.ASCII
)
_CHANGES = "the Hugging Face cache that the job reads"
_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_CACHE_VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")


def models_are_there(subject: Subject) -> Verdict | None:
    """D22: the weights of student and teacher are where the job looks for them."""
    return _files(subject, "the model ")


def tokenizers_are_there(subject: Subject) -> Verdict | None:
    """D23: the tokenizers are where the job looks for them."""
    return _files(subject, "the tokenizer ")


def data_is_there(subject: Subject) -> Verdict | None:
    """D24: the data sets are where the job looks for them."""
    return _files(subject, "the data ")


def _files(subject: Subject, kind: str) -> Verdict | None:
    needs = [need for need in subject.file_needs if need.name.startswith(kind)]
    if not needs:
        return None
    missing = [need for need in needs if need.present is False]
    if missing:
        commands = [fetching(subject, need) for need in missing if is_download(need.command)]
        others = [need.command for need in missing if need.command.startswith(("ls ", "Load "))]
        by_hand = len(commands) < len(missing)
        where = ", ".join(dict.fromkeys(need.path for need in missing))
        text = f"not in {where}: {', '.join(need.name for need in missing)}"
        judge = failed if subject.offline or by_hand else warned
        return judge(text, *commands, *others, changes=_CHANGES, automatic=not by_hand)
    undecided = [need for need in needs if need.present is None]
    if undecided:
        commands = [
            need.command for need in undecided if is_download(need.command) or need.command.startswith("ls ")
        ]
        text = f"whether it is there: {', '.join(need.name for need in undecided)}"
        return unknown(text if commands else f"{text}. {undecided[0].command}", *commands)
    return passed(", ".join(need.name.removeprefix("the ") for need in needs))


def is_download(command: str) -> bool:
    """Return whether a command fetches a repository of the hub, and nothing else.

    The repository's name is the recipe's, which may be somebody else's: it must not reach a shell otherwise.
    """
    return _DOWNLOAD.fullmatch(command) is not None


def fetching(subject: Subject, need: Need) -> str:
    """Return the command that fetches a file into the job's cache, whatever the shell has set."""
    program = subject.program("hf")
    command = need.command
    if program is not None and program not in {f"{folder}/hf" for folder in _path(subject)}:
        command = f"{shlex.quote(program)} {command.partition(' ')[2]}"
    assignments = [f"{name}=0" for name in _SWITCHES if subject.shell.get(name) not in (None, "", "0")]
    for name in _CACHE_VARIABLES:
        value = subject.job.get(name, "")
        if value != subject.shell.get(name, ""):
            assignments.append(f"{name}={shlex.quote(value)}")
    return " ".join((*assignments, command))


def _path(subject: Subject) -> list[str]:
    return subject.shell.get("PATH", "").split(":")


def prompts_are_there(subject: Subject) -> Verdict | None:
    """D25: the prompt files of the data sets are there."""
    context = subject.context
    assert context is not None
    files = list(_prompt_files(subject))
    missing = [(key, path) for key, path in files if not is_file(path)]
    if missing and subject.checkout is None:
        names = ", ".join(f"{context.get(key)} ({key})" for key, _ in missing)
        return unknown(f"it is relative to the checkout, which is not known: {names}")
    if missing:
        text = ", ".join(f"{path} ({key})" for key, path in missing)
        return failed(f"there is no {text}", f"distill-tui edit {shlex.quote(str(context.recipe.path))}")
    return passed(", ".join(str(path) for _, path in files)) if files else None


def _prompt_files(subject: Subject) -> Iterator[tuple[str, Path]]:
    context = subject.context
    assert context is not None
    listed: set[Path] = set()
    for entry in datasets(context.recipe):
        for key, value in entry.files.values():
            if isinstance(value, str) and value:
                path = context.inputs.root / value
                if path not in listed:
                    listed.add(path)
                    yield key, path


def no_download_was_interrupted(subject: Subject) -> Verdict | None:
    """D26: no download into the cache stopped on the way."""
    context = subject.context
    assert context is not None
    hub = context.inputs.models.hub.directory
    if not hub.is_dir():
        return None
    names = {need.name.rpartition(" ")[2].replace("/", "--"): need for need in subject.file_needs}
    partial: dict[str, Need] = {}
    for folder in hub.iterdir():
        need = names.get(folder.name.partition("--")[2])
        blobs = folder / "blobs"
        if need is not None and blobs.is_dir() and any(blobs.glob("*.incomplete")):
            partial[folder.name] = need
    if partial:
        needs = [need for need in partial.values() if is_download(need.command)]
        commands = [fetching(subject, need) for need in needs]
        text = f"begun and not finished: {', '.join(sorted(partial))}"
        return warned(text, *commands, changes=_CHANGES, automatic=True)
    return passed(f"no *.incomplete of the run's files in {hub}")


def directories_reach_the_job(subject: Subject) -> Verdict:
    """D27: the directories that the shell names for caches and environments are the job's, too."""
    dropped = [
        item
        for item in subject.decisions
        if item.outcome is Outcome.DROPPED and kind_of(item.name) == "storage"
        if item.name not in ("TMPDIR", "BASE_LOG_DIR") and item.reason != "by your choice"
    ]
    if dropped:
        text = "; ".join(f"{item.name} does not reach the job: {item.reason}" for item in dropped)
        return warned(text, f"export {dropped[0].name}=SHARED-DIRECTORY", changes="your shell")
    names = [item.name for item in subject.decisions if item.reaches_job and kind_of(item.name) == "storage"]
    return passed(f"{', '.join(names)}" if names else "your shell names none")


def wandb_needs_no_internet(subject: Subject) -> Verdict | None:
    """D28: wandb does not wait for an answer that nodes without internet never get."""
    context = subject.context
    assert context is not None
    if context.get("logger.wandb_enabled") is not True:
        return None
    mode = subject.job.get("WANDB_MODE", "")
    if mode in ("offline", "disabled", "dryrun"):
        return passed(f"WANDB_MODE={mode}; `wandb sync` on a login node sends it afterwards")
    if subject.offline:
        return failed(
            "the recipe logs to wandb, and the nodes have no internet: it waits 90 s, then fails",
            "export WANDB_MODE=offline",
            changes="your shell",
        )
    if "WANDB_API_KEY" in subject.job or is_file(subject.path(subject.shell.get("HOME", "/")) / ".netrc"):
        return passed("the job has internet and a key")
    return warned("the recipe logs to wandb, and the job has no key", "wandb login", changes="~/.netrc")
