"""What runs on the cluster's nodes: shell and Python that work without this program.

`ray_bare.sub` starts Ray and a driver; `rehearsal.py`, with `rehearsal_lib/` beside it, is a driver with
stand-in models.
"""

from __future__ import annotations

from pathlib import Path

from launcher.errors import InputError, TransportError

NAMES = ("ray_bare.sub", "rehearsal.py")
"""What can be exported: both work by themselves."""
JOB_NAMES = ("chain.sh",)
"""What runs beside the launcher in jobs that this program submits."""
_HOME = Path(__file__).parent


def script_path(name: str) -> Path:
    """Return where the installed script lies; raises InputError for a name that is none of theirs."""
    if name not in (*NAMES, *JOB_NAMES):
        known = ", ".join((*NAMES, *JOB_NAMES))
        raise InputError(f"there is no script '{name}'", fix=f"The scripts are {known}.")
    return _HOME / name


def script_files() -> dict[str, bytes]:
    """Return the scripts with all they need beside them, by their path in one directory."""
    paths = [*(_HOME / name for name in NAMES), *sorted((_HOME / "rehearsal_lib").glob("*.py"))]
    return {path.relative_to(_HOME).as_posix(): path.read_bytes() for path in paths}


def export(directory: Path) -> list[Path]:
    """Write the scripts into a directory and return their paths, ray_bare.sub first.

    Raises InputError, before anything is written, when a file there differs from ours, and TransportError
    when the directory cannot be written.
    """
    files = {directory / name: content for name, content in script_files().items()}
    try:
        for path, content in files.items():
            if path.exists() and path.read_bytes() != content:
                raise InputError(
                    "a file of that name is there already, and it is not this version's",
                    where=path,
                    fix="Move it away or name another directory.",
                )
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if path.suffix == ".sub" else 0o644)
    except OSError as error:
        raise TransportError(
            f"the scripts cannot be written: {error.strerror or error}",
            where=error.filename or directory,
            fix="Name a directory you can write.",
        ) from error
    return list(files)
