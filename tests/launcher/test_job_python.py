"""The job's Python: one that a module brings starts only with its libraries; the modules that jobs load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.errors import InputError, LaunchError, TransportError
from launcher.interpreter import interpreter_state
from launcher.request import SubmitRequest
from launcher.site_choices import load_choices
from launcher.sites import Profile
from launcher.submit.modules import given_modules
from launcher.submit.submit import SubmissionPlan, plan_submission, send
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.launcher.ordering import DETECTION, SITE, Desk, Slurm

LIBRARIES = "/software/Python/lib"
COMPLAINT = "libpython3.12.so.1.0: cannot open shared object file: No such file or directory"
OTHER_COMPLAINT = "/lib64/libc.so.6: version `GLIBC_2.38' not found (required by python)"
SHELL = {"LD_LIBRARY_PATH": LIBRARIES, "LOADEDMODULES": "Stages/2025:GCCcore/.13.3.0:Python/3.12.3"}


def install_python(venv: Path, complaint: str = f"error while loading shared libraries: {COMPLAINT}") -> None:
    """Write a Python that starts only with its libraries, as the loader would have it."""
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    python = venv / "bin" / "python"
    test = f"[[ :$LD_LIBRARY_PATH: == *:{LIBRARIES}:* ]]"
    python.write_text(f'#!/bin/bash\n{test} || {{ echo "$0: {complaint}" >&2; exit 127; }}\n')
    python.chmod(0o755)


class RealPython(Slurm):
    """A Slurm of answers on a machine whose Python is really started."""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        if argv[0].endswith("/bin/python"):
            return LocalTransport.run(self, argv, env=env, cwd=cwd, timeout_s=timeout_s)
        return super().run(argv, env=env, cwd=cwd, timeout_s=timeout_s)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    one = replace(Desk.at(tmp_path), transport=RealPython())
    install_python(tmp_path / ".venv")
    return one


def plan_in(desk: Desk, shell: Mapping[str, str], **changes: object) -> SubmissionPlan:
    request = replace(SubmitRequest(desk.recipe, 1, "1:00:00"), **changes)  # type: ignore[arg-type]
    return plan_submission(request, desk.detection, desk.store, {**desk.environment, **shell})


def remarks(plan: SubmissionPlan) -> list[str]:
    return [note for note in plan.notes if "Python" in note]


def test_a_module_s_python_is_told_with_the_modules_of_the_shell(desk: Desk) -> None:
    plan = plan_in(desk, SHELL)
    (note,) = remarks(plan)
    assert note.startswith("the job's Python needs LD_LIBRARY_PATH")
    assert "Stages/2025, GCCcore/.13.3.0, Python/3.12.3" in note
    assert "--modules loaded" in note
    assert plan.obstacle is None
    assert plan.submission.plans[0].environment["LD_LIBRARY_PATH"] == LIBRARIES
    (note,) = remarks(plan_in(desk, {"LD_LIBRARY_PATH": LIBRARIES}))
    assert "--modules" not in note


@pytest.mark.parametrize(
    ("shell", "changes", "fix"),
    [
        ({}, {}, "Load the modules that it was made with"),
        ({"LD_LIBRARY_PATH": "/elsewhere"}, {}, "Load the modules that it was made with"),
        (SHELL, {"no_env": ("LD_LIBRARY_PATH",)}, "--modules loaded"),
        (SHELL, {"env": ("LD_LIBRARY_PATH=/elsewhere",)}, "--modules loaded"),
        ({"LD_LIBRARY_PATH": LIBRARIES}, {"no_env": ("LD_LIBRARY_PATH",)}, "--env LD_LIBRARY_PATH"),
    ],
)
def test_a_python_that_does_not_start_in_the_job_is_an_obstacle(
    desk: Desk, shell: Mapping[str, str], changes: Mapping[str, object], fix: str
) -> None:
    plan = plan_in(desk, shell, **changes)
    assert isinstance(plan.obstacle, LaunchError)
    assert plan.obstacle.what == f"the job's Python does not start: {COMPLAINT}"
    assert fix in plan.obstacle.fix
    assert plan.submission.plans[0].argv[0] == "sbatch"  # the plan is there all the same
    with pytest.raises(LaunchError, match="does not start"):
        send(plan, desk.store, {**desk.environment, **shell}, confirmed=True)
    assert not Path(desk.store.root).exists()


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        (f"error while loading shared libraries: {COMPLAINT}", COMPLAINT),
        (OTHER_COMPLAINT, "version `GLIBC_2.38' not found"),
        ("Fatal Python error: init_fs_encoding", ""),
    ],
)
def test_complaints_of_the_loader(tmp_path: Path, complaint: str, expected: str) -> None:
    install_python(tmp_path, complaint.replace("`", "\\`"))
    environment = {"PATH": "/usr/bin:/bin"}
    state = interpreter_state(LocalTransport(), str(tmp_path), environment, {})
    assert state.complaint == expected


def test_other_environments_are_no_matter_of_modules(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 0\n")
    assert remarks(plan_in(desk, SHELL)) == []
    (tmp_path / ".venv" / "bin" / "python").chmod(0o644)  # unknown, and not for the loader to say
    assert plan_in(desk, SHELL).obstacle is None
    (tmp_path / ".venv" / "bin" / "python").unlink()
    assert isinstance(plan_in(desk, SHELL).obstacle, TransportError)


# ------------------------------------------------------------ modules


def job_script(plan: SubmissionPlan) -> str:
    return plan.submission.files["job.sh"].decode()


def test_the_modules_of_the_shell_are_loaded_by_jobs_and_remembered(desk: Desk) -> None:
    plan = plan_in(desk, SHELL, modules="loaded")
    assert plan.obstacle is None
    assert remarks(plan) == []
    assert "module load Stages/2025 GCCcore/.13.3.0 Python/3.12.3 || exit 3" in job_script(plan)
    assert "LD_LIBRARY_PATH" not in plan.submission.plans[0].environment
    send(plan, desk.store, desk.environment, confirmed=True)
    remembered = load_choices(desk.transport, desk.environment, SITE.id).modules
    assert remembered == ("Stages/2025", "GCCcore/.13.3.0", "Python/3.12.3")
    assert "module load Stages/2025" in job_script(plan_in(desk, {}))


def test_what_goes_first_where_modules_are_named_several_times(desk: Desk) -> None:
    site = replace(SITE, modules=("site/1",), profiles={"p": Profile(modules=("profile/1",))})
    named = replace(desk, detection=replace(DETECTION, site=site))
    assert "module load site/1 ||" in job_script(plan_in(named, SHELL))
    assert "module load profile/1 ||" in job_script(plan_in(named, SHELL, profile="p"))
    given = plan_in(named, SHELL, profile="p", modules="a/1, b")
    assert "module load a/1 b ||" in job_script(given)
    send(given, desk.store, desk.environment, confirmed=True)
    assert "module load site/1 ||" in job_script(plan_in(named, SHELL))  # site.toml is read after all


@pytest.mark.parametrize("text", ["-rf", "a;b", "$(x)", "GCC 'x'"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="invalid module name"):
        given_modules(text, SHELL)


def test_loaded_without_any_is_refused() -> None:
    with pytest.raises(InputError, match="no module is loaded"):
        given_modules("loaded", {})
