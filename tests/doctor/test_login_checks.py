"""Checks of the login node: each names its planted fault with the command that helps; its twin passes."""

from __future__ import annotations

import http.server
import json
import shlex
import shutil
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from launcher.clusters.inventory import Budget
from launcher.doctor import machine_checks
from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.fixing import script, steps
from launcher.doctor.runner import examine
from launcher.doctor.subject import Subject
from launcher.storage import location
from tests.checks.test_models import cache
from tests.doctor.place import MODEL, VLLM, WORKER, Place, judged, make_venv


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return the place where nothing is wrong, which no test changes."""
    return Place.at(tmp_path_factory.mktemp("place") / "p", with_git=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.at(tmp_path / "p")


Plant = Callable[[Place, pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[str, Plant, str, str]] = {}
"""Name of the fault -> outcome, planting, part of the evidence, part of the command that helps."""


def fault(name: str, outcome: str, evidence: str, command: str) -> Callable[[Plant], Plant]:
    """Declare a fault; its name begins with the id of the check that names it."""

    def declare(plant: Plant) -> Plant:
        assert name not in FAULTS
        FAULTS[name] = outcome, plant, evidence, command
        return plant

    return declare


@fault("D01 no Slurm", "fail", "there is no Slurm here", "sinfo")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "bin" / "sinfo").unlink()


@fault("D01 no partition", "fail", "wrong login node", "sinfo")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.command("sinfo", 'case "$*" in --version) echo slurm 23.11 ;; esac')
    place.command("sacctmgr", "true")


@fault("D02 partition is down", "fail", "closed is", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["partition"] = "closed"


@fault("D02 no such partition", "fail", "there is no partition boster", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["partition"] = "boster"


@fault("D02 too many nodes", "fail", "9 nodes are asked for", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["nodes"] = 9


@fault("D03 another account", "fail", "second may not use booster; first may", "--account first")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["account"] = "second"


@fault("D05 the home is nearly full", "warn", "of a quota of", "sort -h")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, f"{place.root}/home", "900000 1000000 1000000 10 0 0")


@fault("D07 the quota of files is used up", "fail", "100 more files of a quota of 80,000", "--inodes")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, f"{place.root}/home", "10 0 0 79900 80000 80000")


def _quota(place: Place, patch: pytest.MonkeyPatch, point: str, numbers: str) -> None:
    """Make a directory look like a mounted file system with a quota."""
    mounts = place.root / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/home {point} nfs rw 0 0\n")
    patch.setattr(location, "_MOUNTS", mounts)
    place.command(
        "quota",
        f"echo ' Filesystem blocks quota limit grace files quota limit grace'\necho {point} {numbers}",
    )
    patch.setenv("PATH", place.environment["PATH"])


@fault("D06 checkpoints do not fit", "fail", "checkpoints do not fit", "distill-tui settings storage.runs")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, str(place.root), "1000 2000 2000 10 0 0")


@fault("D08 a file is in the way", "fail", "is no directory", "mkdir -p")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "runs").write_text("")


@fault("D09 runs in memory", "fail", "is on a tmpfs of this node", "distill-tui settings storage.runs")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    mounts = place.root / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\ntmpfs {place.root}/runs tmpfs rw 0 0\n")
    (place.root / "runs").mkdir()
    patch.setattr(location, "_MOUNTS", mounts)


@fault("D10 no uv", "fail", "there is no uv", "pip install --user uv")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "bin" / "uv").unlink()
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault("D11 the cache is empty", "fail", "uv-cache is empty", "prefetch_venvs vllm")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "uv-cache")
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault("D12 no checkout", "fail", "not a NeMo-RL checkout", "export NEMO_RL_ROOT=")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "examples" / "run_distillation.py").unlink()


@fault("D12 local changes", "warn", "with changes: 1 file changed", "git -C")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.commit()
    (place.root / "nemo_rl" / "distributed" / "virtual_cluster.py").write_text("x = 1\n")


@fault("D13 an empty submodule", "fail", "3rdparty/Megatron-LM", "submodule update --init --recursive")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "3rdparty" / "Megatron-LM" / "Megatron-LM").mkdir(parents=True)
    shutil.rmtree(place.root / "3rdparty" / "Megatron-LM" / "Megatron-LM")


@fault("D14 no ray", "fail", "there is no bin/ray", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / ".venv" / "bin" / "ray").unlink()


@fault("D15 a library is missing", "fail", "libpython3.13.so.1.0", "--modules")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    text = "error while loading shared libraries: libpython3.13.so.1.0: cannot open shared object file"
    python = place.root / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/bash\necho "python: {text}" >&2\nexit 127\n')


@fault("D16 no torch", "fail", "no torch", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(_site(place.root / ".venv") / "torch-2.11.0.dist-info")


@fault("D16 another version", "warn", "colored 1.0, uv.lock has 2.2.3", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (_site(place.root / ".venv") / "colored-2.2.3.dist-info").rename(
        _site(place.root / ".venv") / "colored-1.0.dist-info"
    )


def _site(venv: Path) -> Path:
    return venv / "lib" / "python3.13" / "site-packages"


@fault("D17 built elsewhere", "fail", "it was built as /elsewhere/.venv", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / ".venv" / "bin" / "ray").write_text("#!/elsewhere/.venv/bin/python\n")


@fault("D17 its Python is gone", "fail", "which is gone", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    make_venv(place.root / ".venv", {}, "/gone/python3.13/bin/python3")


@fault("D18 a worker's environment is missing", "fail", "VllmGenerationWorker", "prefetch_venvs vllm")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault("D19 building was interrupted", "fail", "begun and never finished", "rm ")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "venvs" / VLLM / "bin")
    (place.root / "venvs" / VLLM / "STARTED_ENV_BUILDER").touch()


@fault(
    "D20 no vllm in its environment",
    "fail",
    "VllmGenerationWorker (vllm): no vllm",
    "NRL_FORCE_REBUILD_VENVS",
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(_site(place.root / "venvs" / VLLM) / "vllm-0.19.0.dist-info")


@fault(
    "D21 a worker's Python is gone", "fail", "DTensorPolicyWorkerV2: its Python", "NRL_FORCE_REBUILD_VENVS"
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    make_venv(place.root / "venvs" / WORKER, {}, "/gone/bin/python3")


@fault("D22 a model is missing", "fail", f"the model {MODEL}", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}")


@fault("D22 only the configuration is there", "fail", f"the model {MODEL}", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    for path in (place.root / "hf").rglob("*.safetensors"):
        path.unlink()


@fault(
    "D23 a tokenizer is missing", "fail", "the tokenizer Qwen/Qwen3-4B", "hf download Qwen/Qwen3-4B --include"
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / "models--Qwen--Qwen3-4B")


@fault("D24 a data set is missing", "fail", "the data set DeepScaler", "--repo-type dataset agentica-org/")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / "datasets--agentica-org--DeepScaleR-Preview-Dataset")


@fault("D25 a prompt is missing", "fail", "there is no", "distill-tui edit")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.overrides += ("++data.default.prompt_file=prompts/gone.txt",)


@fault("D26 a download was interrupted", "warn", "begun and not finished", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    blobs = place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}" / "blobs"
    blobs.mkdir()
    (blobs / "abc.incomplete").touch()


@fault("D27 a cache on this node's disk", "warn", "TORCH_HOME does not reach the job", "export TORCH_HOME=")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["TORCH_HOME"] = "/dev/shm/torch"


@fault("D28 wandb without internet", "fail", "waits 90 s", "export WANDB_MODE=offline")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["HF_HUB_OFFLINE"] = "1"
    site = place.root / "home" / ".config" / "distill-tui" / "site.toml"
    site.write_text("[job]\noffline = false\n")


@fault("D29 a long directory", "fail", "Ray's sockets leave", "export RAY_TMPDIR=/tmp")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["RAY_TMPDIR"] = "/local/scratch/of/the/user/with/a/long/name"


@fault("D29 a shared directory", "fail", "which all nodes share", "export RAY_TMPDIR=/tmp")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    mounts = place.root / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\nserver:/r /run nfs4 rw 0 0\n")
    patch.setattr(location, "_MOUNTS", mounts)
    place.environment["RAY_TMPDIR"] = "/run/r"


@fault("D30 few open files", "warn", "at most 4,096 files", "ulimit -Hn")
def _(_place: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("resource.getrlimit", lambda _: (1024, 4096))


@fault("D31 the clock is ahead", "warn", "ahead of the file server's", "timedatectl")
def _(_place: Place, patch: pytest.MonkeyPatch) -> None:
    ahead = SimpleNamespace(time=lambda: __import__("time").time() + 3600)
    patch.setattr(machine_checks, "time", ahead)


@fault("D32 neither tmux nor screen", "warn", "ends with its connection", "tmux new")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    del place.environment["TMUX"]


@fault("D33 Ray is left", "warn", "of job 4711: raylet (812)", "kill 812")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    process = place.root / "proc" / "812"
    process.mkdir(parents=True)
    line = b"/venv/lib/ray/core/raylet\0--session_dir=/tmp/rb-1000-4711/r/session_1\0"
    (process / "cmdline").write_bytes(line)


@fault("D34 no image", "fail", "there is no", "enroot import")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "nemo.sqsh").unlink()


@fault("D35 no Pyxis", "fail", "no --container-image", "--launcher ray_bare")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.command("srun", "echo '  --help'")


@fault("D36 the service does not answer", "fail", "DOCKER_HOST=unix:", "podman.socket")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "s").unlink()


@fault("D38 nodes were never examined", "unknown", "was never measured", "doctor --on devel")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "home" / ".cache")


@contextmanager
def service(path: Path, networks: int) -> Iterator[None]:
    """Serve what a container service answers, on a Unix socket."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pools = [{"Base": "10.200.0.0/16", "Size": 19}]
            answers = {
                "/info": {"DefaultAddressPools": pools},
                "/networks": [{"Driver": "bridge"}] * networks,
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers[self.path]).encode() if self.path in answers else b"OK")

        def log_message(self, *arguments: object) -> None:
            del arguments

        def address_string(self) -> str:
            return ""

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def prepared(place: Place, check: str) -> Place:
    """Make the place one to which a check applies."""
    if check == "D13":
        (place.root / ".gitmodules").write_text('[submodule "m"]\n\tpath = 3rdparty/Megatron-LM\n')
        (place.root / "3rdparty" / "Megatron-LM").mkdir(parents=True)
        (place.root / "3rdparty" / "Megatron-LM" / "setup.py").touch()
    if check == "D06":
        place.overrides = ()  # a student of some megabytes
    if check == "D23":
        place.overrides += ("policy.tokenizer.name=Qwen/Qwen3-4B",)
        cache(place.root / "hf", "Qwen/Qwen3-4B", {"tokenizer.json": {}})
    if check == "D28":
        place.overrides += ("logger.wandb_enabled=true",)
    if check in ("D34", "D35"):
        place.request["container"] = str(place.root / "nemo.sqsh")
        (place.root / "nemo.sqsh").write_bytes(b"x")
    if check == "D38":
        subject = place.subject()
        from launcher.doctor.node_results import NodeRecord, save_record

        save_record(subject, NodeRecord("/runs/r", "booster", {"n1": {"schema": 1}}))
    return place


def examined(place: Place, check: str) -> Subject:
    """Return the subject; a container service is named by a profile, which is not what is tested here."""
    subject = place.subject()
    if check == "D36":
        return replace(subject, job={**subject.job, "DOCKER_HOST": f"unix://{place.root}/s"})
    return subject


def _cases() -> Iterator[object]:
    """Yield the faults; the second one of a check is slow, since each takes 0.05 s."""
    checks: set[str] = set()
    for name in FAULTS:
        check = name.partition(" ")[0]
        yield pytest.param(name, marks=[pytest.mark.slow] if check in checks else [])
        checks.add(check)


@pytest.mark.parametrize("name", _cases())
def test_a_planted_fault_is_named_with_what_helps(
    name: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, plant, evidence, command = FAULTS[name]
    check = name.partition(" ")[0]
    prepared(place, check)
    if check == "D13":
        shutil.rmtree(place.root / "3rdparty" / "Megatron-LM")
    if check == "D36":
        (place.root / "s").touch()
    plant(place, monkeypatch)
    verdict = judged(examined(place, check), check)
    assert verdict is not None
    assert (verdict.outcome, evidence in verdict.evidence) == (outcome, True), verdict.evidence
    assert verdict.remedy is not None
    assert command in verdict.remedy.command


APPLIES_TO_FEW = {"D04": "a budget", "D37": "a container service"}
"""Checks with a test of their own below."""


PREPARED = ("D06", "D13", "D23", "D28", "D34", "D35", "D36", "D38")
"""Checks that apply to no place as it is: something must be added."""


def test_the_healthy_twins_pass(original: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1048576))
    report = examine(LOGIN_CHECKS, original.subject(), limit_s=60)
    verdicts = {item.check.id: item.verdict for item in report.examinations if item.check.id not in PREPARED}
    assert {check: verdict for check, verdict in verdicts.items() if verdict.outcome != "pass"} == {}
    assert verdicts.keys() == {item.id for item in LOGIN_CHECKS} - {*PREPARED, *APPLIES_TO_FEW}


@pytest.mark.parametrize("check", PREPARED)
def test_the_healthy_twin_of_a_prepared_place_passes(check: str, place: Place) -> None:
    twin = prepared(place, check)
    with service(twin.root / "s", 1) if check == "D36" else nullcontext():
        verdict = judged(examined(twin, check), check)
    assert verdict is not None
    assert verdict.outcome == "pass", verdict


def test_every_check_of_the_login_node_has_a_planted_fault() -> None:
    planted = {name.partition(" ")[0] for name in FAULTS} | APPLIES_TO_FEW.keys()
    assert planted == {item.id for item in LOGIN_CHECKS}


@pytest.mark.parametrize(
    ("left", "outcome"), [(1000.0, "pass"), (50.0, "warn"), (-5.0, "warn"), (None, "unknown")]
)
def test_what_is_left_of_a_budget_is_compared_with_the_cost(
    left: float | None, outcome: str, original: Place
) -> None:
    original.request["time"] = "2:00:00"
    subject = original.subject()
    del original.request["time"]
    assert subject.detection is not None
    budget = Budget("project", "first", left, 5000.0)
    subject = replace(subject, detection=replace(subject.detection, budgets=(budget,)))
    verdict = judged(subject, "D04")
    assert verdict is not None
    assert verdict.outcome == outcome, verdict
    assert judged(original.subject(), "D04") is None


@pytest.mark.parametrize(("networks", "outcome"), [(1, "pass"), (6, "warn"), (8, "fail")])
def test_container_networks_that_are_left_are_counted(networks: int, outcome: str, place: Place) -> None:
    subject = place.subject()
    assert judged(subject, "D37") is None
    with service(place.root / "s", networks):
        job = {**subject.job, "DOCKER_HOST": f"unix://{place.root}/s"}
        verdict = judged(replace(subject, job=job), "D37")
    assert verdict is not None
    assert (verdict.outcome, f"{networks} of 8" in verdict.evidence) == (outcome, True), verdict
    assert outcome == "pass" or (
        verdict.remedy is not None and "docker network prune" in verdict.remedy.command
    )


def test_only_what_every_run_needs_is_examined_without_a_recipe(original: Place) -> None:
    report = examine(LOGIN_CHECKS, original.subject(with_recipe=False), limit_s=20)
    ids = {item.check.id for item in report.examinations}
    assert not {"D06", "D18", "D22", "D24"} & ids
    assert {"D01", "D05", "D12", "D14", "D16", "D29"} <= ids


def test_links_to_an_environment_do_not_count_as_another_place(place: Place) -> None:
    (place.root / "link").symlink_to(place.root)
    (place.root / ".venv" / "bin" / "ray").write_text(f"#!{place.root}/link/.venv/bin/python\n")
    verdict = judged(place.subject(), "D17")
    assert verdict is not None
    assert verdict.outcome == "pass"


def test_an_untracked_file_is_told(place: Place) -> None:
    place.commit()
    (place.root / "nemo_rl" / "mine.py").touch()
    verdict = judged(place.subject(), "D12")
    assert verdict is not None
    assert "1 untracked file" in verdict.evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a; touch x", "$(touch x)", "a b", "--help", "a\ntouch x", "../../a", "`x`", "a/b/c"]
)
def test_names_of_somebody_s_recipe_reach_no_shell(name: str, place: Place) -> None:
    place.overrides = (
        f"++policy.model_name={json.dumps(name)}",
        f"++data.train.data_path={json.dumps(name)}",
    )
    report = examine(LOGIN_CHECKS, place.subject(), limit_s=20)
    offered = [step.command for step in steps(report) if step.automatic]
    assert not [command for command in offered if "touch" in command or "--help" in command or "`" in command]
    for item in report.examinations:
        if item.verdict.remedy is not None and item.check.id in ("D22", "D23", "D24"):
            assert "touch x" not in " ".join(shlex.split(item.verdict.remedy.command)[:1])
    text = script(report)
    assert not [line for line in text.splitlines() if "touch x" in line and not line.startswith("#")]
