"""Checks of a node's Python environments: imports, and the CUDA libraries that they really load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.doctor.measured import Library, NodeResult, libraries, mapping, module_of, rows, text
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from launcher.doctor.subject import Subject

FAMILY_NAMES = {"cudnn": "cuDNN", "nccl": "NCCL", "cudart": "the CUDA runtime"}
SLOW_IMPORT_S = 60.0
"""A cold parallel file system takes tens of seconds for torch; NeMo-RL waits minutes, not for ever."""


def results(subject: Subject) -> list[NodeResult]:
    """Return what was measured, by node."""
    return [NodeResult(name, mapping(data)) for name, data in sorted(subject.measured.items())]


def packages_import(subject: Subject) -> Verdict | None:
    """D41: the packages of each environment can be imported on a node."""
    broken, slow, count, longest = [], [], 0, 0.0
    for node in results(subject):
        for label, venv in node.venvs:
            for item in rows(venv.get("imports")):
                name, seconds, error = text(item.get("name")), item.get("seconds"), text(item.get("error"))
                count += 1
                seconds = float(seconds) if isinstance(seconds, int | float) else 0.0
                longest = max(longest, seconds)
                if error:
                    broken.append(f"{name} in {label} on {node.name}: {error}")
                elif seconds > SLOW_IMPORT_S:
                    slow.append(f"{name} in {label} on {node.name}: {seconds:.0f} s")
    if broken:
        return failed("; ".join(broken[:4]), _import_command(subject))
    if slow:
        text_ = f"slow: {'; '.join(slow[:4])}"
        return warned(text_, "distill-tui doctor --on devel", changes="")
    return passed(f"{counted(count, 'import')}, the longest {longest:.0f} s") if count else None


def _import_command(subject: Subject) -> str:
    for node in results(subject):
        for _, venv in node.venvs:
            for item in rows(venv.get("imports")):
                if item.get("error"):
                    return (
                        f"srun -n 1 {text(venv.get('path'))}/bin/python -c 'import {text(item.get('name'))}'"
                    )
    return "distill-tui doctor --on devel"


def cudnn_is_the_package_s(subject: Subject) -> Verdict | None:
    """D42: cuDNN is the one that was installed with torch, not a module's."""
    return _library(subject, "cudnn")


def nccl_is_the_package_s(subject: Subject) -> Verdict | None:
    """D43: NCCL is the one that was installed with torch, not a module's."""
    return _library(subject, "nccl")


def runtime_is_the_package_s(subject: Subject) -> Verdict | None:
    """D44: the CUDA runtime is the one that was installed with torch, not a module's."""
    return _library(subject, "cudart")


def _library(subject: Subject, family: str) -> Verdict | None:
    good: list[str] = []
    bad: list[str] = []
    warnings: list[str] = []
    remedies: list[str] = []
    for node in results(subject):
        for library in libraries(node, family):
            problem = _shadowed(node, library, family)
            if library.errors and not problem:
                problem = f"{library.venv}: {library.errors[0]}"
            if not problem:
                good.append(f"{library.venv} {library.version or library.wheel_version}".strip())
                continue
            # A whole family of another patch level works; parts of two packages in one process do not.
            severe = bool(library.errors) or library.is_mixed or _is_other(library)
            (bad if severe else warnings).append(f"{problem} (on {node.name})")
            remedies += [name for path in library.foreign if (name := module_of(node, path))]
    if not (good or bad or warnings):
        return None
    if not bad and not warnings:
        return passed(", ".join(dict.fromkeys(good)))
    command = f"module unload {remedies[0]}" if remedies else "unset LD_LIBRARY_PATH"
    further = "distill-tui submit FILE --no-env LD_LIBRARY_PATH"
    judge = failed if bad else warned
    return judge("; ".join(dict.fromkeys(bad + warnings)), command, further, changes="the libraries of jobs")


def _shadowed(node: NodeResult, library: Library, family: str) -> str:
    """Return which file is loaded instead of the package's; empty where none is."""
    foreign = library.foreign
    if not foreign:
        return ""
    module = module_of(node, foreign[0])
    source = f"module {module}" if module else str(Path(foreign[0]).parent)
    own = f"the wheel's {library.wheel_version} in {library.venv}"
    version = f" ({library.version})" if library.version else ""
    line = f"{source}{version} shadows {own}: {foreign[0]} is loaded"
    if library.errors:
        return f"{line}; {library.errors[0]}"
    if family == "cudnn" and (library.is_mixed or _is_other(library)):
        return f"{line}; `undefined symbol … {Path(foreign[0]).name}` would follow"
    return line


def _is_other(library: Library) -> bool:
    """Return whether another minor version than the package's is loaded."""
    return _minor(library.version) != _minor(library.wheel_version)


def _minor(version: str) -> tuple[str, ...]:
    """Return major and minor version."""
    return tuple(re.findall(r"\d+", version)[:2])


def driver_supports_torch(subject: Subject) -> Verdict | None:
    """D45: the GPU driver is new enough for torch's CUDA, and torch has code for the GPU."""
    for node in results(subject):
        offered = text(node.part("gpu").get("cuda"))
        driver = text(node.gpus[0].get("driver_version")) if node.gpus else ""
        for label, venv in node.venvs:
            torch = mapping(mapping(venv.get("libraries")).get("torch"))
            if not torch:
                continue
            if problem := _torch_problem(torch, offered, driver):
                return failed(f"{problem} ({label} on {node.name})", "nvidia-smi", changes="")
            if torch.get("available") is False and node.gpus:
                return failed(f"torch sees no GPU in {label} on {node.name}", "nvidia-smi")
    versions = _torch_versions(subject)
    return passed(versions) if versions else None


def _torch_problem(torch: Mapping[str, Any], offered: str, driver: str) -> str:
    cuda, error = text(torch.get("cuda")), text(torch.get("error"))
    if offered and cuda and _major(cuda) > _major(offered):
        return f"torch is built for CUDA {cuda}, driver {driver or 'of the node'} offers CUDA {offered}"
    arch, listed = text(torch.get("arch")), torch.get("arch_list")
    if arch and isinstance(listed, list) and listed and not _has_code(arch, [text(item) for item in listed]):
        return f"torch has no code for {arch} (it has {', '.join(text(item) for item in listed)})"
    return f"torch fails: {error}" if error else ""


def _major(version: str) -> int:
    digits = re.match(r"\d+", version)
    return int(digits[0]) if digits is not None else 0


def _has_code(arch: str, listed: list[str]) -> bool:
    """Return whether a list of architectures has one that runs on `arch`: same major, or PTX below it."""
    own = int(re.sub(r"\D", "", arch) or 0)
    for item in listed:
        number = int(re.sub(r"\D", "", item) or 0)
        if number <= own and (number // 10 == own // 10 or item.startswith("compute_")):
            return True
    return False


def _torch_versions(subject: Subject) -> str:
    parts: dict[str, None] = {}
    for node in results(subject):
        for _, venv in node.venvs:
            torch = mapping(mapping(venv.get("libraries")).get("torch"))
            if torch:
                device = f" on {text(torch.get('device'))}" if torch.get("device") else " without a GPU"
                parts[f"torch {text(torch.get('version'))}, CUDA {text(torch.get('cuda'))}{device}"] = None
    return "; ".join(parts)


def verbs_are_there(subject: Subject) -> Verdict | None:
    """D61: libibverbs, which deep_ep is built with and needs, is on the nodes."""
    context = subject.context
    if context is None or not any(
        context.get(f"{side}.megatron_cfg.moe_enable_deepep") is True for side in ("policy", "teacher")
    ):
        return None
    for node in results(subject):
        machine = node.part("machine")
        if not machine.get("verbs_library"):
            return failed(
                f"there is no libibverbs on {node.name}; the recipe uses DeepEP", "ldconfig -p | grep verbs"
            )
        if not machine.get("verbs_header"):
            text_ = f"{node.name} has no infiniband/verbs.h: deep_ep cannot be built there"
            return warned(text_, "ls /usr/include/infiniband/verbs.h")
    return passed("libibverbs and its header") if subject.measured else unknown("not measured")
