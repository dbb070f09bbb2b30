"""`ray_bare.sub` as far as it needs no Ray: settings, messages, ports, and what it ends."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launcher.errors import InputError, TransportError
from launcher.scripts import export, script_path

SCRIPT = script_path("ray_bare.sub")
STATUS = """\
======== Autoscaler status: 2026-11-28 02:35:26.352778 ========
Resources
---------------------------------------------------------------
Total Usage:
 3.0/28.0 CPU (3.0 used of 4.0 reserved in placement groups)
 0.0/8.0 GPU
 0.0/2.0 slurm_managed_ray_cluster
 0.0/8.0 worker_units

From request_resources:
 (none)
"""


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment without what the script reads."""
    ours = ("SLURM", "RAY", "NEMO", "NRL_", "CUDA_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    for key in ("COMMAND", "BASE_LOG_DIR", "GPUS_PER_NODE", "DISTILL_CONFIG", "CKPT_DIR", "LOADEDMODULES"):
        kept.pop(key, None)
    return kept | changes


def bash(text: str, *, stdin: str = "", **changes: str) -> str:
    """Run functions of the script; returns stdout."""
    done = subprocess.run(
        ["bash", "-c", f"source '{SCRIPT}'; {text}"],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(RAY_BARE_SOURCE_ONLY="1", **changes),
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_shellcheck_has_nothing_to_say() -> None:
    tool = shutil.which("shellcheck")
    if tool is None:
        pytest.skip("no shellcheck here")
    done = subprocess.run([tool, "--shell=bash", str(SCRIPT)], capture_output=True, text=True)
    assert done.stdout == ""


def test_it_never_traces_itself() -> None:
    assert "set -x" not in SCRIPT.read_text()
    assert "ray stop" not in SCRIPT.read_text()


def test_the_documents_name_the_same_settings() -> None:
    text = SCRIPT.read_text()
    header = text[: text.index("set -u")]
    page = (Path(__file__).parents[2] / "docs" / "launcher.md").read_text()
    names = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b|\bCOMMAND\b", header))
    table = set(
        re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", page[page.index("| variable") : page.index("The driver gets")])
    )
    assert names == table - {"RAY_AUTH_MODE"}
    assert all(name in text[len(header) :] for name in table)


class TestPieces:
    @pytest.mark.parametrize(
        ("counts", "nodes"), [("96", "96"), ("96(x2)", "96 96"), ("72(x2),36,4(x1)", "72 72 36 4")]
    )
    def test_slurm_counts(self, counts: str, nodes: str) -> None:
        assert bash(f"expand_counts '{counts}'").split() == nodes.split()

    @pytest.mark.parametrize(("text", "units"), [(STATUS, 8), ("No cluster status.\n", 0), ("", 0)])
    def test_worker_units(self, text: str, units: int) -> None:
        assert bash('worker_units; echo "$ONLINE"', stdin=text) == str(units)

    def test_ports_lie_between_nemo_rl_and_the_ephemeral_range(self) -> None:
        jobs = ["0", "7", "499", "12345678", "local-4711", "local-4712"]
        blocks = bash(f'for job in {" ".join(jobs)}; do port_block "$(job_number "$job")" 0; done').split()
        assert all(10000 <= int(block) <= 20000 - 20 for block in blocks)
        assert len(set(blocks)) == len(blocks)
        assert bash('port_block "$(job_number 499)" 1') == "10000"

    def test_ports_in_use_are_seen_and_skipped(self) -> None:
        first = int(bash('port_block "$(job_number local-x)" 0'))
        with socket.socket() as held:
            held.bind(("127.0.0.1", first + 3))
            held.listen()
            assert f" {first + 3} " in f" {bash('listening_ports')} "
            found = bash('JOB_ID=local-x HEAD=here; find_ports; echo "$PORT $DASHBOARD"').split()
        assert found == [str(first + 20), str(first + 21)]

    @pytest.mark.parametrize(
        ("value", "quoted"),
        [
            ("/p/scratch/a-b_c/1.0", "/p/scratch/a-b_c/1.0"),
            ("/x/y=z, w", "'/x/y=z, w'"),
            ("it's", r"'it\'s'"),
        ],
    )
    def test_values_for_hydra(self, value: str, quoted: str) -> None:
        assert bash('hydra_value "$VALUE"', VALUE=value) == quoted

    @pytest.mark.parametrize("job", ["12345678", "local-20261128-024500-demo-4f3a", "x" * 80])
    def test_ray_sockets_fit(self, job: str, tmp_path: Path) -> None:
        (tmp_path / "t").mkdir()
        base = f"/tmp/{os.getpid()}"
        os.symlink(tmp_path / "t", base)
        try:
            made = bash('RESTART=""; JOB_ID=$JOB; find_tmp; echo "$TMP"', JOB=job, RAY_TMPDIR=base)
            Path(made).mkdir()
            again = bash('RESTART=""; JOB_ID=$JOB; find_tmp; echo "$TMP"', JOB=job, RAY_TMPDIR=base)
        finally:
            os.unlink(base)
        session = "session_2026-11-28_02-35-14_882540_4194304"
        assert len(f"{again}/r/{session}/sockets/dash_MetricsHead") <= 107
        assert again != made

    def test_the_address_is_one_of_this_host(self) -> None:
        own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        assert bash("node_address ''") in [*own, "127.0.0.1"]
        assert bash("node_address -no-such-suffix") == next((a for a in own if "." in a), "127.0.0.1")


SLEEP_S = f"300.{os.getpid()}"
"""Seconds, and a mark of this process: other tests sleep, too."""


class TestSweep:
    """What a run started is ended, however it hid; nothing else is."""

    def test_only_what_belongs_to_the_run(self) -> None:
        started: list[subprocess.Popen[bytes]] = []

        def start(command: str, **changes: str) -> subprocess.Popen[bytes]:
            started.append(subprocess.Popen(["bash", "-c", command], env=environment(**changes)))
            return started[-1]

        ours = {"RAY_BARE_TOKEN": "77-abc"}
        foreign = start(f"sleep {SLEEP_S}", RAY_BARE_TOKEN="77-abcd")
        sleep = f"env -i sleep {SLEEP_S}"
        hidden = f"setsid bash -c 'trap \"\" TERM; {sleep}' & {sleep} & sleep {SLEEP_S}; :"
        mine = start(hidden, **ours)
        try:
            begun = time.monotonic()
            while len(_sleepers()) < 4 and time.monotonic() - begun < 60:
                time.sleep(0.05)
            assert len(_sleepers()) == 4
            begun = time.monotonic()
            assert bash("sweep 77-abc none none 120 && echo swept") == "swept"
            assert time.monotonic() - begun < 60  # it does not wait for those of others
            mine.wait(timeout=60)
            assert foreign.poll() is None
            assert len(_sleepers()) == 1
        finally:
            for process in started:
                process.kill()
                process.wait()
            subprocess.run(["kill", *map(str, _sleepers())], stderr=subprocess.DEVNULL, check=False)


def _sleepers() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\0" + SLEEP_S.encode() + b"\0":
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


VENV = str(Path(sys.prefix))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the outline of a NeMo-RL checkout without an environment of its own."""
    made = tmp_path / "checkout"
    (made / "examples" / "configs").mkdir(parents=True)
    (made / "examples" / "run_distillation.py").touch()
    (made / "examples" / "configs" / "distillation_math.yaml").touch()
    return made


class TestRefusals:
    """One clear message as the last line but one, the right exit code, nothing started, nothing left."""

    def refuse(self, directory: Path, code: int, *words: str, **changes: str) -> str:
        settings = {"RAY_TMPDIR": "/tmp", "BASE_LOG_DIR": str(directory / "logs"), "RAY_BARE_VENV": VENV}
        settings |= {"RAY_BARE_JOB_ID": f"refused-{os.getpid()}"} | changes
        done = subprocess.run(
            ["bash", str(SCRIPT)],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=60,
            env={key: value for key, value in environment(**settings).items() if value},
        )
        lines = done.stdout.splitlines()
        assert done.returncode == code, done.stdout
        assert done.stderr == ""
        assert lines[-2].startswith("[ERROR][")
        assert lines[-1].endswith(f"ray_bare.sub exiting (exit_code={code})")
        assert all(word in lines[-2] for word in words), lines[-2]
        assert not list((directory / "logs").glob("*"))
        assert not list(Path("/tmp").glob(f"rb-*refused-{os.getpid()}*"))
        return lines[-2]

    def test_no_environment(self, checkout: Path) -> None:
        self.refuse(checkout, 3, f"{checkout}/.venv/bin/python", "RAY_BARE_VENV", RAY_BARE_VENV="")

    def test_no_ray_in_the_environment(self, checkout: Path, tmp_path: Path) -> None:
        home = tmp_path / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        self.refuse(checkout, 3, f"{home}/bin/ray", "RAY_BARE_VENV", RAY_BARE_VENV=str(home))
        (home / "bin" / "ray").write_text("#!/bin/sh\n")
        (home / "bin" / "ray").chmod(0o755)
        self.refuse(checkout, 3, f"{home}/bin/python has no ray", RAY_BARE_VENV=str(home))

    def test_no_checkout(self, tmp_path: Path) -> None:
        self.refuse(tmp_path, 2, "run_distillation.py", "NEMO_RL_ROOT", "COMMAND")
        self.refuse(tmp_path, 2, "/no/such", "NEMO_RL_ROOT", NEMO_RL_ROOT="/no/such", COMMAND="true")

    def test_no_recipe(self, checkout: Path) -> None:
        self.refuse(checkout, 2, "no.yaml", "DISTILL_CONFIG", DISTILL_CONFIG="no.yaml")
        self.refuse(checkout, 2, "no.yaml", DISTILL_CONFIG="no.yaml", COMMAND="true")

    def test_log_directory_cannot_be_made(self, checkout: Path) -> None:
        (checkout / "file").touch()
        self.refuse(checkout, 3, "file/logs", "BASE_LOG_DIR", BASE_LOG_DIR=str(checkout / "file" / "logs"))

    @pytest.mark.parametrize("name", ["RAY_PORT", "RAY_DASHBOARD_PORT"])
    def test_port_in_use(self, checkout: Path, name: str) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            held.listen()
            port = str(held.getsockname()[1])
            self.refuse(checkout, 3, f"port {port} is in use", name, **{name: port})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("RAY_PORT", "80"),
            ("RAY_PORT", "70000"),
            ("RAY_DASHBOARD_PORT", "x; exit"),
            ("GPUS_PER_NODE", "four"),
            ("RAY_BARE_GRACE", "-1"),
            ("RAY_BARE_JOB_ID", "../up"),
            ("RAY_TMPDIR", "/tmp/" + "long" * 10),
            ("RAY_BARE_DEDICATED_HEAD", "1"),
        ],
    )
    def test_settings_that_cannot_be(self, checkout: Path, name: str, value: str) -> None:
        self.refuse(checkout, 2, name, **{name: value})

    def test_same_ports(self, checkout: Path) -> None:
        self.refuse(checkout, 2, "both 11111", RAY_PORT="11111", RAY_DASHBOARD_PORT="11111")

    def test_logs_of_another_run(self, checkout: Path) -> None:
        made = checkout / "other" / "twice-logs"
        made.mkdir(parents=True)
        (made / "launcher.log").write_text("first\n")
        settings = {"BASE_LOG_DIR": str(checkout / "other"), "RAY_BARE_JOB_ID": "twice"}
        self.refuse(checkout, 3, str(made), "RAY_BARE_JOB_ID", **settings)
        assert (made / "launcher.log").read_text() == "first\n"
        assert not list(Path("/tmp").glob("rb-*-twice*"))


class TestExport:
    def test_what_is_written(self, tmp_path: Path) -> None:
        written = export(tmp_path / "a" / "b")
        assert written[0] == tmp_path / "a" / "b" / "ray_bare.sub"
        assert written[0].stat().st_mode & 0o777 == 0o755
        assert written[0].read_bytes() == SCRIPT.read_bytes()
        done = subprocess.run(
            [sys.executable, str(tmp_path / "a" / "b" / "rehearsal.py"), "--help"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert export(tmp_path / "a" / "b") == written

    def test_a_file_that_differs_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "rehearsal.py").write_text("mine\n")
        with pytest.raises(InputError, match="exists and differs"):
            export(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["rehearsal.py"]

    def test_a_directory_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(TransportError, match="cannot write the scripts"):
            export(tmp_path / "file" / "in")

    def test_no_such_script(self) -> None:
        with pytest.raises(InputError, match="no script"):
            script_path("../runs.py")


class TestLogDirectory:
    """Where the key to the Ray cluster and the logs are written, nobody else may have put anything."""

    MAKE = 'fail() { shift; echo "refused: $*"; exit 0; }; JOB_ID=5; EARLY=hello; make_log_dir; echo made'

    @pytest.mark.parametrize("umask", ["000", "002", "022", "077"])
    def test_its_mode_does_not_depend_on_the_umask(self, tmp_path: Path, umask: str) -> None:
        assert bash(f"umask {umask}; {self.MAKE}", BASE_LOG_DIR=str(tmp_path / "base")) == "made"
        for path in (tmp_path / "base", tmp_path / "base" / "5-logs"):
            assert path.stat().st_mode & 0o777 == 0o755 & ~int(umask, 8)
        log = tmp_path / "base" / "5-logs" / "launcher.log"
        assert log.stat().st_mode & 0o777 == 0o644 & ~int(umask, 8)

    def test_a_directory_that_others_can_write_is_refused(self, tmp_path: Path) -> None:
        logs = tmp_path / "5-logs"
        logs.mkdir()
        for mode, answer in ((0o777, "refused"), (0o775, "refused"), (0o755, "made")):
            logs.chmod(mode)
            assert bash(self.MAKE, BASE_LOG_DIR=str(tmp_path), SLURM_JOB_ID="5").startswith(answer), mode

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "5-logs").symlink_to(tmp_path / "elsewhere")
        assert "not a directory of yours" in bash(self.MAKE, BASE_LOG_DIR=str(tmp_path), SLURM_JOB_ID="5")
        assert list((tmp_path / "elsewhere").iterdir()) == []
        (tmp_path / "5-logs").unlink()
        (tmp_path / "5-logs").mkdir()
        (tmp_path / "5-logs" / "launcher.log").symlink_to(tmp_path / "mine")
        assert "is a link" in bash(self.MAKE, BASE_LOG_DIR=str(tmp_path), SLURM_JOB_ID="5")
        assert not (tmp_path / "mine").exists()

    def test_the_key_is_a_new_file_of_the_user(self, tmp_path: Path) -> None:
        key, planted = tmp_path / ".ray-token", tmp_path / "planted"
        planted.write_text("known")
        planted.chmod(0o666)
        for plant in (key.symlink_to, key.hardlink_to):
            plant(planted)
            settings = "AUTH=1; TMP=/x; VENV=/v; GRACE=1; BLOCK=1; LOG_DIR=$PLACE"
            bash(f"{settings}; export_settings", PLACE=str(tmp_path), COMMAND="true")
            assert planted.read_text() == "known"
            assert not key.is_symlink()
            assert key.stat().st_mode & 0o777 == 0o600
            assert len(key.read_text()) == 64
            key.unlink()
