"""A submission to Slurm: the command, the run, its files and its overrides."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from launcher.clusters.local import LocalCluster
from launcher.clusters.slurm.render import again, comment_of, script_for_test_only
from launcher.effective import (
    directory_overrides,
    distillation,
    effective_yaml,
    max_steps_of,
    user_overrides,
)
from launcher.errors import InputError
from launcher.request import JobOptions, SubmitRequest
from launcher.sites import Profile
from launcher.submit.env_file import read_env_file
from launcher.submit.submission import Submission, lay_out
from recipes.inheritance import EffectiveRecipe, Resolver
from tests.launcher.ordering import SITE, Desk

OWN = ("++cluster.num_nodes=1", "++cluster.gpus_per_node=4")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def submission(desk: Desk, **changes: object) -> Submission:
    request = replace(SubmitRequest(desk.recipe, 1, "2:00:00"), **changes)  # type: ignore[arg-type]
    return desk.plan_of(request).submission


def options(one: Submission, link: int = 0) -> dict[str, str]:
    """Return the options of an sbatch command."""
    given = [text.partition("=") for text in one.plans[link].argv if text.startswith("--")]
    return {name: value for name, _, value in given}


def run_dir(desk: Desk, one: Submission) -> str:
    return str(Path(desk.store.root, one.spec.id))


def test_the_command_asks_for_everything(desk: Desk) -> None:
    one = submission(desk, account="first", qos="q", reservation="r")
    (plan,) = one.plans
    directory = run_dir(desk, one)
    assert plan.argv == (
        "sbatch",
        "--parsable",
        f"--job-name=dt-{one.spec.id}",
        f"--comment=distill-tui {plan.job_id}",
        "--partition=booster",
        "--account=first",
        "--qos=q",
        "--reservation=r",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--gres=gpu:4",
        "--mem=0",
        "--time=02:00:00",
        "--open-mode=append",
        "--export=ALL",
        "--exclusive",
        "--requeue",
        f"--output={directory}/logs/slurm-%j.out",
        f"--chdir={desk.world.root}",
        f"{directory}/job.sh",
    )
    assert plan.output == f"{directory}/logs/slurm-%j.out"
    assert plan.cwd == directory
    assert plan.environment["RUN_DIR"] == directory
    assert re.fullmatch(r"dt-[0-9a-f]{16}", plan.job_id)
    assert comment_of("dt-1") == "distill-tui dt-1"


def test_what_is_not_chosen_is_not_asked_for(desk: Desk) -> None:
    given = options(submission(desk))
    assert {"--qos", "--reservation"} & set(given) == set()
    assert "--dependency" not in given


def test_nodes_without_gpus(desk: Desk) -> None:
    one = submission(desk, gpus_per_node=0, kind="rehearsal")
    assert "--gres" not in options(one)
    # A rehearsal needs no checkout: it runs in its own directory.
    assert options(one)["--chdir"] == run_dir(desk, one)
    assert one.spec.checkout is None


def test_a_chain_is_jobs_that_follow_one_another(desk: Desk) -> None:
    one = submission(desk, chain=3)
    assert len(one.plans) == 3
    assert len({plan.job_id for plan in one.plans}) == 3
    assert len({options(one, link)["--job-name"] for link in range(3)}) == 1
    for link in range(3):
        given = options(one, link)
        assert given["--dependency"] == "singleton"
        assert given["--comment"] == f"distill-tui {one.plans[link].job_id}"
        assert ("--no-requeue" in given, "--requeue" in given) == (True, False)
    assert one.files["plan.json"] == one.plans[0].as_bytes()
    assert one.spec.slurm is not None
    assert one.spec.slurm.chain == 3


def test_arguments_of_the_profile_and_the_user_come_last_and_win(desk: Desk) -> None:
    site = replace(SITE, profiles={"big": Profile({"A": "1"}, ("--mem=1G", "--nice"))})
    desk = replace(desk, detection=replace(desk.detection, site=site))
    (plan,) = submission(desk, profile="big", sbatch_args=("--mem=2G",)).plans
    assert plan.argv[-4:-1] == ("--mem=1G", "--nice", "--mem=2G")
    assert plan.environment["A"] == "1"


def test_a_profile_that_is_not_there_names_those_that_are(desk: Desk) -> None:
    with pytest.raises(InputError, match="unknown profile 'no'") as raised:
        submission(desk, profile="no")
    assert raised.value.fix == "Profiles of your site.toml: none."
    site = replace(SITE, profiles={"big": Profile(), "small": Profile()})
    with pytest.raises(InputError, match="unknown profile 'no'") as raised:
        submission(replace(desk, detection=replace(desk.detection, site=site)), profile="no")
    assert raised.value.fix == "Profiles of your site.toml: big, small."


def test_the_files_of_a_run(desk: Desk) -> None:
    one = submission(desk, overrides=("distillation.max_num_steps=7",))
    assert one.files["recipe.yaml"] == desk.recipe.read_bytes()
    effective = yaml.safe_load(one.files["effective.yaml"])
    assert effective["distillation"]["max_num_steps"] == 7
    assert effective["cluster"] == {**effective["cluster"], "num_nodes": 1, "gpus_per_node": 4}
    assert effective["checkpointing"]["checkpoint_dir"] == "results"
    assert {"chain.sh", "job.sh"} <= set(one.files)
    (plan,) = one.plans
    assert plan.files == ("run.json", "plan.json", *[name for name in one.files if name != "plan.json"])
    assert json.loads(one.files["plan.json"])["argv"] == list(plan.argv)
    assert not [name for name in one.files if "secret" in name]


def test_keys_are_a_file_of_their_own_and_nowhere_else(desk: Desk, tmp_path: Path) -> None:
    key = "hf_" + "a1B2c3D4e5F6g7"
    file = tmp_path / "keys.env"
    file.write_text(f"HF_TOKEN={key}\n")
    one = submission(desk, env_file=file)
    holders = [name for name, data in one.files.items() if key.encode() in data]
    assert len(holders) == 1
    assert f"HF_TOKEN={key}" in one.files[holders[0]].decode()
    assert key not in repr(one.plans)
    assert key not in one.spec.model_dump_json()


def test_the_run(desk: Desk) -> None:
    begun = datetime.now(UTC)
    one = submission(desk, overrides=("distillation.seed=3",), account="first")
    spec = one.spec
    assert (spec.name, spec.kind, spec.user, spec.cluster) == ("recipe", "training", "u", "slurm")
    assert (spec.nodes, spec.gpus_per_node, spec.max_steps, one.max_steps) == (1, 4, 100, 100)
    assert (spec.recipe.source, spec.recipe.overrides) == (
        str(desk.recipe),
        ("distillation.seed=3", *OWN),
    )
    assert begun <= spec.created <= datetime.now(UTC)
    assert spec.id.startswith(f"{spec.created:%Y%m%d-%H%M%S}-recipe-")
    assert spec.host == desk.transport.host
    assert spec.slurm is not None
    assert (spec.slurm.partition, spec.slurm.account, spec.slurm.time_s) == ("booster", "first", 7200)
    assert (spec.checkout, spec.launcher) == (str(desk.world.root), "ray_bare")
    assert spec.schema_version == 1


def test_a_recipe_by_a_relative_path_is_found_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.world.root)
    one = submission(desk, recipe=Path(desk.recipe.name))
    assert one.spec.recipe.source == str(desk.recipe)


def test_a_training_gets_its_size_and_no_more(desk: Desk) -> None:
    one = submission(desk, overrides=("distillation.seed=3",))
    assert one.overrides == ("distillation.seed=3", *OWN)


def test_a_smoke_run_gets_few_steps_and_directories_of_its_own(desk: Desk) -> None:
    one = submission(desk, kind="smoke", overrides=("distillation.max_num_steps=50",))
    assert one.max_steps == one.spec.max_steps == 5
    steps = (
        "++distillation.max_num_steps=5",
        "++logger.wandb_enabled=false",
        "++checkpointing.save_period=5",
        "++checkpointing.keep_top_k=1",
    )
    assert one.spec.recipe.overrides == ("distillation.max_num_steps=50", *OWN, *steps)
    directories = dict(text.partition("=")[::2] for text in one.overrides[len(one.spec.recipe.overrides) :])
    assert "++checkpointing.checkpoint_dir" in directories
    for value in directories.values():
        assert run_dir(desk, one) in value
    effective = yaml.safe_load(one.files["effective.yaml"])
    assert effective["checkpointing"]["checkpoint_dir"].startswith(run_dir(desk, one))
    assert effective["logger"]["wandb_enabled"] is False


def test_a_chain_of_two_is_one_already(desk: Desk) -> None:
    assert options(submission(desk, chain=2))["--dependency"] == "singleton"


@pytest.mark.parametrize("kind", ["training", "smoke"])
def test_what_a_submission_added_can_be_taken_away_again(desk: Desk, kind: str) -> None:
    given = ("distillation.seed=3", "policy.precision=bfloat16")
    spec = submission(desk, kind=kind, overrides=given).spec
    assert user_overrides(spec) == given
    sized = ("++cluster.num_nodes=7", "++cluster.gpus_per_node=a=b")
    again = spec.recipe.model_copy(update={"overrides": (*given, *sized)})
    assert user_overrides(spec.model_copy(update={"recipe": again})) == given
    # In a training, steps are the user's own.
    mine = submission(desk, kind="training", overrides=("++distillation.max_num_steps=9",)).spec
    assert user_overrides(mine) == ("++distillation.max_num_steps=9",)


def saves(one: Submission) -> bool:
    """Tell whether the driver is told when to save."""
    return "checkpoint_must_save_by" in one.plans[0].environment["COMMAND"]


def test_when_the_driver_is_told_when_to_save(desk: Desk) -> None:
    by_hand = ("checkpointing.checkpoint_must_save_by=00:01:00:00",)
    never = ("checkpointing.enabled=false",)
    assert saves(submission(desk))
    assert not saves(submission(desk, overrides=by_hand))
    assert saves(submission(desk, overrides=by_hand, chain=2))
    assert not saves(submission(desk, overrides=never, chain=2))
    assert not saves(submission(desk, overrides=("~checkpointing.enabled",), skip_checks=()))
    assert not saves(submission(desk, kind="smoke"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("\n  \n# A=1\n  # B=2\n", {}),
        ("A=1\nB=2\nA=3\n", {"A": "3", "B": "2"}),
        ("  export  A_1 =  x y  \n", {"A_1": "x y"}),
        ("A=\n", {"A": ""}),
        ("A='x y'\nB=\"z\"\n", {"A": "x y", "B": "z"}),
        ("A=''\n", {"A": ""}),
        ("A='\nB=\"x'\nC='x\nD=ax'\nE=aa\nF=xyx\n",
         {"A": "'", "B": "\"x'", "C": "'x", "D": "ax'", "E": "aa", "F": "xyx"}),
        ("A=x=y#z\nB=XyX\n", {"A": "x=y#z", "B": "XyX"}),
        ("_a=1\r\nb=2\r\n", {"_a": "1", "b": "2"}),
        ("A=hf_1 # mine\nB='x # y' # z\nC= # none\nD=#1\n", {"A": "hf_1", "B": "x # y", "C": "", "D": "#1"}),
        ("A='it'\"'\"'s #1'\nB='a' b\nC=\"a\\\"b\"\n", {"A": "it's #1", "B": "'a' b", "C": 'a"b'}),
    ],
)  # fmt: skip
def test_files_of_variables(text: str, values: dict[str, str]) -> None:
    assert read_env_file(text, Path("x.env")) == values


@pytest.mark.parametrize("line", ["A", "1A=x", "export", "A B=1", "A-B=1", "=x", "exportA B=x"])
def test_a_line_that_is_no_variable_is_named_by_its_number_alone(line: str) -> None:
    with pytest.raises(InputError) as raised:
        read_env_file(f"# x\n\nB=1\n{line}\nC=2\n", Path("x.env"))
    assert raised.value.what == "invalid line 4 (expected NAME=value)"
    assert raised.value.where == Path("x.env")


def test_one_more_job_of_a_run_waits_for_those_before_it(desk: Desk) -> None:
    (plan,) = submission(desk, sbatch_args=("--nice",)).plans
    later = again(plan, None)
    assert re.fullmatch(r"dt-[0-9a-f]{16}", later.job_id)
    assert later.job_id != plan.job_id
    comment = plan.argv.index(f"--comment=distill-tui {plan.job_id}")
    *before, script = plan.argv
    before[comment] = f"--comment=distill-tui {later.job_id}"
    assert later.argv == (*before, "--dependency=singleton", script)
    assert replace(later, job_id=plan.job_id, argv=plan.argv) == plan
    assert again(later, None).argv.count("--dependency=singleton") == 1


def test_one_more_job_can_have_another_time_limit(desk: Desk) -> None:
    (plan,) = submission(desk).plans
    later = again(plan, 60)
    assert [text for text in later.argv if text.startswith("--time")] == ["--time=00:01:00"]
    assert len(later.argv) == len(plan.argv) + 1


def test_the_script_for_a_start_estimate_is_there() -> None:
    assert script_for_test_only().name == "ray_bare.sub"
    assert script_for_test_only().is_file()


def local(desk: Desk, name: str = "", *, resolver: Resolver | None = None, **changes: object) -> Submission:
    """Lay out a run on a machine without a scheduler."""
    cluster = LocalCluster(
        desk.transport, {**desk.environment, "RAY_BARE_VENV": str(desk.world.root / ".venv")}
    )
    request = SubmitRequest(desk.recipe, 1, 0, overrides=("distillation.seed=3",), kind="rehearsal")
    request = replace(request, **changes)  # type: ignore[arg-type]
    options = JobOptions(request, 1, 4, "u")
    return lay_out(cluster, desk.store, SITE, options, resolver or Resolver(), name=name)


def test_a_machine_without_a_scheduler(desk: Desk) -> None:
    one = local(desk)
    assert (one.spec.cluster, one.spec.slurm, one.spec.name) == ("local", None, "recipe")
    assert one.spec.recipe.overrides == ("distillation.seed=3",)
    # Relative: the driver starts in the run's directory.
    assert one.overrides == (
        "distillation.seed=3",
        "++logger.log_dir=output/logs",
        "++checkpointing.checkpoint_dir=output/checkpoints",
    )
    assert one.recipe.get("logger.log_dir") == "output/logs"
    assert one.recipe is one.layout.recipe
    assert local(desk, kind="training").overrides == ("distillation.seed=3",)


def test_a_run_is_named_after_its_recipe_unless_it_has_a_name(desk: Desk) -> None:
    assert local(desk, "demo").spec.name == "demo"
    assert "-demo-" in local(desk, "demo").spec.id


def test_the_run_tells_which_launcher_it_has(desk: Desk) -> None:
    assert local(desk, launcher="ray.sub").spec.launcher == "ray.sub"


def test_the_recipe_is_read_by_the_resolver_that_has_read_it_already(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver, resolutions = Resolver(), list[EffectiveRecipe]()
    resolve = resolver.resolve

    def noted(recipe: Path, overrides: Sequence[str] = ()) -> EffectiveRecipe:
        resolutions.append(resolve(recipe, overrides))
        return resolutions[-1]

    monkeypatch.setattr(resolver, "resolve", noted)
    assert [local(desk, resolver=resolver).recipe] == resolutions


def test_a_recipe_of_something_else_is_not_run(desk: Desk) -> None:
    file = desk.world.root / "other.yaml"
    file.write_text("grpo:\n  max_num_steps: 3\n")
    with pytest.raises(InputError, match="not a recipe of an on-policy distillation") as raised:
        distillation(file, ())
    assert raised.value.where == file
    assert raised.value.fix == "Give a recipe for NeMo-RL's run_distillation.py."
    file.write_text("name: ü\ndistillation:\n  max_num_steps: many\n")
    effective = distillation(file, ("+distillation.seed=7",), Resolver())
    assert max_steps_of(effective) is None
    # In the recipe's own order.
    assert effective_yaml(effective).decode() == (
        "name: ü\ndistillation:\n  max_num_steps: many\n  seed: 7\n"
    )


def test_directories_without_a_run_are_relative() -> None:
    assert directory_overrides("smoke") == directory_overrides("rehearsal", "")
    assert directory_overrides("smoke")[0] == "++logger.log_dir=output/logs"
