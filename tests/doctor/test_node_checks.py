"""Verdicts about what was measured on nodes: each names its planted fault; its healthy twin passes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.doctor.check_table import NODE_CHECKS
from launcher.doctor.subject import JobSize, Subject
from launcher.logs.signatures import catalogue
from launcher.sites import Site
from launcher.transports.local import LocalTransport
from recipes.checks import Context, Inputs
from recipes.inheritance import resolve
from tests.checks.world import BASE
from tests.doctor.place import TOPOLOGY, TORCH, family, gpus, judged, node

SITE = Site("test", "Test", (), (), (), offline=True, host_suffix="")
_DEEPEP = ("policy.megatron_cfg.moe_enable_deepep=true",)


@pytest.fixture(scope="module")
def subject() -> Subject:
    """Return a subject with two healthy nodes, whose recipe uses DeepEP."""
    context = Context(resolve(BASE, _DEEPEP), Inputs.of(environment={}))
    job = {"HF_HUB_OFFLINE": "1"}
    size = JobSize(2, 4, 600, "booster", "first")
    subject = Subject(LocalTransport(), {"HOME": "/h"}, job, SITE, Path("/runs"), size, context=context)
    first = node("n1", peers={"n2": True}, network__names={"n1": ["127.0.0.1"], "n2": ["10.0.0.2"]})
    second = node("n2", peers={"n1": True}, network__names={"n2": ["127.0.0.1"], "n1": ["10.0.0.1"]})
    return replace(subject, measured={"n1": first, "n2": second})


FOREIGN = "/software/cuDNN/9.1.0.70-CUDA-12/lib/libcudnn_graph.so.9"
SHADOWED = family("nvidia-cudnn-cu13", "9.20.0", [FOREIGN], version="9.1.0")
PATCH = family("nvidia-cudnn-cu13", "9.20.0", [FOREIGN], version="9.20.1")
NCCL = family("nvidia-nccl-cu13", "2.28.9", ["/software/NCCL/2.20/lib/libnccl.so.2"], version="2.20.0")
CUDART = family("nvidia-cuda-runtime", "13.0", ["/usr/lib/libcudart.so.12"], version="12.2")
BROKEN = family(
    "nvidia-cudnn-cu13", "9.20.0", errors=["undefined symbol: cudnnX, version libcudnn_graph.so.9"]
)
_FAMILIES = "venvs__driver__libraries__families"
_TORCH = "venvs__driver__libraries__torch"
FAULTS = (
    ("D41", "fail", {"venvs__driver__imports": [{"name": "vllm", "error": "ImportError: x"}]}, "vllm in driver", "import vllm"),
    ("D41", "warn", {"venvs__driver__imports": [{"name": "torch", "seconds": 200.0}]}, "slow: torch", "--on devel"),
    ("D42", "fail", {f"{_FAMILIES}__cudnn": SHADOWED}, "module cuDNN/9.1.0.70-CUDA-12 (9.1.0) shadows the wheel's 9.20.0", "module unload cuDNN/9.1.0.70-CUDA-12"),
    ("D42", "fail", {f"{_FAMILIES}__cudnn": SHADOWED}, "`undefined symbol … libcudnn_graph.so.9` would follow", "--no-env LD_LIBRARY_PATH"),
    ("D42", "warn", {f"{_FAMILIES}__cudnn": PATCH}, "is loaded", "module unload"),
    ("D42", "fail", {f"{_FAMILIES}__cudnn": BROKEN}, "undefined symbol: cudnnX", "LD_LIBRARY_PATH"),
    ("D43", "fail", {f"{_FAMILIES}__nccl": NCCL}, "module NCCL/2.20 (2.20.0) shadows", "module unload NCCL/2.20"),
    ("D44", "fail", {f"{_FAMILIES}__cudart": CUDART}, "/usr/lib (12.2) shadows", "unset LD_LIBRARY_PATH"),
    ("D45", "fail", {"gpu__cuda": "12.4"}, "built for CUDA 13.0, driver 580.82.07 offers CUDA 12.4", "nvidia-smi"),
    ("D45", "fail", {_TORCH: {**TORCH, "arch": "sm_103"}}, "no code for sm_103", "nvidia-smi"),
    ("D45", "fail", {_TORCH: {**TORCH, "available": False}}, "torch sees no GPU", "nvidia-smi"),
    ("D45", "fail", {_TORCH: {**TORCH, "error": "RuntimeError: CUDNN_STATUS_NOT_INITIALIZED"}}, "CUDNN_STATUS", "nvidia-smi"),
    ("D46", "fail", {"gpu__gpus": gpus(3)}, "shows 3 GPUs, the job asks for 4", "--exclude=n1"),
    ("D46", "fail", {"gpu": None}, "no nvidia-smi", "--exclude=n1"),
    ("D46", "fail", {"gpu__failed": True}, "nvidia-smi fails on n1", "--exclude=n1"),
    ("D47", "fail", {"gpu__gpus": gpus(4, mig="Enabled")}, "MIG is on", "distill-tui detect"),
    ("D47", "fail", {"gpu__instances": 7}, "MIG is on", "distill-tui detect"),
    ("D48", "fail", {"gpu__gpus": gpus(4, ecc="2")}, "GPU 0 of n1: 2 uncorrectable", "--exclude=n1"),
    ("D49", "fail", {"gpu__processes": [{"pid": "77", "program": "python"}]}, "python (77)", "--exclude=n1"),
    ("D49", "fail", {"gpu__gpus": gpus(4, used="39000")}, "GPU 0: 39000 MiB", "--exclude=n1"),
    ("D50", "warn", {"gpu__topology": TOPOLOGY.format(link="SYS")}, "no NVLink", "topo -m"),
    ("D51", "fail", {"machine__socket_interfaces": {"NCCL_SOCKET_IFNAME": "ib1"}}, "names no interface with an address", "export NCCL_SOCKET_IFNAME=ib0"),
    ("D51", "warn", {"network__default": "eth1", "machine__socket_interfaces": {}}, "different interfaces", "export GLOO_SOCKET_IFNAME=ib0"),
    ("D52", "fail", {"network__infiniband": [{"port": "mlx5_0/1", "state": "DOWN"}]}, "mlx5_0/1 of n1 is DOWN", "--exclude=n1"),
    ("D53", "fail", {"network__names": {"n1": ["10.0.0.1"], "n2": []}}, "n2 has no address on n1", "getent"),
    ("D53", "fail", {"network__names": {"n1": ["127.0.1.1"], "n2": ["127.0.1.1"]}}, "lead n1 to itself", "getent"),
    ("D54", "fail", {"peers": {"n2": False}}, "n1 does not reach n2", "SOCKET_IFNAME"),
    ("D55", "fail", {"gloo": {"ok": False, "error": "connect timeout"}}, "connect timeout", "export GLOO_SOCKET_IFNAME=ib0"),
    ("D56", "fail", {"nccl": {"error": "ncclSystemError"}}, "ncclSystemError", "export NCCL_SOCKET_IFNAME=ib0"),
    ("D57", "warn", {"machine__space": {"/dev/shm": {"free": 64 << 20}}}, "/dev/shm: 67.1 MB free", "df -h /dev/shm"),
    ("D58", "warn", {"machine__space": {"/tmp": {"free": 1 << 30}}}, "/tmp: 1.0 GB free", "RAY_TMPDIR"),
    ("D59", "fail", {"machine__canary": False}, "n1 cannot read /runs", "settings storage.runs"),
    ("D59", "fail", {"late": ["n2"]}, "n2 wrote nothing", "--on devel"),
    ("D60", "warn", {"network__internet": {"h:443": True}}, "do have internet", "profile edit"),
    ("D61", "fail", {"machine__verbs_library": None}, "no libibverbs on n1", "ldconfig"),
    ("D61", "warn", {"machine__verbs_header": False}, "deep_ep cannot be built", "verbs.h"),
    ("D62", "warn", {"machine__open_files": 4096}, "4,096", "ulimit -Hn"),
    ("D63", "warn", {"machine__time": 1100.0}, "n1 is 100 s ahead of n2", "date"),
)  # fmt: skip
BOTH = {"D52", "D60"}
"""Faults that count only where all nodes have them."""


@pytest.mark.parametrize(("check", "outcome", "changes", "evidence", "command"), FAULTS)
def test_a_planted_fault_is_named_with_what_helps(
    check: str, outcome: str, changes: dict[str, object], evidence: str, command: str, subject: Subject
) -> None:
    first = {**node("n1", **changes)}
    first.setdefault("peers", {"n2": True})
    second = node("n2", **changes) if check in BOTH else subject.measured["n2"]
    verdict = judged(replace(subject, measured={"n1": first, "n2": second}), check)
    assert verdict is not None
    assert (verdict.outcome, evidence in verdict.evidence) == (outcome, True), verdict.evidence
    assert verdict.remedy is not None
    assert command in verdict.remedy.command


@pytest.mark.parametrize("check", [item.id for item in NODE_CHECKS])
def test_the_healthy_twin_passes(check: str, subject: Subject) -> None:
    verdict = judged(subject, check)
    assert verdict is not None
    assert verdict.outcome == "pass", verdict


def test_every_check_of_nodes_has_a_planted_fault() -> None:
    assert {item[0] for item in FAULTS} == {item.id for item in NODE_CHECKS}


def test_nodes_without_internet_fail_where_the_job_counts_on_it(subject: Subject) -> None:
    online = replace(subject, job={}, site=replace(SITE, offline=False))
    verdict = judged(online, "D60")
    assert verdict is not None
    assert verdict.outcome == "fail"
    assert verdict.remedy is not None
    assert "offline = true" in verdict.remedy.changes


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("ib", "pass"),
        ("=ib0", "pass"),
        ("=ib", "fail"),
        ("^lo", "pass"),
        ("eth,ib", "pass"),
        ("bond", "fail"),
    ],
)
def test_interfaces_are_named_as_nccl_reads_them(value: str, outcome: str, subject: Subject) -> None:
    measured = {"n1": node("n1", machine__socket_interfaces={"NCCL_SOCKET_IFNAME": value})}
    verdict = judged(replace(subject, measured=measured), "D51")
    assert verdict is not None
    assert verdict.outcome == outcome, verdict


def test_a_failure_is_foretold_by_checks_that_exist() -> None:
    from launcher.doctor.check_table import CHECKS
    from launcher.foretold import FORETOLD, checks_foretelling

    assert FORETOLD.keys() <= {item.id for item in CHECKS}
    assert {name for names in FORETOLD.values() for name in names} <= catalogue().signatures.keys()
    assert checks_foretelling("cudnn-symbol") == ("D42",)
    assert checks_foretelling("nothing") == ()
    for check in CHECKS:
        assert all(check.id in checks_foretelling(name) for name in check.foretells)


def test_ids_are_unique_and_titles_short() -> None:
    from launcher.doctor.check_table import CHECKS

    assert len({item.id for item in CHECKS}) == len({item.title for item in CHECKS}) == len(CHECKS)
    assert all(
        len(item.title) <= 40 and (item.judge.__doc__ or "").startswith(f"{item.id}: ") for item in CHECKS
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ("machine", "gpu", "gpus", "network", "venvs", "driver", "libraries", "families", "cudnn", "files", "imports",
         "torch", "interfaces", "names", "infiniband", "peers", "gloo", "space", "/dev/shm", "free", "internet")
    ), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(data=_JSON)
@settings(max_examples=30)
def test_what_a_damaged_result_says_is_no_crash(data: object) -> None:
    subject = Subject(LocalTransport(), {}, {}, SITE, Path("/runs"), JobSize(1, 4), measured={"n1": data})
    for check in NODE_CHECKS:
        with suppress(OSError, ValueError, RuntimeError):  # which the runner makes a verdict
            verdict = check.judge(subject)
            assert verdict is None or verdict.outcome in ("pass", "warn", "fail", "unknown")
