"""`completion`: shell completion scripts, generated from the command table by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import shtab

from tui.cli.parser import PROGRAM, add_arguments
from tui.cli.spec import HOST, Subcommand
from tui.cli.subcommands import COMMANDS, GROUPS
from tui.headless.output import write_document

_FILES = {"FILE", "RECIPE", "A", "B", "PARENT", "ROLE=FILE", "RUN|JOBID|DIR|FILE"}
_DIRECTORIES = {"DIR", "RUN|DIR"}
_RUNS = {"RUN"}
# Shells call this for RUN: a run is a directory below the runs root (launcher/paths.py).
_BASH_RUNS = """\
_distill_tui_runs() {
  local root="$DISTILL_TUI_RUNS" settings="${XDG_CONFIG_HOME:-$HOME/.config}/distill-tui/settings.toml"
  [ -n "$root" ] || root="$(command sed -n 's/^ *runs *= *"\\([^"]*\\)".*/\\1/p' "$settings" 2>/dev/null)"
  [ -n "$root" ] || root="${XDG_STATE_HOME:-$HOME/.local/state}/distill-tui/runs"
  compgen -W "$(command ls -- "$root" 2>/dev/null)" -- "$1"
}
"""
# Names of hosts without patterns; Include is followed once, as ssh does below ~/.ssh.
_HOSTS = r"""
_distill_tui_host_names() {
  (
    cd -- "$HOME/.ssh" 2>/dev/null || exit
    for pattern in $(command sed -n 's/^[[:space:]]*[Ii]nclude[[:space:]=]*//p' config 2>/dev/null); do
      case "$pattern" in "~/"*) pattern="$HOME/${pattern#"~/"}" ;; esac
      command sh -c 'cat -- $1 2>/dev/null' sh "$pattern"
    done
    command cat config 2>/dev/null
  ) | command sed -n 's/^[[:space:]]*[Hh]ost[[:space:]=]*//p' | command tr -s '[:space:]' '[\n*]' |
    command grep -v '[]*?![]'
}
"""
_BASH_HOSTS = """
_distill_tui_hosts() { compgen -W "$(_distill_tui_host_names)" -- "$1"; }
"""
_ZSH_HOSTS = """\
_distill_tui_hosts() { local -a names; names=(${(f)"$(_distill_tui_host_names)"}); compadd -a names; }
"""


def run(options: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    parser = full_parser()
    for action in _actions(parser):
        _complete(action)
    preambles = {"bash": _BASH_RUNS + _HOSTS + _BASH_HOSTS, "zsh": _HOSTS + _ZSH_HOSTS}
    preamble = preambles.get(options.shell, "")
    write_document(shtab.complete(parser, options.shell, preamble=preamble) + "\n")
    return 0


def full_parser() -> argparse.ArgumentParser:
    """Return one parser with all commands as subparsers, as shtab wants it."""
    top = argparse.ArgumentParser(prog=PROGRAM)
    top.add_argument("--version", action="store_true", help="print the version")
    top.add_argument("--no-mouse", action="store_true", help="do not capture the mouse")
    top.add_argument(HOST.name, metavar=HOST.metavar, help=HOST.help)
    commands = top.add_subparsers(metavar="COMMAND")
    groups = {
        group.name: commands.add_parser(group.name, help=group.help).add_subparsers(metavar="COMMAND")
        for group in GROUPS
    }
    for command in COMMANDS:
        _add_command(groups.get(command.group, commands), command)
    return top


def _add_command(commands: argparse._SubParsersAction[Any], command: Subcommand) -> None:
    parser = commands.add_parser(command.name.rpartition(" ")[2], help=command.help)
    add_arguments(parser, command)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _actions(child)
        else:
            yield action


def _complete(action: Any) -> None:  # noqa: ANN401 - shtab reads an attribute that argparse does not declare
    """Mark what an argument completes to, by its metavar."""
    if HOST.name in action.option_strings:
        action.complete = {"bash": "_distill_tui_hosts", "zsh": "_distill_tui_hosts"}
    elif action.metavar in _FILES:
        action.complete = shtab.FILE
    elif action.metavar in _DIRECTORIES:
        action.complete = shtab.DIRECTORY
    elif action.metavar in _RUNS:
        action.complete = {"bash": "_distill_tui_runs"}
