"""What a run will write, where that lies, and better directories."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from launcher.errors import InputError
from launcher.request import SubmitRequest
from launcher.storage.decision import decide, storage_question
from launcher.storage.location import locate, offers
from launcher.storage.quotas import (
    Allowance,
    Quota,
    gpfs_quota,
    jutil_quota,
    lustre_quota,
    mount_of,
    unix_quota,
    within,
)
from launcher.storage.size import checkpoint_size, gigabytes
from launcher.submit.submit import storage_of
from launcher.transports.local import LocalTransport
from recipes.cache_root import cache_root
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.models.facts import ModelFacts, UnknownModel
from recipes.models.table import TABLE
from tests.launcher.ordering import Desk

STUDENT = TABLE["Qwen/Qwen3-1.7B"]
BASE: dict[str, Any] = {
    "policy": {"model_name": "Qwen/Qwen3-1.7B", "optimizer": {"name": "torch.optim.AdamW"}},
    "distillation": {"max_num_steps": 100},
    "checkpointing": {"enabled": True, "save_period": 10, "keep_top_k": 3, "metric_name": None},
}


def recipe_of(tmp_path: Path, *overrides: str) -> EffectiveRecipe:
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(BASE))
    return Resolver().resolve(path, [f"++{item}" for item in overrides])


def sizes(tmp_path: Path, overrides: Sequence[str], student: ModelFacts | UnknownModel = STUDENT) -> Any:
    return checkpoint_size(recipe_of(tmp_path, *overrides), student)


def test_a_student_of_1_7_billion_parameters_with_adam_is_about_20_gigabytes(tmp_path: Path) -> None:
    size = sizes(tmp_path, ())
    assert size.bytes == 12 * (STUDENT.params or 0)
    assert size.in_words() == (
        "a checkpoint of Qwen/Qwen3-1.7B with Adam is about 20.6 GB; up to 3 are kept (61.9 GB), "
        "one more while saving"
    )
    assert size.peak_bytes == 4 * size.bytes


@pytest.mark.parametrize(
    ("overrides", "saves", "kept"),
    [
        ((), 10, 3),
        (("checkpointing.metric_name='val:accuracy'",), 10, 4),
        (("checkpointing.keep_top_k=null",), 10, 10),
        (("checkpointing.keep_top_k=null", "distillation.max_num_steps=101"), 11, 11),
        (("distillation.max_num_steps=5",), 1, 1),
        (("distillation.max_num_steps=15", "checkpointing.keep_top_k=1"), 2, 2),
        (("checkpointing.enabled=false",), 0, 0),
        (("distillation.max_num_steps=null", "checkpointing.keep_top_k=null"), None, None),
        (("distillation.max_num_steps=null",), None, 4),
        (("checkpointing.ft_save_period=4", "checkpointing.ft_keep_latest_k=2"), 30, 5),
        (("checkpointing.ft_save_period=4", "checkpointing.keep_top_k=null"), 30, 30),
    ],
)
def test_how_many_are_saved_and_kept(
    tmp_path: Path, overrides: Sequence[str], saves: int | None, kept: int | None
) -> None:
    size = sizes(tmp_path, overrides)
    assert (size.saves, size.kept) == (saves, kept)


@pytest.mark.parametrize(
    ("overrides", "each"),
    [
        (("checkpointing.save_optimizer=false",), 4),
        (("policy.megatron_cfg.enabled=true",), 14),
        (("checkpointing.save_consolidated=true",), 16),
        (("policy.optimizer.name=torch.optim.SGD",), None),
        (("policy.dtensor_cfg.lora_cfg.enabled=true",), None),
    ],
)
def test_bytes_a_parameter(tmp_path: Path, overrides: Sequence[str], each: int | None) -> None:
    size = sizes(tmp_path, overrides)
    assert size.bytes == (each * (STUDENT.params or 0) if each is not None else None)
    assert (size.unknown == "") is (each is not None)


def test_an_unknown_model_is_an_unknown_size(tmp_path: Path) -> None:
    size = sizes(tmp_path, (), UnknownModel("no config.json", ""))
    assert (size.bytes, size.peak_bytes, size.kept) == (None, None, 3)
    assert "is unknown: no config.json" in size.in_words()


def test_bytes_for_people() -> None:
    texts = [gigabytes(size) for size in (12, 180e6, 20_647_526_400, 1.25e12, 312e9)]
    assert texts == ["12 B", "180 MB", "20.6 GB", "1.2 TB", "312 GB"]


# ------------------------------------------------------------ where


def home_of(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir(exist_ok=True)
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home" / "config")}


def test_a_link_out_of_the_home_directory_leads_out_of_it(tmp_path: Path) -> None:
    environment, transport = home_of(tmp_path), LocalTransport()
    (tmp_path / "big").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path / "big")
    (tmp_path / "way-home").symlink_to(tmp_path / "home")
    inside = locate(transport, tmp_path / "home" / "not" / "yet" / "there", environment)
    assert inside.in_home is True
    assert inside.free_bytes is not None
    assert locate(transport, tmp_path / "home" / "link" / "runs", environment).in_home is False
    assert locate(transport, tmp_path / "way-home" / "runs", environment).in_home is True
    assert locate(transport, tmp_path / "homes", environment).in_home is False
    assert locate(transport, tmp_path, {}).in_home is None


def test_a_file_system_that_hangs_is_unknown() -> None:
    start = time.monotonic()
    assert within(lambda: time.sleep(5), 0.05) is None
    assert time.monotonic() - start < 1


def test_quotas_as_commands_print_them() -> None:
    line = lustre_quota("/lus 1048576 2097152 3145728 - 10 20 0 -\n")
    assert (line.bytes, line.files) == (Allowance(2 << 30, 1 << 30), Allowance(20, 10))
    long_name = lustre_quota("/a/very/long/name\n   3145728* 2097152 3145728 6d 10 0 0 -\n")
    assert (long_name.bytes, long_name.files) == (Allowance(2 << 30, 0), None)
    for text in ("/lus 1048576 0 0 - 10 0 0 -", "lfs: no such user", ""):
        assert (lustre_quota(text).bytes, lustre_quota(text).files) == (None, None)
    rows = "Disk quotas for user u (uid 1):\n Filesystem blocks quota limit grace files\n"
    rows += "nfs:/home 512 1024 2048 0 0 0\nnfs:/full 2048* 1024 2048 6days 7 8 9\n"
    assert unix_quota(rows, "nfs:/home", "/home") == Quota(Allowance(1 << 20, 512 << 10), None, "quota")
    assert unix_quota(rows, "nfs:/full", "/full") == Quota(Allowance(1 << 20, 0), Allowance(8, 1), "quota")
    assert unix_quota(rows, "nfs:/other", "/other") == Quota()


def test_gpfs_limits_are_those_of_the_file_system_that_leave_least() -> None:
    header = (
        "mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:"
        "blockUsage:blockQuota:blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:\n"
    )
    row = "mmlsquota::0:1:::project:USR:1:u:1024:4096:8192:0:none:5:80:90:\n"
    tight = "mmlsquota::0:1:::project:FILESET:1:p:4000:4096:8192:0:none:5:0:0:\n"
    none = "mmlsquota::0:1:::project:USR:1:u:1024:0:0:0:none:5:0:0:\n"
    user = gpfs_quota(header + row, "/dev/project")
    assert (user.bytes, user.files) == (Allowance(4 << 20, 3 << 20), Allowance(80, 75))
    both = gpfs_quota(header + none + tight + row, "project")
    assert (both.bytes, both.files) == (Allowance(4 << 20, 96 << 10), Allowance(80, 75))
    assert gpfs_quota(header + row, "home") == gpfs_quota(row, "project") == Quota()


def test_jutil_s_rows_are_told_apart_by_their_directories() -> None:
    rows = [
        {"project": "p", "project-dir": "/p/project1/p", "data-usage": "1024KB", "data-soft-limit": "4096KB",
         "data-hard-limit": "8192KB", "inode-usage": "5", "inode-soft-limit": "80", "inode-hard-limit": "90"},
        {"project": "p", "project-dir": "/p/scratch/p", "data-usage": "1.5MB", "data-soft-limit": "0KB",
         "data-hard-limit": "2 MiB", "inode-usage": 7, "inode-soft-limit": 0, "inode-hard-limit": 0},
    ]  # fmt: skip
    text = json.dumps(rows)
    project = jutil_quota(text, Path("/p/project1/p/me"))
    assert project == Quota(Allowance(4 << 20, 3 << 20), Allowance(80, 75), "jutil", dated=True)
    scratch = jutil_quota(text, Path("/p/scratch/p"))
    assert (scratch.bytes, scratch.files) == (Allowance(2 << 20, 512 << 10), None)
    for other in (jutil_quota(text, Path("/p/scratch/q")), jutil_quota("usage:", Path("/p/scratch/p"))):
        assert other == Quota()


def test_the_mount_of_a_path_is_the_innermost_one() -> None:
    mounts = "root / ext4 rw 0 0\nnfs:/h /home nfs rw 0 0\nnfs:/b /home/b\\040c nfs4 rw 0 0\nshort\n"
    assert mount_of(Path("/home/b c/d"), mounts) == ("nfs:/b", "/home/b c", "nfs4")
    assert mount_of(Path("/home/bb"), mounts) == ("nfs:/h", "/home", "nfs")
    assert mount_of(Path("/homes"), mounts) == ("root", "/", "ext4")


def test_only_directories_that_can_be_written_outside_the_home_are_offered(tmp_path: Path) -> None:
    environment, transport = home_of(tmp_path), LocalTransport()
    for name in ("scratch/alice", "project", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "same").symlink_to(tmp_path / "scratch")
    (tmp_path / "home" / "inner").mkdir()
    environment |= {
        "SCRATCH": f"{tmp_path}/scratch/",
        "SCRATCH_abc": f"{tmp_path}/same",
        "PROJECT": str(tmp_path / "nowhere"),
        "PROJECT_abc": str(tmp_path / "project"),
        "WORK": str(tmp_path / "home" / "inner"),
        "SCRATCHING": str(tmp_path / "work"),
        "PROJECT_bad": "relative",
        "PROJECT_worse": f"{tmp_path}/work\x1b[2J",
    }
    found = offers(transport, environment, "$DATA/x", "alice")
    assert [(str(offer.path), offer.source) for offer in found] == [
        (f"{tmp_path}/scratch/alice/distill-tui/runs", "$SCRATCH"),
        (f"{tmp_path}/project/alice/distill-tui/runs", "$PROJECT_abc"),
    ]
    assert [offer.purged for offer in found] == [True, False]
    assert all(offer.free_bytes for offer in found)
    environment["DATA"] = str(tmp_path / "work")
    (tmp_path / "work" / "x").mkdir()
    assert offers(transport, environment, "$DATA/x", "alice")[-1].source == "$DATA/x"


# ------------------------------------------------------------ the question


def test_it_is_asked_once(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    scratch = tmp_path.parent / f"{tmp_path.name}-scratch"
    scratch.mkdir()
    environment = {**desk.environment, "SCRATCH": str(scratch)}
    plan = desk.plan_of(SubmitRequest(desk.recipe, 1, "1:00:00", kind="smoke"))
    storage = storage_of(plan, desk.store, environment)
    assert storage.in_run
    assert storage.size.kept == 1
    question = storage_question(plan.submission.layout, storage, desk.transport, environment)
    assert question is not None
    first, second = question.lines()
    assert f"{desk.store.root}, which is in your home directory" in first
    assert second.startswith("A checkpoint of models/student with Adam is about ")
    assert second.endswith("; one is kept, in the run's directory.")
    ((directory, _),) = question.choices()
    assert f"{scratch}/u/distill-tui/runs" == directory
    assert "distill-tui settings storage.runs DIR" in question.hint()
    assert (
        storage_question(
            plan.submission.layout, storage, desk.transport, {**environment, "DISTILL_TUI_RUNS": "/r"}
        )
        is None
    )
    assert decide(directory, environment) == Path(directory)
    assert Path(directory).is_dir()
    assert storage_question(plan.submission.layout, storage, desk.transport, environment) is None


def test_cached_data_goes_where_the_runs_go(tmp_path: Path) -> None:
    environment = home_of(tmp_path)
    environment.pop("XDG_CACHE_HOME", None)
    home, runs = tmp_path / "home", tmp_path / "scratch" / "runs"
    assert cache_root(environment) == home / ".cache" / "distill-tui"
    (home / ".cache" / "distill-tui" / "reads").mkdir(parents=True)
    decide(str(runs), environment)
    assert cache_root(environment) == runs / ".cache"
    assert not (home / ".cache" / "distill-tui").exists()
    assert cache_root({**environment, "XDG_CACHE_HOME": "/c"}) == Path("/c/distill-tui")
    decide("keep", environment)
    assert cache_root(environment) == home / ".cache" / "distill-tui"


def test_keeping_the_home_directory_is_a_decision(tmp_path: Path) -> None:
    environment = home_of(tmp_path)
    assert decide("keep", environment) == tmp_path / "home/.local/state/distill-tui/runs"
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="runs cannot be kept there"):
        decide(str(tmp_path / "file" / "x"), environment)


def test_checkpoints_that_do_not_fit_are_told_with_their_size(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    plan = desk.plan_of(SubmitRequest(desk.recipe, 1, "1:00:00"))
    storage = storage_of(plan, desk.store, desk.environment)
    assert storage.checkpoints is not None
    small = replace(storage, checkpoints=replace(storage.checkpoints, free_bytes=1000, quota_bytes=10**9))
    (warning,) = small.warnings()
    assert "checkpoints do not fit: 1.0 kB free of a quota of 1.0 GB" in warning
    roomy = replace(storage, checkpoints=replace(storage.checkpoints, free_bytes=10**15, in_home=False))
    assert roomy.warnings() == ()
