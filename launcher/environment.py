"""The environment of a job: what becomes of each variable of the user's shell, and why. Pure.

A job gets an allowlist, never the whole shell: a login node's PYTHONPATH, SLURM_* or CUDA_VISIBLE_DEVICES
would break it. But a user's caches, virtual environments and network settings decide whether a run works at
all, so each variable that such runs read is passed where that is safe, and where not, the reason is shown.

Precedence, lowest first: shell, site, profile, the user's own choice, what the run itself sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from string import Template
from typing import Literal

from launcher.plan import PASSED_ON
from launcher.sites import OFFLINE, Site
from recipes.secrets import is_secret_name

VariableKind = Literal["storage", "scratch", "setting", "module", "secret", "shell"]
"""A path on storage, a node's own path, a setting, set by modules, a secret, or the shell's own business."""


class Outcome(StrEnum):
    """The fate of a variable."""

    PASSED = "passed"
    SITE = "set by the site"
    PROFILE = "set by the profile"
    CHOSEN = "set by you"
    KEY_FILE = "in the key file"
    OFFERED = "not passed: a secret"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class VariableRule:
    """Variables that runs of NeMo-RL, Ray, vLLM, uv, wandb or NCCL read, or that would break them."""

    pattern: re.Pattern[str]
    """Matches whole names."""
    kind: VariableKind
    reason: str = ""
    """Why one of kind `shell` stays out."""


def _rule(pattern: str, kind: VariableKind, reason: str = "") -> VariableRule:
    return VariableRule(re.compile(pattern, re.ASCII), kind, reason)


_JOBS_OWN = "the job has its own"
VARIABLES: tuple[VariableRule, ...] = (
    # A switch of huggingface_hub (`constants.py`), whose name ends as a secret's does.
    _rule("HF_HUB_DISABLE_IMPLICIT_TOKEN", "setting"),
    _rule(
        "HF_USERNAME|(?:HF|HUGGING_?FACE\\w*|WANDB|COMET|SWANLAB)_(?:API_)?(?:TOKEN|KEY|PASSWORD)", "secret"
    ),
    _rule("LLM_JUDGE_(?!(?:MODEL|MODEL_NAME|BASE_URL|URL|ENDPOINT|PORT|TIMEOUT)$)\\w+", "secret"),
    _rule("\\w+_(?:API_KEY|ACCESS_KEY|ACCESS_KEY_ID|SECRET_KEY|SECRET|TOKEN|PASSWORD|PASSWD)", "secret"),
    # Where a run finds and keeps its files.
    _rule(
        "HF_(?:HOME|HUB_CACHE|DATASETS_CACHE|ASSETS_CACHE|MODULES_CACHE|XET_CACHE)|HUGGINGFACE_HUB_CACHE",
        "storage",
    ),
    _rule("TRANSFORMERS_CACHE|HF_TOKEN_PATH|XDG_(?:CACHE|DATA)_HOME|TORCH_HOME|PERSISTENT_CACHE", "storage"),
    _rule(
        "(?:TRITON|TORCHINDUCTOR|VLLM|FLASHINFER|NLTK|TIKTOKEN)_(?:CACHE_)?(?:DIR|ROOT|DATA|HOME)", "storage"
    ),
    _rule(
        "UV_(?:CACHE_DIR|PYTHON_INSTALL_DIR|TOOL_DIR)|NEMO_RL_VENV_DIR|NRL_\\w*(?:DIR|PATH|CACHE|HOME)",
        "storage",
    ),
    _rule("CKPT_DIR|BASE_LOG_DIR|WANDB_(?:DIR|CACHE_DIR|DATA_DIR|CONFIG_DIR|ARTIFACT_DIR)|TMPDIR", "storage"),
    # A proxy that opens connections needs its certificates.
    _rule("SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE", "storage"),
    _rule("RAY_TMPDIR", "scratch"),
    # How it behaves.
    _rule("HF_(?:HUB|DATASETS|XET)_\\w+|HF_ENDPOINT|TRANSFORMERS_\\w+|TOKENIZERS_PARALLELISM", "setting"),
    _rule("(?:NRL|NEMO_RL|VLLM|MEGATRON|NVTE|FLASHINFER|TRITON|TORCHINDUCTOR)_\\w+", "setting"),
    _rule("UV_(?:OFFLINE|LINK_MODE|HTTP_TIMEOUT|CONCURRENT_\\w+|PYTHON_PREFERENCE|NO_\\w+)", "setting"),
    _rule("UV_(?:(?:DEFAULT_|EXTRA_)?INDEX(?:_URL)?|FIND_LINKS|FROZEN|NATIVE_TLS|SYSTEM_CERTS)", "setting"),
    _rule(
        "RAY_(?:PORT|DASHBOARD_PORT|BARE_\\w+|memory_\\w+|object_\\w+|DEDUP_LOGS|\\w*_timeout_\\w+)",
        "setting",
    ),
    _rule("(?:NCCL|GLOO|UCX|NVSHMEM|IBV|FI|TORCH_NCCL|TP_SOCKET|CUDA_DEVICE_MAX)_\\w+", "setting"),
    _rule("https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|all_proxy|ALL_PROXY", "setting"),
    _rule("PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF|OMP_NUM_THREADS", "setting"),
    _rule("TORCH_(?:CUDA_ARCH_LIST|DISTRIBUTED_DEBUG|SHOW_CPP_STACKTRACES|LOGS)", "setting"),
    _rule("WANDB_(?:MODE|PROJECT|ENTITY|NAME|RUN_\\w+|TAGS|NOTES|BASE_URL|SILENT)|LLM_JUDGE_\\w+", "setting"),
    # What `module load` sets.
    _rule("LD_LIBRARY_PATH|MODULEPATH|LOADEDMODULES|_LMFILES_|EBROOT\\w+", "module"),
    # What a job needs that compiles: environments of workers, kernels.
    _rule("CUDA_(?:HOME|PATH|ROOT)|CUDNN_(?:HOME|PATH|ROOT)|CUDAHOSTCXX|CC|CXX", "module"),
    _rule("CPATH|C(?:PLUS)?_INCLUDE_PATH|LIBRARY_PATH|PKG_CONFIG_PATH|CMAKE_PREFIX_PATH", "module"),
    # What would break the job.
    _rule(
        "VIRTUAL_ENV|CONDA_PREFIX|PYTHON(?:PATH|HOME)",
        "shell",
        "the job runs the checkout's .venv",
    ),
    _rule("UV_PROJECT_ENVIRONMENT", "shell", "RAY_BARE_VENV says which environment the job runs"),
    _rule("LD_PRELOAD|LD_AUDIT", "shell", "it would be loaded into every process of the job"),
    _rule(
        "(?:CUDA|NVIDIA)_VISIBLE_DEVICES|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_(?:ADDR|PORT)", "shell", _JOBS_OWN
    ),
    _rule("RAY_ADDRESS", "shell", "the job starts a Ray cluster of its own"),
)
"""First match counts: secrets stand before settings of the same family, but for names that only look so."""
DEFAULT_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY")
"""Secrets that reach the driver unless the user says no: NeMo-RL itself reads them."""
_NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108 - compared with, never written to
_NODES_OWN = re.compile(r"/(?:local[_-]?scratch|scratch[_-]?local|scratch/local|lscratch|jobfs)(?:/|$)")
"""Directories that sites give each node, by their names."""
_OF_MODULES = ("MODULEPATH", "LOADEDMODULES", "_LMFILES_")
_EXPANDED_BY_LIBRARY = re.compile(
    r"(?:HF|HUGGINGFACE|XDG)_\w+|TRANSFORMERS_CACHE|TORCH_HOME|(?:VLLM|NLTK)_\w+", re.ASCII
)
"""Variables whose libraries expand `~` in them (huggingface_hub/constants.py, vllm/envs.py)."""
_OFFLINE_MODES = ("offline", "disabled", "dryrun")
_CREDENTIALS = re.compile(r"^\w+://[^/@\s]*:[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class EnvironmentChoices:
    """A user's choices about the environment, for one submission or remembered for a site."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Variables to set, whatever shell, site and profile say."""
    passed: frozenset[str] = frozenset()
    """Names to pass although the default is not to; secrets go through the key file."""
    dropped: frozenset[str] = frozenset()
    """Names to leave out."""

    def over(self, remembered: EnvironmentChoices) -> EnvironmentChoices:
        """Return these choices with remembered ones where they say nothing."""
        own = self.passed | self.dropped | set(self.values)
        return EnvironmentChoices(
            {**{name: value for name, value in remembered.values.items() if name not in own}, **self.values},
            self.passed | (remembered.passed - own),
            self.dropped | (remembered.dropped - own),
        )


@dataclass(frozen=True, slots=True)
class VariableDecision:
    """What becomes of one variable."""

    name: str
    value: str
    """Its value in the job; empty where it has none there, and for secrets, whose values are never shown."""
    outcome: Outcome
    reason: str = ""

    @property
    def reaches_job(self) -> bool:
        """Whether the job's environment has it."""
        return self.outcome in (Outcome.PASSED, Outcome.SITE, Outcome.PROFILE, Outcome.CHOSEN)


@dataclass(frozen=True, slots=True)
class JobEnvironment:
    """The environment of a job, and what became of each variable of the shell."""

    variables: Mapping[str, str]
    secrets: Mapping[str, str]
    """For the key file."""
    decisions: tuple[VariableDecision, ...]
    """By name, without what every job gets from every shell (HOME, PATH …)."""


def kind_of(name: str) -> VariableKind | None:
    """Return the kind of a variable; None for one that no run reads."""
    rule = _rule_of(name)
    return rule.kind if rule is not None else None


def _rule_of(name: str) -> VariableRule | None:
    if name.startswith(("SLURM_", "SBATCH_")):
        return None
    return next((rule for rule in VARIABLES if rule.pattern.fullmatch(name)), None)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Everything that may set a variable."""

    shell: Mapping[str, str]
    site: Site
    set_by_site: Mapping[str, str]
    profile: Mapping[str, str]
    choices: EnvironmentChoices
    why_offline: str
    """Where it is known from that nodes have no internet."""
    node_local: tuple[str, ...]
    """Directories of each node's own."""


def job_environment(
    shell: Mapping[str, str],
    site: Site,
    profile: Mapping[str, str],
    choices: EnvironmentChoices | None = None,
    *,
    partition: str | None = None,
    shared: Sequence[str] = (),
) -> JobEnvironment:
    """Return the environment of a job.

    Args:
        shell: The environment of this program.
        site: The site, for the modules that its jobs load.
        profile: The variables of the chosen profile.
        choices: The user's own choices.
        partition: The partition of the job, for what the site knows of it.
        shared: Paths that jobs see (the run's, the checkout's): /tmp counts as shared where one is below it.
    """
    sources = _Sources(
        shell,
        site,
        site.job_environment(partition),
        profile,
        choices or EnvironmentChoices(),
        f"nodes have no internet: {site.offline_source(partition)}".rstrip(": "),
        tuple(local for local in _NODE_LOCAL if not any(_is_below(path, local) for path in shared)),
    )
    secrets = dict(_secrets(sources))
    names = {*shell, *sources.set_by_site, *profile, *sources.choices.values}
    decisions = []
    for name in sorted(name for name in names if name not in PASSED_ON or name == "TMPDIR"):
        decision = _decide(name, sources, secrets)
        if decision is not None:
            decisions.append(decision)
    variables = {name: shell[name] for name in PASSED_ON if name in shell and name != "TMPDIR"}
    variables |= {item.name: item.value for item in decisions if item.reaches_job}
    return JobEnvironment(variables, secrets, tuple(decisions))


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret: by its name, or a URL with a user's name and password."""
    kind = kind_of(name)
    by_name = kind == "secret" or (kind is None and is_secret_name(name))
    return by_name or _CREDENTIALS.search(value) is not None


def _secrets(sources: _Sources) -> Iterator[tuple[str, str]]:
    """Yield the secrets that reach the driver, by name."""
    shell, profile, choices = sources.shell, sources.profile, sources.choices
    for name in {**shell, **profile, **choices.values}:
        value = choices.values.get(name) or profile.get(name) or shell.get(name, "")
        if not value or not is_secret(name, value) or name in choices.dropped:
            continue
        if name in DEFAULT_SECRETS or name in choices.passed or name in choices.values or name in profile:
            yield name, value


def _decide(name: str, sources: _Sources, secrets: Mapping[str, str]) -> VariableDecision | None:
    """Return what becomes of a variable; None for one that no run reads and nobody chose."""
    choices, value = sources.choices, sources.shell.get(name, "")
    if name in secrets:
        return VariableDecision(name, "", Outcome.KEY_FILE, "mode 600, never on a command line")
    if name in choices.dropped:
        return VariableDecision(name, "", Outcome.DROPPED, "by your choice")
    if name in choices.values:
        return VariableDecision(name, _expanded(name, choices.values[name], sources), Outcome.CHOSEN)
    if name in sources.profile:
        return VariableDecision(name, _expanded(name, sources.profile[name], sources), Outcome.PROFILE)
    if name in sources.set_by_site and not _stands(name, value, sources.set_by_site[name]):
        reason = sources.why_offline if name in OFFLINE else ""
        value = _expanded(name, sources.set_by_site[name], sources)
        return VariableDecision(name, value, Outcome.SITE, reason)
    rule = _rule_of(name)
    if value and is_secret(name, value) and (rule is not None or name in choices.passed):
        return VariableDecision(name, "", Outcome.OFFERED, f"--env {name} gives it to the driver")
    if value and name in choices.passed:
        return VariableDecision(name, value, Outcome.PASSED, "by your choice")
    if rule is None or not value:
        return None
    if rule.kind == "storage" and _EXPANDED_BY_LIBRARY.fullmatch(name):
        value = _at_home(value, sources.shell)
    obstacle = _obstacle(rule, name, value, sources)
    if obstacle:
        return VariableDecision(name, "", Outcome.DROPPED, obstacle)
    return VariableDecision(name, value, Outcome.PASSED)


def _expanded(name: str, value: str, sources: _Sources) -> str:
    """Return a path that was written down with `~` and `$NAME` replaced; other values as they are."""
    if kind_of(name) not in ("storage", "scratch"):
        return value
    return Template(_at_home(value, sources.shell)).safe_substitute(sources.shell)


def _at_home(path: str, shell: Mapping[str, str]) -> str:
    """Return a path with `~` as a shell has it."""
    return f"{shell.get('HOME', '~')}{path[1:]}" if path.startswith("~/") else path


def _stands(name: str, value: str, set_by_site: str) -> bool:
    """Return whether the shell's value stands although the site has one.

    It does for a site's defaults, such as interfaces. Nodes without internet are a fact: there only another
    WANDB_MODE that needs no network stands.
    """
    if not value:
        return False
    if name == "WANDB_MODE" and set_by_site == "offline":
        return value in _OFFLINE_MODES
    return name not in OFFLINE


def _obstacle(rule: VariableRule, name: str, value: str, sources: _Sources) -> str:
    """Return why a variable of the shell is not passed; empty where it is."""
    if rule.kind == "shell":
        return rule.reason
    if rule.kind == "module":
        if sources.site.modules:
            return f"the job loads the site's modules: {', '.join(sources.site.modules)}"
        needs_modules = name in _OF_MODULES or name.startswith("EBROOT")
        return "no module is loaded" if needs_modules and not sources.shell.get("LOADEDMODULES") else ""
    if rule.kind == "storage":
        return _storage_obstacle(name, value, sources)
    return ""


def _storage_obstacle(name: str, value: str, sources: _Sources) -> str:
    if name == "BASE_LOG_DIR":
        return "a run keeps its logs in its own directory"
    if not value.startswith("/"):
        return "not an absolute path"
    if _NODES_OWN.match(value) or any(_is_below(value, local) for local in sources.node_local):
        return "on this node's own disk, which other nodes do not have"
    if _is_of_a_job(value, sources.shell):
        return "of the job that your shell is in, whose directories go with it"
    return ""


def _is_of_a_job(path: str, shell: Mapping[str, str]) -> bool:
    """Return whether a directory is that of the Slurm job that a shell runs in."""
    job, own = shell.get("SLURM_JOB_ID", ""), shell.get("SLURM_TMPDIR", "")
    by_number = bool(job) and re.search(rf"(?<!\d){re.escape(job)}(?!\d)", path) is not None
    return by_number or (own.startswith("/") and _is_below(path, own))


def _is_below(path: str, directory: str) -> bool:
    return PurePosixPath(path).is_relative_to(directory)
