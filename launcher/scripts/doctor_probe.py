"""Imports packages in one Python environment and says which CUDA libraries it really loads.

Run by that environment's Python, in the environment of the job: `doctor_probe.py imports NAME …` prints a
JSON line for each import, `doctor_probe.py libraries` one of all libraries, `doctor_probe.py reduce BACKEND
ADDRESS PORT RANK SIZE` the result of an all-reduce. Only the standard library, and torch where it is there.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

FAMILIES = {
    "cudnn": (r"libcudnn\w*\.so", "nvidia-cudnn-", "cudnnGetVersion"),
    "nccl": (r"libnccl\.so", "nvidia-nccl-", "ncclGetVersion"),
    "cudart": (r"libcudart\.so", "nvidia-cuda-runtime", "cudaRuntimeGetVersion"),
}
"""Library family: pattern of its files, the package that brings it, the function that tells its version."""


def imports(names: list[str]) -> None:
    """Import packages one after the other; the caller starts a process for each that may crash."""
    for name in names:
        begun = time.monotonic()
        result: dict[str, Any] = {"name": name}
        try:
            module = importlib.import_module(name)
            result["version"] = str(getattr(module, "__version__", ""))
        except BaseException as error:  # noqa: BLE001 - whatever a package does when it is imported is told
            result["error"] = f"{type(error).__name__}: {error}"[:600]
        result["seconds"] = round(time.monotonic() - begun, 2)
        print(json.dumps(result), flush=True)


def libraries() -> None:
    """Load the CUDA libraries as a training would, and print where they are from."""
    result: dict[str, Any] = {"torch": _torch(), "families": {}}
    wheels = {family: _wheel(pattern, package) for family, (pattern, package, _) in FAMILIES.items()}
    errors = {family: _load(wheel["files"]) for family, wheel in wheels.items()}
    mapped = _mapped()
    for family, (pattern, _, function) in FAMILIES.items():
        loaded = sorted(path for path in mapped if re.match(pattern, Path(path).name))
        result["families"][family] = {
            **wheels[family],
            "loaded": loaded,
            "version": _version(loaded, function, family),
            "errors": errors[family],
        }
    print(json.dumps(result), flush=True)


def _torch() -> dict[str, Any] | None:
    """Use cuDNN through torch: a small convolution and attention on the GPU, else only torch's import."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    except BaseException as error:  # noqa: BLE001 - a loader's complaint comes as many kinds of error
        return {"error": f"{type(error).__name__}: {error}"[:600]}
    facts: dict[str, Any] = {"version": str(torch.__version__), "cuda": torch.version.cuda}
    try:
        facts["available"] = bool(torch.cuda.is_available())
        if facts["available"]:
            facts["device"] = torch.cuda.get_device_name(0)
            facts["arch"] = "sm_{}{}".format(*torch.cuda.get_device_capability(0))
            facts["arch_list"] = list(torch.cuda.get_arch_list())
            image = torch.randn(2, 4, 16, 16, device="cuda", dtype=torch.float16)
            torch.nn.Conv2d(4, 8, 3, device="cuda", dtype=torch.float16)(image)
            query = torch.randn(1, 2, 16, 32, device="cuda", dtype=torch.float16)
            torch.nn.functional.scaled_dot_product_attention(query, query, query)
            torch.cuda.synchronize()
        facts["cudnn"] = torch.backends.cudnn.version()
    except BaseException as error:  # noqa: BLE001 - CUDA fails in many kinds of error
        facts["error"] = f"{type(error).__name__}: {error}"[:600]
    return facts


def _wheel(pattern: str, package: str) -> dict[str, Any]:
    """Return the package that brings a library: its name, version and library files."""
    for distribution in importlib.metadata.distributions():
        name = str(distribution.metadata["Name"] or "")
        if not name.lower().replace("_", "-").startswith(package):
            continue
        files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
        matches = sorted({str(path.resolve()) for path in files if re.match(pattern, path.name)})
        if matches:
            return {"wheel": name, "wheel_version": distribution.version, "files": matches}
    return {"wheel": None, "wheel_version": None, "files": []}


def _load(files: list[str]) -> list[str]:
    """Load a family as its libraries load one another: from LD_LIBRARY_PATH first, then from beside them.

    Their own search path is a RUNPATH of $ORIGIN, which comes after LD_LIBRARY_PATH and before the system's
    directories (ld.so(8)): a copy that only the system has does no harm.
    """
    errors = []
    for file in files:
        name = Path(file).name
        try:
            ctypes.CDLL(name if _is_on_library_path(name) else file)
        except OSError as error:
            errors.append(str(error)[:300])
    return errors


def _is_on_library_path(name: str) -> bool:
    directories = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    return any(Path(directory, name).exists() for directory in directories)


def _mapped() -> list[str]:
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return sorted(
        {parts[5] for line in lines if len(parts := line.split(None, 5)) == 6 and parts[5][0] == "/"}
    )


def _version(loaded: list[str], function: str, family: str) -> str | None:
    """Return the version that a loaded library reports itself."""
    for path in loaded:
        try:
            call = getattr(ctypes.CDLL(path), function)
        except (OSError, AttributeError):
            continue
        if family == "cudnn":
            call.restype = ctypes.c_size_t
            return decoded(int(call()), family)
        value = ctypes.c_int(0)
        if call(ctypes.byref(value)) == 0:
            return decoded(value.value, family)
    return None


def decoded(number: int, family: str) -> str:
    """Return a version number as text: cuDNN 91002 and 8907, NCCL 22703 and 2708, CUDA 12080."""
    if family == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    if family == "nccl" and number < 10000:
        return f"{number // 1000}.{number % 1000 // 100}.{number % 100}"
    thousands = 10000 if number >= 10000 else 1000
    return f"{number // thousands}.{number % thousands // 100}.{number % 100}"


def reduce(backend: str, address: str, port: str, rank: str, size: str) -> None:
    """Sum the ranks over all nodes, and print the result."""
    import datetime

    torch = importlib.import_module("torch")
    distributed = importlib.import_module("torch.distributed")
    begun = time.monotonic()
    distributed.init_process_group(
        backend,
        init_method=f"tcp://{address}:{port}",
        rank=int(rank),
        world_size=int(size),
        timeout=datetime.timedelta(seconds=60),
    )
    value = torch.ones(1 << 20, device="cuda:0" if backend == "nccl" else "cpu") * (int(rank) + 1)
    distributed.all_reduce(value)
    total = float(value[0].item())
    distributed.destroy_process_group()
    expected = int(size) * (int(size) + 1) / 2
    print(json.dumps({"ok": total == expected, "seconds": round(time.monotonic() - begun, 2)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "imports":
        imports(sys.argv[2:])
    elif sys.argv[1] == "libraries":
        libraries()
    else:
        reduce(*sys.argv[2:])
