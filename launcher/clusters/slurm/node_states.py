"""States of nodes as sinfo writes them, in full and in short: `drained*`, `down~`, `idle#`, `mix-`."""

from __future__ import annotations

import re
from enum import Enum

_SUFFIXES = "*~#!%$@^-+"
"""Not responding; powered off, powering up, about to be powered off, powering down; in a maintenance; about
to be rebooted, rebooting; planned for a job; more of its jobs are ending (man sinfo, NODE STATE CODES)."""
_DOWN = re.compile(
    r"down|drain(?:ed|ing)?|drng|fail(?:ed|ing|g)?|err(?:or)?|unk(?:nown)?|inval(?:id(?:_reg)?)?"
    r"|no(?:t)?_respond(?:ing)?"
)
_RESERVED = re.compile(r"maint(?:enance)?|futr|future|perfctrs|npc")


class NodeUse(Enum):
    """Whether a node can be had."""

    USABLE = "usable"
    """Now, or when its jobs have ended, or when Slurm has powered it up."""
    DOWN = "down"
    """Down, drained or draining, failing, or not responding."""
    RESERVED = "reserved"
    """In a maintenance, or not in service yet."""


def node_use(state: str) -> NodeUse | None:
    """Return whether nodes of this state can be had; None where sinfo does not tell."""
    bare = state.strip().lower().rstrip(_SUFFIXES)
    suffix = state.strip()[len(bare) :]
    if bare in ("", "n/a", "(null)"):
        return None
    words = re.split(r"[+,]", bare)
    if any(_DOWN.fullmatch(word) for word in words) or "*" in suffix:
        return NodeUse.DOWN
    if any(_RESERVED.fullmatch(word) for word in words) or "$" in suffix:
        return NodeUse.RESERVED
    return NodeUse.USABLE


def is_dead(state: str) -> bool:
    """Return True for a node that went down or does not respond; not for one that was drained."""
    bare = state.strip().lower().rstrip(_SUFFIXES)
    words = re.split(r"[+,]", bare)
    return "*" in state or any(
        word in ("down", "fail", "failing", "error", "not_responding") for word in words
    )
