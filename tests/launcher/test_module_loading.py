"""The lines that load modules in a job, run by bash: modules and profiles do not decide what a job has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from launcher.clusters.slurm.module_loading import loading_lines

MODULE = """\
module() {
  echo "$*" >>~/calls
  [[ $1 != load ]] || export PYTHONPATH=/module/site VIRTUAL_ENV=/module/venv
  [[ $1 != load ]] || export LD_LIBRARY_PATH=/module/lib CUDA_HOME=/m
  [[ $* != *broken* ]]
}
"""


def after_loading(
    home: Path, job: dict[str, str], modules: tuple[str, ...] = ("GCC/13",), shell: str = ""
) -> dict[str, str]:
    """Return the environment in which the launcher would start; empty where the job ended before."""
    lines = [*loading_lines(modules, {"MODULEPATH": shell}, job), "env -0 >~/environment"]
    (home / "environment").unlink(missing_ok=True)
    environment = {"HOME": str(home), "PATH": f"/shell/bin:{os.environ['PATH']}", **job}
    subprocess.run(["bash", "-c", "\n".join(lines)], env=environment, check=False, capture_output=True)
    if not (home / "environment").exists():
        return {}
    pairs = (home / "environment").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def test_a_profile_and_a_module_change_nothing_of_what_the_job_was_given(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("export HF_HOME=/profile/hf PYTHONHOME=/profile\n. ~/.bashrc\n")
    (tmp_path / ".bashrc").write_text(MODULE)
    job = {"HF_HOME": "/p/it's mine", "NCCL_DEBUG": "INFO", "CUDA_HOME": "/login/cuda"}
    loaded = after_loading(tmp_path, job, shell="/apps/m::/p/own modules:relative")
    assert (loaded["HF_HOME"], loaded["NCCL_DEBUG"]) == ("/p/it's mine", "INFO")
    assert (loaded["LD_LIBRARY_PATH"], loaded["CUDA_HOME"]) == ("/module/lib", "/m")
    assert not {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"} & set(loaded)
    assert "/shell/bin" in loaded["PATH"].split(":")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["--force purge", "use --append /apps/m /p/own modules", "load GCC/13"]


def test_what_the_user_chose_stays_although_a_module_sets_it(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text(MODULE)
    assert after_loading(tmp_path, {"PYTHONPATH": "/mine"})["PYTHONPATH"] == "/mine"


def test_a_profile_that_starts_another_shell_is_not_read_where_it_need_not_be(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("exec true\n")
    lines = [*loading_lines(("GCC",), {}, {}), "echo loaded"]
    script = MODULE + "\n".join(lines)  # as /etc/profile defines it at most sites
    done = subprocess.run(["bash", "-c", script], env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.endswith("loaded\n")


def test_a_module_that_cannot_be_loaded_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(MODULE)
    assert after_loading(tmp_path, {}, ("broken/1",)) == {}
