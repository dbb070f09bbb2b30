"""The wizard's fields of the job: environment, sbatch arguments, modules, nodes of smoke runs; paths."""

# ruff: noqa: F811 - the fixture `node`
from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.runs import RecipeRef, RequestRecord, Run, RunSpec, RunStore, SlurmRequest
from launcher.sites import Profile
from launcher.transports.local import LocalTransport
from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import Screen, shown
from tests.tui.replay import running
from tests.tui.test_wizard import NEXT, node, on_review, page, wizard  # noqa: F401 - a fixture
from tui.screens.wizard.draft_request import request_of
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.findings import assess
from tui.screens.wizard.from_run import wizard_state_of
from tui.screens.wizard.model import DraftStatus, WizardState, fields_of, step_of, text_of
from tui.screens.wizard.validation import errors
from tui.widgets.path_completion import completion


def resolver_of(node: LoginNode, **variables: str) -> DraftResolver:
    environment = {**os.environ, **node.environment, **variables}
    one = DraftResolver(RunStore(LocalTransport(), str(node.runs)), environment)
    one.ask_slurm()
    return one


def state_of(node: LoginNode, **texts: str) -> WizardState:
    return WizardState({"recipe": str(node.recipe), **texts})


def names_on(step: str, state: WizardState, status: DraftStatus) -> list[str]:
    return [item.name for item in fields_of(step_of(step), state, status)]


def test_typed_options_reach_the_job(node: LoginNode) -> None:
    (node.root / "keys").write_text("WANDB_API_KEY=abc\n")
    state = state_of(
        node,
        env_file=str(node.root / "keys"),
        env="NCCL_DEBUG=INFO NOTE='two words'",
        no_env="VLLM_X",
        sbatch_args="--mail-type=END --comment='a b'",
    )
    resolver = resolver_of(node, VLLM_X="1")
    status = resolver.full_status(state, resolver.quick_status(state))
    assert status.plan is not None, status.plan_error
    plan = status.plan.submission.plans[0]
    assert (plan.environment["NCCL_DEBUG"], plan.environment["NOTE"]) == ("INFO", "two words")
    assert "VLLM_X" not in plan.environment
    assert {"--mail-type=END", "--comment=a b"} <= set(plan.argv)
    assert status.plan.options.keys["WANDB_API_KEY"] == "abc"


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("env", "A='x", "a quote is not closed"),
        ("env", "NOT_IN_THE_SHELL", "your shell has no such variable"),
        ("env", "HF_TOKEN=x", "a secret must not be on a command line"),
        ("no_env", "A-B", "invalid variable name"),
        ("env_file", "/nowhere/keys", "/nowhere/keys"),
        ("modules", "a;b", "invalid module name"),
        ("modules", "loaded", "no module is loaded"),
    ],
)
def test_what_is_wrong_in_them_is_shown_at_the_field(
    node: LoginNode,
    field: str,
    text: str,
    says: str,
) -> None:
    state, resolver = state_of(node, **{field: text}), resolver_of(node, LOADEDMODULES="")
    status = resolver.full_status(state, resolver.quick_status(state))
    (finding,) = assess(state, status).on_field(field)
    assert finding.prevents
    assert says in f"{finding.message} {status.plan_error.where if status.plan_error else ''}"


def test_modules_are_offered_where_some_are_loaded(node: LoginNode) -> None:
    bare, state = resolver_of(node, LOADEDMODULES=""), state_of(node)
    assert "modules" not in names_on("cluster", state, bare.quick_status(state))
    loaded = resolver_of(node, LOADEDMODULES="GCC/13:Python/3.12")
    status = loaded.full_status(state, loaded.quick_status(state))
    assert names_on("cluster", state, status)[-1] == "modules"
    assert text_of("modules", state, status) == ""  # nothing is loaded unless asked for
    assert request_of(state, status).modules is None
    chosen = state_of(node, modules="loaded")
    status = loaded.full_status(chosen, loaded.quick_status(chosen))
    assert status.plan is not None
    assert "module load GCC/13 Python/3.12" in status.plan.submission.files["job.sh"].decode()


def test_the_modules_of_site_and_profile_are_shown(node: LoginNode) -> None:
    resolver = resolver_of(node, LOADEDMODULES="")
    assert resolver.detection is not None
    site = replace(
        resolver.detection.site, modules=("CUDA", "GCC"), profiles={"p": Profile(modules=("Python",))}
    )
    resolver.detection = replace(resolver.detection, site=site)
    for texts, expected in (({}, "CUDA GCC"), ({"profile": "p"}, "Python")):
        state = state_of(node, **texts)
        status = resolver.quick_status(state)
        assert text_of("modules", state, status) == expected
        assert request_of(state, status).modules is None  # the site's own are no request to remember


def test_a_smoke_run_gets_the_fewest_nodes(node: LoginNode) -> None:
    resolver = resolver_of(node)
    large = node.root / "large.yaml"
    large.write_text(node.recipe.read_text().replace("num_nodes: 1", "num_nodes: 4"))
    state = WizardState({"recipe": str(large), "kind": "smoke"})
    quick = resolver.quick_status(state)
    assert text_of("nodes", state, quick) == "4"  # the recipe's, until it is planned
    status = resolver.full_status(state, quick)
    assert status.plan is not None, status.plan_error
    assert status.plan.options.nodes == 1
    assert text_of("nodes", state, status) == "1"
    assert text_of("nodes", state, resolver.quick_status(state)) == "1"  # kept while something else is typed
    assert request_of(state, status).nodes is None
    typed = WizardState({**state.texts, "nodes": "2"})
    planned = resolver.full_status(typed, resolver.quick_status(typed))
    assert request_of(typed, planned).nodes == 2
    assert text_of("nodes", state, resolver.quick_status(state)) == "1"  # what was typed is not the fewest
    training = WizardState({"recipe": str(large)})
    assert request_of(training, resolver.quick_status(training)).nodes == 4
    assert "steps" not in names_on("batches", state, status)
    assert "steps" in names_on("batches", training, resolver.quick_status(training))


def test_running_again_keeps_the_options() -> None:
    record = RequestRecord(
        profile="p",
        env_file="/keys",
        env=("A=b c", "D"),
        no_env=("E",),
        sbatch_args=("--x=y z",),
        modules="m/1",
    )
    spec = RunSpec(
        id="i", name="n", kind="training", created=datetime.now(UTC), user="u", host="h", cluster="slurm",
        nodes=2, gpus_per_node=4, schema=1, recipe=RecipeRef(source="/p/r.yaml"), request=record,
        slurm=SlurmRequest(partition="booster", time_s=5400),
    )  # fmt: skip
    state = wizard_state_of(Run("/runs/i", spec, ()))
    request = request_of(state, DraftStatus(state, path=Path("/p/r.yaml")))
    assert (request.env, request.no_env, request.sbatch_args) == (
        record.env,
        record.no_env,
        record.sbatch_args,
    )
    assert (request.env_file, request.profile, request.modules) == (Path("/keys"), "p", "m/1")
    assert set(errors(state, DraftStatus(state))) == {"checkout"}  # none is known here


# ------------------------------------------------------------ paths and lists


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("qwen-a.yaml", "qwen-b.yaml", "solo.yaml", "sub/x.yaml"):
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_text("")
    monkeypatch.chdir(tmp_path / "d")
    return tmp_path / "d"


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("qw", (), ("qwen-", ())),
        ("qwen-", (), ("qwen-", ("qwen-a.yaml", "qwen-b.yaml"))),
        ("so", (), ("solo.yaml", ())),
        ("solo.yaml", (), ("solo.yaml", ())),  # nothing is left to complete
        ("su", (), ("sub/", ())),
        ("sub/", (), ("sub/x.yaml", ())),
        ("nothing", (), ("nothing", ())),
        ("4B", ("packaged-4b.yaml", "/x/other.yaml"), ("packaged-4b.yaml", ())),
        ("yaml", ("a.yaml", "/x/b.yaml"), ("yaml", ("a.yaml", "/x/b.yaml"))),
        ("a.yaml", ("a.yaml", "xa.yaml"), ("a.yaml", ())),  # one of them as it is
        ("qwen-", ("/y/qwen-c.yaml",), ("qwen-", ("qwen-a.yaml", "qwen-b.yaml", "/y/qwen-c.yaml"))),
    ],
)
def test_completion(directory: Path, text: str, known: tuple[str, ...], expected: object) -> None:
    assert completion(text, known) == expected
    assert completion(f"{directory}/{text}", ())[0].startswith(f"{directory}/{text}")


def focused_field(screen: Screen) -> str:
    row = page(screen).form.focused_row
    return row.item.name if row is not None else ""


@pytest.mark.long
async def test_tab_completes_a_path_lists_several_and_else_goes_on(
    node: LoginNode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("mine-a.yaml", "mine-b.yaml"):
        (node.root / name).write_text(node.recipe.read_text())
    monkeypatch.chdir(node.root)
    async with wizard(node) as screen:
        await screen.press(NEXT, "down")
        await screen.type("mi")
        await screen.see("✗ 2 match (tab)")
        await screen.press("tab")
        await screen.until(lambda: page(screen).wizard_state.texts["recipe"] == "mine-", "completed")
        await screen.press("tab")
        await screen.see("mine-a.yaml", "mine-b.yaml", "this directory")
        await screen.press("down", "enter")
        await screen.until(lambda: page(screen).wizard_state.texts["recipe"] == "mine-b.yaml", "chosen")
        await screen.press("end", "tab")
        await screen.until(lambda: focused_field(screen) == "checkout", "the next field")


@pytest.mark.slow
async def test_another_directory_for_the_runs_can_be_typed(
    node: LoginNode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DISTILL_TUI_RUNS")
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))
    target = node.root.parent / "data"
    target.mkdir()
    monkeypatch.setenv("DATA_OF_MINE", str(target))
    state = WizardState({"recipe": str(node.recipe), "kind": "smoke", "time": "30m"})
    async with shown(node.root / "state" / "distill-tui" / "runs", wizard_state=state) as screen:
        await screen.see("1 Cluster", "booster", "distill")
        await on_review(screen)
        await screen.press("s")
        await screen.see("Where are runs to be kept?", "d  another directory")
        await screen.press("d")
        await screen.see("Directory of the runs")
        await screen.press("dollar_sign")
        await screen.type("DATA_OF_MINE/runs")
        await screen.press("enter")
        await screen.see("Submit?")
        await screen.press("y")
        await screen.until(lambda: list((target / "runs").glob("2*")), "the run")


@pytest.mark.long
async def test_single_findings_of_a_check_can_be_skipped(node: LoginNode) -> None:
    (node.root / "config" / "distill-tui" / "site.toml").write_text("[job]\noffline = true\n")
    async with wizard(node, student="some/student", teacher="some/teacher") as screen:
        await on_review(screen)
        await screen.press("x")
        await screen.see("Skip which check?", "C66:policy.model_name", "C66:teacher.model_name", "all ")
        await screen.press("home", "enter")
        await screen.until(lambda: page(screen).wizard_state.skipped, "skipped")
        (skipped,) = page(screen).wizard_state.skipped
        assert skipped.startswith("C66:")
        await screen.until(lambda: page(screen).status.settled and page(screen).status.plan, "planned again")
        plan = page(screen).status.plan
        assert plan is not None
        assert len(plan.submission.spec.skipped_checks) == 1
        assert "C66" in {result.id for result in plan.blocking}


def save_checkpoint(run: Run) -> Path:
    saved = Path(run.directory, "output", "checkpoints", "step_10")
    saved.mkdir(parents=True)
    (saved / "weights").write_bytes(b"x" * 5000)
    return saved


def exists(path: Path) -> bool:
    return path.exists()


async def test_the_checkpoint_of_a_finished_trial_run_is_removed_by_a_key(tmp_path: Path) -> None:
    replay = running(tmp_path, "", max_steps=12)
    replay.finish()
    saved = save_checkpoint(replay.run)
    async with shown(tmp_path, open_run=replay.run.spec.id) as screen:
        await screen.see("✓ completed", "D remove checkpoint")
        await screen.press("D")
        await screen.see("Remove its checkpoint?", "y  remove the checkpoint")
        await screen.press("n")
        assert exists(saved)
        await screen.press("D", "y")
        await screen.see("Removed", "kB in ")
        assert not exists(saved)
        await screen.press("o")
        await screen.until(lambda: "D remove checkpoint" not in screen.text, "offered once")
