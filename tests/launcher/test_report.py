"""The report: the cause with its surroundings, and no canary in it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from launcher.logs.events import Role
from launcher.logs.sources import LogFile
from launcher.monitor.redact import REMOVED, Redactor
from launcher.monitor.report import ReportFacts, markdown, relevant_variables, report_json, tail, write_tar
from launcher.monitor.watch import Watch, watch_directory
from launcher.transports.local import LocalTransport
from tests.command import Command
from tests.driver_text import LAUNCHER, DriverText, launcher_end

# Put together here so that no scanner of this repository takes them for real.
CANARIES = {
    "a token of the hub": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz",
    "a key of W&B": "0123456789abcdef" * 2 + "01234567",
    "a token of GitHub": "ghp_" + "a1B2" * 9,
    "a key of OpenAI": "sk-" + "proj-" + "x9" * 12,
    "a token of GitLab": "glpat-" + "Zz9-Zz9_Zz9zz",
    "a web token": "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "c2lnbmF0dXJl",
    "a password": "correct-horse-9",
    "a login": "carla:swordfish77",
    "an address": "carla.canary@fz-example.de",
    "a name": "canaryuser",
    "a secret that looks like a word": "marmalade",
}
LINES = f"""\
export HF_TOKEN={CANARIES["a token of the hub"]}
wandb: API key {CANARIES["a key of W&B"]} was found
remote: https://x:{CANARIES["a token of GitHub"]}@github.com/a/b
Authorization: Bearer {CANARIES["a key of OpenAI"]}
{{"gitlab_token": "{CANARIES["a token of GitLab"]}", "other": 1}}
cookie={CANARIES["a web token"]}
--db-password {CANARIES["a password"]} --nodes 2
proxy http://{CANARIES["a login"]}@proxy.example:3128
mail-user={CANARIES["an address"]}
reading /p/home/jusers/{CANARIES["a name"]}/juwels/x and /p/scratch/{CANARIES["a name"]}/y
the driver was told {CANARIES["a secret that looks like a word"]}
-----BEGIN OPENSSH PRIVATE KEY-----
{"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ" * 1}AAAAAAABAAAAMwAAAAtzc2gtZW
-----END OPENSSH PRIVATE KEY-----
"""
SECRETS = [*CANARIES.values(), "swordfish77", "b3BlbnNzaC1r"]
REDACT = Redactor.of(["carla"], [], [CANARIES["a secret that looks like a word"]])
OOM = "\x1b[36m(W[rank=3] pid=7, ip=10.0.0.7)\x1b[0m torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "41-logs"
    directory.mkdir()
    driver = DriverText([0.9], end="").text() + LINES + OOM + "\n" + LINES
    (directory / "ray-driver.log").write_text(driver)
    (directory / "launcher.log").write_text(LAUNCHER + launcher_end(1))
    return directory


@pytest.fixture
def watch(logs: Path) -> Watch:
    seen = watch_directory(LocalTransport(), str(logs))
    seen.catch_up(final=True)
    return seen


def facts() -> ReportFacts:
    environment = {
        "NCCL_DEBUG": "INFO",
        "HF_HOME": f"/p/home/jusers/{CANARIES['a name']}/hf",
        "COMMAND": f"HF_TOKEN={CANARIES['a token of the hub']} python x.py",
        "HF_TOKEN": CANARIES["a token of the hub"],
        "UNRELATED": "1",
    }
    return ReportFacts(
        "recipe.yaml",
        (("logger.wandb.api_key", "'x'", f"'{CANARIES['a key of W&B']}'"), ("policy.a", "1", "2")),
        environment=relevant_variables(environment),
        jobs=({"id": "9", "submitted": "now"},),
    )


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_no_canary_gets_out(watch: Watch, tmp_path: Path) -> None:
    report = report_json("run", watch, facts(), REDACT)
    assert leaks(json.dumps(report)) == []
    assert leaks(markdown(report)) == []
    write_tar(str(tmp_path / "r.tar.gz"), report, watch, REDACT, 500)
    with tarfile.open(tmp_path / "r.tar.gz") as archive:
        members = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        texts = {name: file.read().decode() for name, file in members.items() if file is not None}
    assert set(texts) == {
        "report/report.md",
        "report/report.json",
        "report/logs/ray-driver.log",
        "report/logs/launcher.log",
    }
    assert {name: leaks(text) for name, text in texts.items() if leaks(text)} == {}
    assert "CUDA out of memory" in texts["report/logs/ray-driver.log"]


def test_what_is_no_secret_stays() -> None:
    for text in (
        "ValueError: Token id 151999 is out of vocabulary",
        "  • generation: tokens_per_sec_per_gpu: 123456.789",
        "tokenizer.chat_template is not set",
        "policy.max_new_tokens=1048576 tokenizer: Qwen/Qwen3-4B",
        "/p/project/nemo-rl/examples/run_distillation.py:124",
        "DTensorPolicyWorker (pid=29111, ip=10.0.0.1, actor_id=ef05eab9b935c15fd94b6c9301000000)",
        "key metric: accuracy, secretary: none",
    ):
        assert REDACT(text) == text


@pytest.mark.parametrize("what", sorted(CANARIES))
def test_each_kind_of_canary_is_caught(what: str) -> None:
    line = next(line for line in LINES.splitlines() if CANARIES[what] in line)
    said = REDACT.having_read(LINES)(line)
    assert CANARIES[what] not in said
    assert REMOVED in said or "USER" in said
    assert REDACT(said) == said


@pytest.mark.parametrize("name", ["root", "user", "slurm", "ray", "home", "tmp", "jusers", "USER"])
def test_names_that_every_log_holds_are_kept(name: str) -> None:
    """A home directory of such a name, or an account of it, must not empty the whole log of that word."""
    line = f"{name} started; {name}: ok"
    assert Redactor.of([name])(line) == line
    read = Redactor.of(["carla"]).having_read(f"cannot open /home/{name}/x or /p/home/jusers/{name}/y")
    assert read(line) == line
    assert read("/home/carla2/x carla") == "/home/USER/x USER"


def test_redacting_takes_no_long_time_on_hostile_lines() -> None:
    began = process_time()
    for piece in ("a", "a.", "@a.", "token", "://a:", "-", "Bearer ", "/home/"):
        assert isinstance(REDACT(piece * 20_000), str)
    assert process_time() - began < 5


def test_the_cause_is_shown_with_its_surroundings(watch: Watch) -> None:
    report = report_json("run", watch, facts(), REDACT)
    root: dict[str, Any] = report["findings"][0]
    assert (root["id"], root["root"], root["rank"]) == ("cuda-oom", True, 3)
    shown = {line["line"]: line["text"] for line in root["context"]}
    assert "CUDA out of memory" in shown[root["line"]]
    assert len(shown) == 9
    text = markdown(report)
    assert "# run: failed" in text
    assert f">{root['line']:7} (W[rank=3]" in text
    assert "`policy.train_micro_batch_size`: 1" in text
    assert "| `NCCL_DEBUG` | INFO |" in text
    assert "UNRELATED" not in text
    assert "| `policy.a` | 1 | 2 |" in text
    assert "| 2026-11-28" in text


def test_the_tail_of_a_log_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(50_000)))
    assert tail(LocalTransport(), LogFile("x", str(path), Role.DRIVER), 3, REDACT).split() == [
        "line", "49997", "line", "49998", "line", "49999",
    ]  # fmt: skip
    gone = tail(LocalTransport(), LogFile("y", str(tmp_path / "y"), Role.DRIVER), 3, REDACT)
    assert "No such file" in gone


@pytest.mark.long
def test_the_command(logs: Path, tmp_path: Path) -> None:
    command = Command(tmp_path / "runs")
    done = command("report", str(logs), "--json", "--tar", str(tmp_path / "out.tgz"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["state"], report["findings"][0]["id"]) == (1, "failed", "cuda-oom")
    assert (tmp_path / "out.tgz").stat().st_mode & 0o777 == 0o600
    for arguments, words in (
        (("report", "/no/such"), "no such run or directory"),
        (("report", str(logs / "launcher.log")), "is a file"),
        (("report", str(logs), "--lines", "0"), "--lines"),
    ):
        refused = command(*arguments)
        assert refused.returncode == 2
        assert words in refused.stderr


CHECKOUT = {
    "path": "/p/project1/x/NeMo-RL", "commit": "0123456789abcdef" * 2 + "01234567", "branch": "mine",
    "changes": " nemo_rl/a.py | 2 +-\n 1 file changed", "untracked": 3, "dirty": True,
}  # fmt: skip


def test_the_report_has_the_commit_and_the_changes_of_the_checkout(logs: Path) -> None:
    watch = watch_directory(LocalTransport(), str(logs))
    report = report_json("run", watch, ReportFacts(checkout=CHECKOUT), REDACT)
    assert report["checkout"] == CHECKOUT
    document = markdown(report)
    for part in (
        f"Commit {CHECKOUT['commit']} (mine), with local changes.",
        "Untracked files: 3.",
        "a.py | 2",
    ):
        assert part in document
    clean = {**CHECKOUT, "changes": "", "untracked": 0, "dirty": False, "branch": "HEAD"}
    document = markdown(report_json("run", watch, ReportFacts(checkout=clean), REDACT))
    assert f"Commit {CHECKOUT['commit']}, unchanged." in document
    unknown = {**clean, "commit": ""}
    assert "Its commit is unknown." in markdown(
        report_json("run", watch, ReportFacts(checkout=unknown), REDACT)
    )
    bare = report_json("run", watch, ReportFacts(), REDACT)
    assert bare["checkout"] is None
    assert "checkout" not in markdown(bare)


def test_a_secret_among_the_changes_is_removed(logs: Path) -> None:
    watch = watch_directory(LocalTransport(), str(logs))
    changes = f" {CANARIES['a token of the hub']}.txt | 1 +"
    facts = ReportFacts(checkout={**CHECKOUT, "changes": changes, "commit": CANARIES["a token of the hub"]})
    report = report_json("run", watch, facts, REDACT)
    assert CANARIES["a token of the hub"] not in json.dumps(report) + markdown(report)


def test_the_doctor_s_verdicts_and_its_checks_are_named_without_secrets(watch: Watch) -> None:
    checks = [
        {"id": "D22", "title": "Models are in the cache", "where": "login", "outcome": "fail",
         "evidence": f"not in /home/{CANARIES['a name']}/hf, {CANARIES['a token of the hub']}"},
        {"id": "D01", "title": "Slurm answers", "where": "login", "outcome": "pass", "evidence": "yes"},
    ]  # fmt: skip
    doctor = {"at": 1.7e9, "host": "login01", "recipe": "r.yaml", "checks": checks}
    redact = Redactor.of([CANARIES["a name"]], [], [])
    report = report_json("r", watch, ReportFacts(doctor=doctor), redact)
    (root,) = (item for item in report["findings"] if item["root"])
    assert root["id"] == "cuda-oom"
    assert root["doctor"] == []
    text = markdown(report)
    assert "## Doctor" in text
    assert "1 of 2 checks passed" in text
    assert "| D22 Models are in the cache | fail |" in text
    assert CANARIES["a token of the hub"] not in text
    assert CANARIES["a name"] not in text
    assert report_json("r", watch, ReportFacts(), redact)["doctor"] is None
