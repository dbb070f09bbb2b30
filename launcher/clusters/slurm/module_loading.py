"""Lines of a job's script that load modules, and give back to the job what that changed. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from launcher.environment import kind_of
from launcher.plan import PASSED_ON

_NAMES_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")


def loading_lines(modules: Sequence[str], shell: Mapping[str, str], job: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines.

    `module` is a function that a login shell gets from /etc/profile. The user's own files are read only where
    that has none: they may start another shell, activate an environment, or set a variable that the job has
    from elsewhere. Whatever was read, the job's variables are set afterwards, and what would lead its Python
    away from its environment (a module's PYTHONPATH) is taken out. The shell's PATH comes last: Slurm's own
    commands may be on it alone.

    Args:
        modules: Names of the modules.
        shell: This program's environment: where it looks for modules (`module use`).
        job: The variables of the job.
    """
    yield "# shellcheck disable=SC1090,SC1091"
    yield "shell_path=$PATH"
    yield "[[ ! -r /etc/profile ]] || . /etc/profile"
    yield "for file in ~/.bash_profile ~/.bash_login ~/.profile ~/.bashrc; do"
    yield '  declare -F module >/dev/null || [[ ! -r $file ]] || . "$file"'
    yield "done"
    yield "module --force purge"
    if paths := [path for path in shell.get("MODULEPATH", "").split(":") if path.startswith("/")]:
        yield f"module use --append {shlex.join(paths)}"
    yield f"module load {shlex.join(modules)} || exit 3"
    yield "export PATH=$PATH:$shell_path"
    if unset := [name for name in _NAMES_OF_PYTHON if name not in job]:
        yield f"unset {' '.join(unset)}"
    for name, value in sorted(job.items()):
        if name not in PASSED_ON and kind_of(name) != "module":
            yield f"export {name}={shlex.quote(value)}"
