"""What is measured on a node: real shared objects, a stand-in nvidia-smi, real sockets on this machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.doctor.node_job import internet_target
from launcher.doctor.subject import JobSize, Subject
from launcher.scripts import script_path
from launcher.sites import Site
from launcher.transports.local import LocalTransport
from tests.doctor.place import judged

CC = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
_SOURCE = "unsigned long cudnnGetVersion(void) { return %d; }\n"
_NEEDS = (
    "unsigned long cudnnGetVersion(void);\nunsigned long cudnnGraph(void) { return cudnnGetVersion(); }\n"
)


def build(folder: Path, name: str, source: str, *arguments: str) -> Path:
    """Build a shared object."""
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / f"{name}.c"
    code.write_text(source)
    path = folder / name
    assert CC is not None
    argv = [CC, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(path), str(code), *arguments]
    subprocess.run(argv, check=True, capture_output=True)
    code.unlink()
    return path


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python environment whose packages bring cuDNN 9.20.0: a library, and one that it loads."""
    root = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (site,) = root.glob("lib/python3*/site-packages")
    folder = site / "nvidia" / "cudnn" / "lib"
    build(folder, "libcudnn.so.9", _SOURCE % 92000)
    build(folder, "libcudnn_graph.so.9", "int graph(void) { return 1; }\n")
    info = site / "nvidia_cudnn_cu13-9.20.0.48.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cudnn-cu13\nVersion: 9.20.0.48\n")
    files = ("libcudnn.so.9", "libcudnn_graph.so.9")
    (info / "RECORD").write_text("".join(f"nvidia/cudnn/lib/{name},,\n" for name in files))
    return root


def probed(venv: Path, **environment: str) -> dict[str, Any]:
    """Return what the probe prints in an environment."""
    done = subprocess.run(
        [venv / "bin" / "python", script_path("doctor_probe.py"), "libraries"],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def subject_of(libraries: Mapping[str, Any], modules: list[str]) -> Subject:
    """Return a subject with one node that has probed its environment."""
    result = {
        "schema": 1,
        "machine": {"modules": modules, "roots": {}},
        "venvs": {"driver": {"path": "/v", "imports": [], "libraries": libraries}},
    }
    site = Site("test", "Test", (), (), ())
    return Subject(LocalTransport(), {}, {}, site, Path("/r"), JobSize(), measured={"n1": result})


@needs_compiler
def test_the_package_s_library_is_loaded_without_modules(venv: Path) -> None:
    libraries = probed(venv)
    (family,) = [libraries["families"]["cudnn"]]
    assert family["version"] == "9.20.0"
    assert [Path(path).name for path in family["loaded"]] == ["libcudnn.so.9", "libcudnn_graph.so.9"]
    verdict = judged(subject_of(libraries, []), "D42")
    assert verdict is not None
    assert (verdict.outcome, verdict.evidence) == ("pass", "driver 9.20.0")


@needs_compiler
def test_a_module_s_library_shadows_the_package_s(venv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "software" / "cuDNN" / "9.1.0" / "lib"
    build(folder, "libcudnn_graph.so.9", _SOURCE % 90100)
    libraries = probed(venv, LD_LIBRARY_PATH=str(folder))
    loaded = libraries["families"]["cudnn"]["loaded"]
    assert str(folder / "libcudnn_graph.so.9") in loaded
    assert not any("site-packages" in path and "graph" in path for path in loaded)
    verdict = judged(subject_of(libraries, ["GCC/13", "cuDNN/9.1.0"]), "D42")
    assert verdict is not None
    assert verdict.outcome == "fail"
    assert "module cuDNN/9.1.0" in verdict.evidence
    assert "shadows the wheel's 9.20.0.48" in verdict.evidence
    assert verdict.remedy is not None
    assert verdict.remedy.commands[0] == "module unload cuDNN/9.1.0"


@needs_compiler
def test_two_whole_versions_are_told_apart(venv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cuDNN" / "9.1.0" / "lib"
    build(folder, "libcudnn.so.9", _SOURCE % 90100)
    build(folder, "libcudnn_graph.so.9", "int graph(void) { return 0; }\n")
    libraries = probed(venv, LD_LIBRARY_PATH=str(folder))
    assert libraries["families"]["cudnn"]["version"] == "9.1.0"
    verdict = judged(subject_of(libraries, ["cuDNN/9.1.0"]), "D42")
    assert verdict is not None
    assert verdict.outcome == "fail"
    assert "undefined symbol … libcudnn" in verdict.evidence


@needs_compiler
def test_a_missing_symbol_is_what_the_loader_says(venv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cuDNN" / "9.9" / "lib"
    build(
        folder,
        "libcudnn_graph.so.9",
        "int missing(void);\nint graph(void) { return missing(); }\n",
        "-Wl,-z,now",
    )
    libraries = probed(venv, LD_LIBRARY_PATH=str(folder))
    verdict = judged(subject_of(libraries, []), "D42")
    assert verdict is not None
    assert verdict.outcome == "fail"
    assert "undefined symbol: missing" in verdict.evidence


def test_versions_of_libraries_are_decoded() -> None:
    sys.path.insert(0, str(script_path("doctor_probe.py").parent))
    try:
        from launcher.scripts.doctor_probe import decoded
    finally:
        sys.path.pop(0)
    numbers = {("cudnn", 91002): "9.10.2", ("cudnn", 92000): "9.20.0", ("cudnn", 8907): "8.9.7"}
    numbers |= {("nccl", 22703): "2.27.3", ("nccl", 2708): "2.7.8", ("cudart", 12080): "12.8"}
    assert {key: decoded(number, family) for key in numbers for family, number in [key]} == numbers


NVIDIA_SMI = """\
#!/bin/bash
case "$*" in
  --query-gpu*) echo "0, NVIDIA A100-SXM4-40GB, GPU-0, 40960, 4, Disabled, 0, 580.82.07"
                echo "1, NVIDIA A100-SXM4-40GB, GPU-1, 40960, 39000, Disabled, [N/A], 580.82.07" ;;
  --query-compute-apps*) echo "812, GPU-1, 38990, /usr/bin/python3" ;;
  -L) echo "GPU 0: NVIDIA A100"; echo "GPU 1: NVIDIA A100" ;;
  topo*) printf '\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t X \\tNV12\\t0-23\\nGPU1\\tNV12\\t X \\t0-23\\n' ;;
  *) echo "| NVIDIA-SMI 580.82.07   Driver Version: 580.82.07   CUDA Version: 13.0 |" ;;
esac
"""


def test_a_node_is_measured(tmp_path: Path) -> None:
    bin_, name = tmp_path / "bin", socket.gethostname().partition(".")[0]
    bin_.mkdir()
    (bin_ / "nvidia-smi").write_text(NVIDIA_SMI)
    (bin_ / "nvidia-smi").chmod(0o755)
    (tmp_path / "canary.txt").write_text("sings")
    spec = {
        "out": str(tmp_path),
        "venvs": {"driver": {"path": sys.prefix, "imports": ["json", "no_such_package"]}},
        "suffix": "",
        "tmp": str(tmp_path),
        "canary": {"path": str(tmp_path / "canary.txt"), "text": "sings"},
        "internet": ["127.0.0.1:9"],
        "limit_s": 60,
        "port": free_port(),
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    environment = {"PATH": f"{bin_}:/usr/bin:/bin", "NCCL_SOCKET_IFNAME": "lo", "LOADEDMODULES": "A/1:B"}
    done = subprocess.run(
        [sys.executable, script_path("doctor_node.py"), tmp_path / "spec.json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / f"doctor-{name}.json").read_text())
    assert [item["memory"] for item in result["gpu"]["gpus"]] == ["40960", "40960"]
    assert result["gpu"]["cuda"] == "13.0"
    assert result["machine"]["canary"] is True
    assert result["machine"]["modules"] == ["A/1", "B"]
    assert result["network"]["internet"] == {"127.0.0.1:9": False}
    assert result["network"]["interfaces"]["lo"]["address"] == "127.0.0.1"
    imports = {item["name"]: item.get("error", "") for item in result["venvs"]["driver"]["imports"]}
    assert imports["json"] == ""
    assert "ModuleNotFoundError" in imports["no_such_package"]
    subject = replace(subject_of({}, []), measured={name: result}, size=JobSize(1, 2), site=OFFLINE)
    verdicts = {
        check: judged(subject, check) for check in ("D41", "D46", "D47", "D49", "D50", "D51", "D59", "D60")
    }
    outcomes = {
        check: verdict.outcome if verdict is not None else None for check, verdict in verdicts.items()
    }
    assert outcomes == OUTCOMES


OUTCOMES = {"D41": "fail", "D46": "pass", "D47": "pass", "D49": "fail", "D50": "pass", "D51": "pass"}
OUTCOMES |= {"D59": "pass", "D60": "pass"}
OFFLINE = Site("test", "Test", (), (), (), offline=True)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("variables", "target"),
    [
        ({}, "huggingface.co:443"),
        ({"HF_ENDPOINT": "https://mirror.example.org"}, "mirror.example.org:443"),
        ({"HF_ENDPOINT": "http://127.0.0.1:8080/x"}, "127.0.0.1:8080"),
        ({"HF_ENDPOINT": "http://h:99999999"}, "h:80"),
        ({"HF_ENDPOINT": "nonsense"}, "huggingface.co:443"),
    ],
)
def test_internet_is_measured_where_models_would_come_from(variables: dict[str, str], target: str) -> None:
    assert internet_target(variables) == target
