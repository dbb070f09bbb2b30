"""Scripts for the cluster's nodes: shell and Python that work without this program and import nothing of it.

`ray_bare.sub` starts Ray and a driver; `rehearsal.py`, with `rehearsal_lib/` beside it, is a driver with
stand-in models; `chain.sh` runs in jobs of a chain; `doctor.sh` with `doctor_node.py` and `doctor_probe.py`
measures nodes. This module itself only locates and copies them: names of
scripts in, paths and bytes out.
"""

from __future__ import annotations

from pathlib import Path

from launcher.errors import InputError, TransportError

NAMES = ("ray_bare.sub", "rehearsal.py")
"""Scripts that `launcher export` writes: both work on their own."""
JOB_NAMES = ("chain.sh", "doctor.sh", "doctor_node.py", "doctor_probe.py")
"""Scripts that run beside the launcher in jobs that this program submits, or instead of it."""
_HOME = Path(__file__).parent


def script_path(name: str) -> Path:
    """Return the path of an installed script.

    Raises:
        InputError: there is no script of this name.
    """
    if name not in (*NAMES, *JOB_NAMES):
        names = ", ".join((*NAMES, *JOB_NAMES))
        raise InputError(f"no script named '{name}'", fix=f"The scripts are {names}.")
    return _HOME / name


def script_files() -> dict[str, bytes]:
    """Return the contents of the exported scripts and their libraries, by relative path."""
    paths = [*(_HOME / name for name in NAMES), *sorted((_HOME / "rehearsal_lib").glob("*.py"))]
    return {path.relative_to(_HOME).as_posix(): path.read_bytes() for path in paths}


def export(directory: Path) -> list[Path]:
    """Write the scripts into a directory and return their paths, ray_bare.sub first.

    Raises:
        InputError: a file there differs from this version's; nothing is written.
        TransportError: the directory cannot be written.
    """
    files = {directory / name: content for name, content in script_files().items()}
    try:
        for path, content in files.items():
            if path.exists() and path.read_bytes() != content:
                raise InputError(
                    "this file exists and differs from this version's",
                    where=path,
                    fix="Move it away or give another directory.",
                )
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if path.suffix == ".sub" else 0o644)
    except OSError as error:
        raise TransportError(
            f"cannot write the scripts: {error.strerror or error}",
            where=error.filename or directory,
            fix="Give a directory that you can write to.",
        ) from error
    return list(files)
