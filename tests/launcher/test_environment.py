"""The environment of a job: the user's world reaches it, secrets and the login node's own affairs do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.environment import EnvironmentChoices, JobEnvironment, Outcome, job_environment
from launcher.sites import OFFLINE, Machine, PartitionFacts, recognise

SITE = recognise(Machine("somewhere"))
JUWELS = recognise(Machine("jwlogin24", "juwelsbooster"))
SHELL = {
    "HOME": "/home/u",
    "PATH": "/usr/bin",
    "USER": "u",
    "EDITOR": "vi",
    "PS1": "$",
    "PWD": "/x",
    "HF_HOME": "/p/project/hf",
    "UV_CACHE_DIR": "/p/project/uv",
    "NEMO_RL_VENV_DIR": "/p/project/venvs",
    "NRL_FORCE_REBUILD_VENVS": "false",
    "VLLM_USE_V1": "1",
    "NCCL_SOCKET_IFNAME": "ib0",
    "GLOO_SOCKET_IFNAME": "ib0",
    "RAY_TMPDIR": "/local/r",
    "RAY_PORT": "6399",
    "WANDB_MODE": "online",
    "WANDB_PROJECT": "p",
    "CKPT_DIR": "/p/scratch/c",
    "HF_TOKEN": "hf_secret",
    "ANTHROPIC_API_KEY": "sk-secret",
    "LLM_JUDGE_API_KEY": "secret3",
    "LLM_JUDGE_MODEL": "m",
    "VIRTUAL_ENV": "/v",
    "PYTHONPATH": "/y",
    "CUDA_VISIBLE_DEVICES": "0",
    "SLURM_JOB_ID": "1",
    "RAY_ADDRESS": "h:1",
    "LD_LIBRARY_PATH": "/apps/python/lib",
    "LOADEDMODULES": "Python/3.12",
    "MODULEPATH": "/apps/m",
    "BASE_LOG_DIR": "/p/logs",
    "TMPDIR": "/tmp/u",
    "https_proxy": "http://me:pw@proxy:8080",
    "no_proxy": "localhost",
}


def outcomes(environment: JobEnvironment) -> dict[str, Outcome]:
    return {item.name: item.outcome for item in environment.decisions}


def test_caches_and_settings_reach_the_job() -> None:
    job = job_environment(SHELL, SITE, {})
    for name in (
        "HF_HOME",
        "UV_CACHE_DIR",
        "NEMO_RL_VENV_DIR",
        "NRL_FORCE_REBUILD_VENVS",
        "VLLM_USE_V1",
        "RAY_TMPDIR",
        "RAY_PORT",
        "NCCL_SOCKET_IFNAME",
        "GLOO_SOCKET_IFNAME",
        "WANDB_MODE",
        "WANDB_PROJECT",
        "CKPT_DIR",
        "LLM_JUDGE_MODEL",
        "LD_LIBRARY_PATH",
        "LOADEDMODULES",
        "MODULEPATH",
        "no_proxy",
        "HOME",
        "PATH",
    ):
        assert job.variables[name] == SHELL[name], name


def test_what_would_break_the_job_stays_out_and_says_why() -> None:
    job = job_environment(SHELL, SITE, {})
    reasons = {item.name: item.reason for item in job.decisions if item.outcome is Outcome.DROPPED}
    assert set(reasons) == {
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "CUDA_VISIBLE_DEVICES",
        "RAY_ADDRESS",
        "BASE_LOG_DIR",
        "TMPDIR",
    }
    assert all(reasons.values())
    assert not set(reasons) & set(job.variables)
    assert not {"SLURM_JOB_ID", "EDITOR", "PS1", "PWD"} & (set(job.variables) | set(outcomes(job)))


def test_secrets_are_offered_by_name_and_never_shown() -> None:
    job = job_environment(SHELL, SITE, {})
    assert job.secrets == {"HF_TOKEN": "hf_secret"}
    assert outcomes(job)["ANTHROPIC_API_KEY"] is outcomes(job)["LLM_JUDGE_API_KEY"] is Outcome.OFFERED
    assert outcomes(job)["https_proxy"] is Outcome.OFFERED, "a URL with a password"
    chosen = job_environment(
        SHELL,
        SITE,
        {},
        EnvironmentChoices(passed=frozenset({"ANTHROPIC_API_KEY"}), dropped=frozenset({"HF_TOKEN"})),
    )
    assert chosen.secrets == {"ANTHROPIC_API_KEY": "sk-secret"}


SECRET_NAMES = st.sampled_from(
    [
        "HF_TOKEN",
        "WANDB_API_KEY",
        "OPENAI_API_KEY",
        "X_SECRET",
        "MY_ACCESS_KEY",
        "DB_PASSWORD",
        "LLM_JUDGE_KEY",
        "GH_TOKEN",
    ]
)


@given(
    shell=st.dictionaries(SECRET_NAMES, st.text("abcdef0123456789", min_size=24, max_size=40), min_size=1),
    passed=st.frozensets(SECRET_NAMES),
    dropped=st.frozensets(SECRET_NAMES),
)
def test_no_secret_is_in_the_variables_or_the_decisions(
    shell: dict[str, str], passed: frozenset[str], dropped: frozenset[str]
) -> None:
    job = job_environment(shell, SITE, {}, EnvironmentChoices(passed=passed, dropped=dropped))
    shown = repr(job.variables) + repr(job.decisions)
    assert not any(value in shown for value in shell.values())
    assert not set(job.secrets) & dropped


def test_an_offline_site_wins_over_the_shell_but_for_a_mode_that_needs_no_network() -> None:
    job = job_environment({**SHELL, "HF_HUB_OFFLINE": "0"}, JUWELS, {})
    assert {name: job.variables[name] for name in OFFLINE} == dict(OFFLINE)
    assert outcomes(job)["HF_HUB_OFFLINE"] is outcomes(job)["WANDB_MODE"] is Outcome.SITE
    disabled = job_environment({**SHELL, "WANDB_MODE": "disabled"}, JUWELS, {})
    assert disabled.variables["WANDB_MODE"] == "disabled"


def test_a_sites_default_gives_way_to_the_shell() -> None:
    assert job_environment({}, JUWELS, {}).variables["NCCL_SOCKET_IFNAME"] == "ib0"
    own = job_environment({"NCCL_SOCKET_IFNAME": "ib2"}, JUWELS, {})
    assert own.variables["NCCL_SOCKET_IFNAME"] == "ib2"


def test_whether_nodes_are_offline_is_known_by_partition() -> None:
    site = replace(JUWELS, partitions={"devel": PartitionFacts(offline=False, source="measured")})
    assert "HF_HUB_OFFLINE" not in job_environment({}, site, {}, partition="devel").variables
    there = job_environment({}, site, {}, partition="booster")
    reasons = {item.name: item.reason for item in there.decisions}
    assert there.variables["HF_HUB_OFFLINE"] == "1"
    assert "JSC" in reasons["HF_HUB_OFFLINE"]


def test_profile_over_site_and_the_users_choice_over_all() -> None:
    job = job_environment(SHELL, JUWELS, {"WANDB_MODE": "online", "HF_HOME": "/profile"})
    assert (job.variables["WANDB_MODE"], job.variables["HF_HOME"]) == ("online", "/profile")
    assert outcomes(job)["HF_HOME"] is Outcome.PROFILE
    chosen = EnvironmentChoices(
        {"HF_HOME": "/mine"}, frozenset({"EDITOR"}), frozenset({"NCCL_SOCKET_IFNAME"})
    )
    job = job_environment(SHELL, JUWELS, {"HF_HOME": "/profile"}, chosen)
    assert (job.variables["HF_HOME"], job.variables["EDITOR"]) == ("/mine", "vi")
    assert "NCCL_SOCKET_IFNAME" not in job.variables


def test_modules_of_the_site_replace_those_of_the_shell() -> None:
    site = replace(SITE, modules=("Stages/2025", "CUDA"))
    job = job_environment(SHELL, site, {})
    assert not {"LD_LIBRARY_PATH", "LOADEDMODULES", "MODULEPATH"} & set(job.variables)
    assert outcomes(job)["LD_LIBRARY_PATH"] is Outcome.DROPPED


@pytest.mark.parametrize("path", ["/tmp/hf", "/dev/shm/x", "relative", "/var/tmp/u/hf"])
def test_a_path_that_only_this_node_has_stays_out(path: str) -> None:
    job = job_environment({"HF_HOME": path, "TMPDIR": path}, SITE, {})
    assert not {"HF_HOME", "TMPDIR"} & set(job.variables)


def test_where_runs_are_below_tmp_it_is_shared() -> None:
    job = job_environment({"HF_HOME": "/tmp/w/hf"}, SITE, {}, shared=("/tmp/w/runs",))
    assert job.variables["HF_HOME"] == "/tmp/w/hf"


def test_choices_of_a_submission_go_over_remembered_ones() -> None:
    remembered = EnvironmentChoices({"A": "1", "B": "2"}, frozenset({"C", "D"}), frozenset({"E"}))
    merged = EnvironmentChoices({"D": "x"}, frozenset({"E"}), frozenset({"A"})).over(remembered)
    assert merged == EnvironmentChoices({"B": "2", "D": "x"}, frozenset({"C", "E"}), frozenset({"A"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSL_CERT_FILE", "/etc/ssl/site.pem"),
        ("SSL_CERT_DIR", "/etc/ssl/certs"),
        ("REQUESTS_CA_BUNDLE", "/etc/ssl/site.pem"),
        ("CURL_CA_BUNDLE", "/etc/ssl/site.pem"),
        ("UV_DEFAULT_INDEX", "https://mirror.example/simple"),
        ("UV_INDEX_URL", "https://mirror.example/simple"),
        ("UV_EXTRA_INDEX_URL", "https://mirror.example/extra"),
        ("UV_FIND_LINKS", "/p/project/wheels"),
        ("UV_FROZEN", "1"),
        ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"),
    ],
)
def test_network_settings_and_switches_reach_the_job(name: str, value: str) -> None:
    """What a shell behind a proxy or a mirror of packages sets is passed; a switch is no secret."""
    environment = job_environment({"HOME": "/home/u", name: value}, SITE, {})
    assert environment.variables[name] == value
    assert name not in environment.secrets


def test_an_index_with_a_password_is_a_secret() -> None:
    """The password of a package index never stands in the job's environment."""
    url = "https://user:password@mirror.example/simple"
    environment = job_environment({"HOME": "/home/u", "UV_INDEX_URL": url}, SITE, {})
    assert "UV_INDEX_URL" not in environment.variables
    assert [item.outcome for item in environment.decisions] == [Outcome.OFFERED]
    assert url not in repr(environment)


def test_certificates_on_a_nodes_own_disk_are_not_passed() -> None:
    """A file in /tmp of the login node is not on the job's nodes."""
    environment = job_environment({"HOME": "/home/u", "SSL_CERT_FILE": "/tmp/ca.pem"}, SITE, {})
    assert "SSL_CERT_FILE" not in environment.variables
    assert environment.decisions[0].outcome is Outcome.DROPPED


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HF_HOME", "~/hf", "/home/u/hf"),
        ("HF_HUB_CACHE", "~/hub", "/home/u/hub"),
        ("XDG_CACHE_HOME", "~/.c", "/home/u/.c"),
        ("VLLM_CACHE_ROOT", "~/v", "/home/u/v"),
        ("UV_CACHE_DIR", "~/uv", None),  # uv takes it for the name of a directory
        ("HF_HOME", "hf", None),
        ("CUDA_HOME", "/usr/local/cuda", "/usr/local/cuda"),
        ("CPATH", "/apps/include", "/apps/include"),
        ("CC", "gcc-13", "gcc-13"),
        ("MODULEPATH", "/apps/m", None),
        ("EBROOTCUDA", "/apps/cuda", None),
        ("LD_PRELOAD", "/apps/x.so", None),
        ("UV_PROJECT_ENVIRONMENT", "/p/venv", None),
        ("HF_HOME", "/scratch-local/u/hf", None),
        ("TMPDIR", "/localscratch/u", None),
        ("TMPDIR", "/scratch/local/u", None),
        ("HF_HOME", "/scratch/locality/hf", "/scratch/locality/hf"),
    ],
)
def test_what_becomes_of_a_variable_without_modules(name: str, value: str, expected: str | None) -> None:
    job = job_environment({"HOME": "/home/u", name: value}, SITE, {})
    assert job.variables.get(name) == expected
    assert expected is not None or job.decisions[0].reason


def test_compilers_of_the_shell_stay_out_where_jobs_load_modules() -> None:
    site = replace(SITE, modules=("CUDA",))
    shell = {"CUDA_HOME": "/login/cuda", "CPATH": "/a", "CC": "x", "LOADEDMODULES": "CUDA"}
    assert job_environment(shell, site, {}).variables == {}


@pytest.mark.parametrize("path", ["/scratch/job_4711", "/tmpfs/slurm.4711/hf", "/jobs/own/hf"])
def test_directories_of_the_job_that_a_shell_is_in_go_with_it(path: str) -> None:
    shell = {"SLURM_JOB_ID": "4711", "SLURM_TMPDIR": "/jobs/own", "HF_HOME": path, "UV_CACHE_DIR": "/p/14711"}
    job = job_environment(shell, SITE, {})
    assert job.variables == {"UV_CACHE_DIR": "/p/14711"}
    assert [item.reason for item in job.decisions if item.name == "HF_HOME"] == [
        "of the job that your shell is in, whose directories go with it"
    ]


def test_paths_that_a_profile_or_the_user_wrote_down_are_expanded() -> None:
    shell = {"HOME": "/home/u", "SCRATCH": "/scratch/u"}
    profile = {"HF_HOME": "$SCRATCH/hf", "UV_CACHE_DIR": "~/uv", "WANDB_NOTES": "$SCRATCH costs $5"}
    chosen = EnvironmentChoices({"NEMO_RL_VENV_DIR": "${SCRATCH}/venvs", "VLLM_CACHE_ROOT": "$NOPE/v"})
    job = job_environment(shell, SITE, profile, chosen)
    assert job.variables == {
        "HOME": "/home/u",
        "HF_HOME": "/scratch/u/hf",
        "UV_CACHE_DIR": "/home/u/uv",
        "WANDB_NOTES": "$SCRATCH costs $5",
        "NEMO_RL_VENV_DIR": "/scratch/u/venvs",
        "VLLM_CACHE_ROOT": "$NOPE/v",
    }
