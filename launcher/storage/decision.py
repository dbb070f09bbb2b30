"""Where runs are kept: asked once, when they would go into the home directory and nothing was decided.

storage = run_storage(layout, job_environment, root, transport, environment)
question = storage_question(layout, storage, transport, environment)    None: nothing to ask
decide(answer, environment)                                             remembers the answer
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import InputError
from launcher.paths import RUNS_VARIABLE, expand, runs_root
from launcher.settings import KEEP, load_settings, set_setting
from launcher.storage.location import Location, Offer, locate, offers
from launcher.storage.quotas import QuotaReader
from launcher.storage.size import CheckpointSize, checkpoint_size, gigabytes, saves_checkpoints
from launcher.transports.base import Transport

if TYPE_CHECKING:
    from launcher.clusters.base import RunLayout
    from recipes.inheritance import EffectiveRecipe
    from recipes.models import Models

COMMAND = "distill-tui settings storage.runs DIR"
_LOGS_BYTES = 100_000_000
"""Room for logs and scripts of a run: a real run of some hours wrote tens of megabytes."""


@dataclass(frozen=True, slots=True)
class RunStorage:
    """What a submission would write, and where."""

    root: Location
    """Directory of the runs."""
    checkpoints: Location | None
    """Directory of the checkpoints; None where none are saved."""
    size: CheckpointSize
    scratch: str = ""
    """The site's directory for large files; checkpoints elsewhere are told by the hints."""

    @property
    def in_run(self) -> bool:
        """Whether the checkpoints lie in the run's own directory."""
        return self.checkpoints is not None and self.checkpoints.path.is_relative_to(self.root.path)

    @property
    def does_not_fit(self) -> bool:
        """Whether the checkpoints surely need more room than there is."""
        peak, free = self.size.peak_bytes, self.checkpoints.free_bytes if self.checkpoints else None
        return peak is not None and free is not None and peak + _LOGS_BYTES > free

    def warnings(self) -> tuple[str, ...]:
        """Return what speaks against the checkpoints' directory: too little room, or the home directory."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return ()
        free, text = checkpoints.free_bytes, self.size.in_words()
        if self.does_not_fit and free is not None:
            limit = f" of a quota of {gigabytes(checkpoints.quota_bytes)}" if checkpoints.quota_bytes else ""
            return (f"checkpoints do not fit: {gigabytes(free)} free{limit} in {checkpoints.path}; {text}",)
        if checkpoints.in_home and not self.in_run:
            where = f"checkpoints go into your home directory ({checkpoints.path}); "
            return (text if self.scratch else f"{where}{text}",)
        return ()

    def as_json(self) -> dict[str, Any]:
        """Return it as `submit --json` prints it."""
        checkpoints = self.checkpoints
        return {
            "runs": str(self.root.path),
            "runs_in_home": self.root.in_home,
            "checkpoint_dir": str(checkpoints.path) if checkpoints is not None else None,
            "checkpoints_in_home": checkpoints.in_home if checkpoints is not None else None,
            "free_bytes": checkpoints.free_bytes if checkpoints is not None else self.root.free_bytes,
            "quota_bytes": checkpoints.quota_bytes if checkpoints is not None else self.root.quota_bytes,
            "checkpoint_bytes": self.size.bytes,
            "checkpoints_kept": self.size.kept,
            "peak_bytes": self.size.peak_bytes,
        }


@dataclass(frozen=True, slots=True)
class StorageQuestion:
    """The question where runs are to be kept."""

    storage: RunStorage
    offers: tuple[Offer, ...]

    def lines(self) -> tuple[str, ...]:
        """Return what is to be known before an answer."""
        root = self.storage.root
        free = f" ({gigabytes(root.free_bytes)} free)" if root.free_bytes is not None else ""
        first = f"Runs are kept in {root.path}, which is in your home directory{free}."
        text = self.storage.size.in_words()
        if not text:
            return (first,)
        where = "in the run's directory" if self.storage.in_run else f"in {self._checkpoints}"
        return (first, f"{text[:1].upper()}{text[1:]}, {where}.")

    @property
    def _checkpoints(self) -> Path | str:
        return self.storage.checkpoints.path if self.storage.checkpoints is not None else ""

    def choices(self) -> tuple[tuple[str, str], ...]:
        """Return the offers, each as its directory and its words."""
        return tuple((str(offer.path), _offered(offer)) for offer in self.offers)

    def hint(self) -> str:
        """Return the question as one line for those who cannot be asked."""
        offer = f" (such as {self.offers[0].path})" if self.offers else ""
        return (
            f"{' '.join(self.lines())} `{COMMAND}` names another directory{offer}, `… {KEEP}` keeps this one."
        )


def _offered(offer: Offer) -> str:
    facts = [offer.source]
    if offer.free_bytes is not None:
        facts.append(f"{gigabytes(offer.free_bytes)} free")
    if offer.purged:
        facts.append("old files may be removed")
    return f"{', '.join(facts)}: {offer.path}"


def run_storage(
    layout: RunLayout,
    job_environment: Mapping[str, str],
    root: Path,
    transport: Transport,
    environment: Mapping[str, str],
) -> RunStorage:
    """Return what a run that is laid out would write, and where.

    Args:
        layout: The run.
        job_environment: Variables of its job, which say where models lie.
        root: Directory of the runs.
        transport: The machine's.
        environment: The user's.
    """
    from recipes.models import Models

    recipe, options = layout.recipe, layout.options
    if options.kind == "rehearsal":  # stand-in models: its checkpoints are of kilobytes
        size = CheckpointSize("a stand-in model", None, 0, 0)
        return RunStorage(locate(transport, root, environment), None, size)
    checkout = transport.path(options.checkout.path) if options.checkout is not None else None
    models = Models.of(job_environment, checkout or transport.path("").absolute())
    base = checkout or transport.path(str(layout.directory))
    return storage_for(recipe, models, base, QuotaReader(transport), root, environment, layout.site.scratch)


def storage_for(
    recipe: EffectiveRecipe,
    models: Models,
    base: Path,
    quotas: QuotaReader,
    root: Path,
    environment: Mapping[str, str],
    scratch: str = "",
) -> RunStorage:
    """Return what a run of a recipe would write, and where.

    Args:
        recipe: Its values.
        models: Facts about its student.
        base: What the directory of the checkpoints is relative to: the driver's working directory.
        quotas: Those of the machine.
        root: Directory of the runs.
        environment: The user's.
        scratch: The site's directory for large files.
    """
    located = locate(quotas.transport, root, environment, quotas)
    size = checkpoint_size(recipe, models.find(str(recipe.get("policy.model_name", ""))))
    path = checkpoint_path(recipe, base) if size.kept != 0 else None
    checkpoints = locate(quotas.transport, path, environment, quotas) if path is not None else None
    return RunStorage(located, checkpoints, size, scratch)


def checkpoint_path(recipe: EffectiveRecipe, base: Path) -> Path | None:
    """Return the directory of a run's checkpoints; None where it saves none."""
    directory = recipe.get("checkpointing.checkpoint_dir")
    if not saves_checkpoints(recipe) or not isinstance(directory, str) or not directory:
        return None
    return base / directory


def undecided(environment: Mapping[str, str]) -> bool:
    """Return whether nothing says where runs are to be kept.

    Raises:
        InputError: the settings cannot be read.
    """
    return not environment.get(RUNS_VARIABLE) and not load_settings(environment).runs


def storage_question(
    layout: RunLayout,
    storage: RunStorage,
    transport: Transport,
    environment: Mapping[str, str],
) -> StorageQuestion | None:
    """Return the question where runs are to be kept; None where that is decided, or outside the home.

    Raises:
        InputError: the settings cannot be read.
    """
    if not storage.root.in_home or not undecided(environment):
        return None
    return StorageQuestion(storage, offers(transport, environment, layout.site.scratch, layout.options.user))


def decide(answer: str, environment: Mapping[str, str]) -> Path:
    """Remember where runs are kept: a directory, which is made, or `keep`; return the directory.

    Raises:
        InputError: it is no directory, or cannot be written.
    """
    if answer != KEEP:
        directory = Path(os.path.abspath(expand(answer, environment)))
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"runs cannot be kept there: {error.strerror}", where=directory) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise InputError("runs cannot be kept there: it cannot be written", where=directory)
        answer = str(directory)
    set_setting(environment, "storage.runs", [answer])
    return runs_root(environment)
