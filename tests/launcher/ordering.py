"""A login node for submit requests: a checkout, models, and the answers of Slurm's commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.clusters.inventory import Account, Cpus, Detection, Gpus, Mix, Partition
from launcher.request import SubmitRequest
from launcher.runs import RunStore
from launcher.sites import Site
from launcher.submit.submit import SubmissionPlan, plan_submission
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.checks.world import World

SITE = Site("test", "Test", (), (), (), gpu_memory_gib={"a100": 40.0})
BOOSTER = Partition("booster", True, "up", 8, (Mix(Gpus(4, "a100"), 8),), max_time_s=86400, cpus=Cpus(96, 48))
OTHER = Partition("other", False, "up", 2, (Mix(Gpus(4, "a100"), 2),), allowed=("second",))
DETECTION = Detection(
    SITE,
    "22.05.8",
    "c",
    (BOOSTER, OTHER),
    (Account("first", None, ("normal",), default=True), Account("second", None, ("normal",))),
)
NO_ACCOUNTING = Detection(SITE, "22.05.8", "c", (BOOSTER,))


class Slurm(LocalTransport):
    """This machine, with a Slurm whose commands answer what they are told to."""

    def __init__(self, **answers: str) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []
        self.refuses_after = 1000
        """So many submissions are taken."""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        self.asked.append(tuple(argv))
        if argv[:2] == ["sbatch", "--test-only"]:
            return Completed(0, "", self.start_estimate(argv))
        if argv[0] != "sbatch":
            return Completed(0, self.answers.get(argv[0], ""), "")
        count = sum(asked[0] == "sbatch" for asked in self.asked)
        if count > self.refuses_after:
            message = (
                "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: no"
            )
            return Completed(1, "", message)
        return Completed(0, f"{4710 + count}\n", "")

    def start_estimate(self, argv: Sequence[str]) -> str:
        """Return the start of a job by its time limit."""
        (limit,) = (text.partition("=")[2] for text in argv if text.startswith("--time="))
        start = self.answers[limit]
        return f"sbatch: Job 7 to start at {start} using 8 processors on nodes n1 in partition booster"


@dataclass(frozen=True)
class Desk:
    """A place to plan submissions."""

    world: World
    transport: Slurm
    environment: dict[str, str]
    detection: Detection = DETECTION

    @classmethod
    def at(cls, place: Path, **answers: str) -> Desk:
        """Make one."""
        world = World.at(place)
        (place / "examples").mkdir()
        (place / "examples" / "run_distillation.py").write_text("")
        (place / ".venv" / "bin").mkdir(parents=True)
        for program in ("python", "ray"):
            (place / ".venv" / "bin" / program).write_text("")
        environment = {
            "HOME": str(place),
            "USER": "u",
            "PATH": "/usr/bin:/bin",
            "NEMO_RL_ROOT": str(place),
            "XDG_CONFIG_HOME": str(place / "config"),
        }
        return cls(world, Slurm(**answers), environment)

    @property
    def recipe(self) -> Path:
        """A legal recipe for one node."""
        return self.world.root / "recipe.yaml"

    @property
    def store(self) -> RunStore:
        """Where the runs are."""
        return RunStore(self.transport, str(self.world.root / "runs"))

    def plan_of(self, request: SubmitRequest) -> SubmissionPlan:
        """Return the planned submission."""
        return plan_submission(request, self.detection, self.store, self.environment)
