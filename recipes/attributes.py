"""Owner, mode, access lists and extended attributes of a file that is replaced by a new one."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ACCESS_LISTS = {
    "system.posix_acl_access": "access list (ACL)",
    "system.nfs4_acl": "access list (NFSv4 ACL)",
    "system.richacl": "access list (ACL)",
}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes that a file keeps when it is saved.

    Security labels and a file system's own attributes (`security.*`, `lustre.*`) come with the directory.
    """

    uid: int
    gid: int
    mode: int
    extended: Mapping[str, bytes]
    """Access lists and the user's attributes (`user.*`) by name."""

    @classmethod
    def of(cls, file: Path | int) -> Attributes:
        """Read the attributes of a file, or of an open one; raises OSError."""
        status = os.stat(file)
        return cls(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), _extended(file))

    def give_owner_and_mode(self, descriptor: int) -> None:
        """Give an open file the owner, as far as that is permitted, and the mode."""
        now = os.fstat(descriptor)
        if (now.st_uid, now.st_gid) != (self.uid, self.gid):
            # Only root may give files away; the group often works when the owner does not.
            for owner in ((self.uid, self.gid), (-1, self.gid)):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
                    break
        os.fchmod(descriptor, self.mode)

    def give_extended(self, descriptor: int) -> None:
        """Give an open file the access lists and attributes, as far as that is permitted.

        After the mode: the mask of an access list stands where the group's rights do.
        """
        present = _extended(descriptor)
        for name in present.keys() - self.extended.keys():  # a directory's default access list
            with contextlib.suppress(OSError):
                os.removexattr(descriptor, name)
        for name, value in self.extended.items():
            if present.get(name) != value:
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, value)

    def changes_to(self, new: Attributes) -> tuple[str, ...]:
        """Describe how a file with other attributes would differ from one with these."""
        changes = []
        if new.uid != self.uid:
            changes.append(f"owner {_user(self.uid)} -> {_user(new.uid)}")
        if new.gid != self.gid:
            changes.append(f"group {_group(self.gid)} -> {_group(new.gid)}")
        if new.mode != self.mode:
            changes.append(f"mode {self.mode:04o} -> {new.mode:04o}")
        for name in sorted({*self.extended, *new.extended}):
            if self.extended.get(name) != new.extended.get(name):
                verb = "lost" if name not in new.extended else "changed" if name in self.extended else "added"
                changes.append(f"{_ACCESS_LISTS.get(name, f'attribute {name}')} {verb}")
        return tuple(changes)


def _extended(file: Path | int) -> dict[str, bytes]:
    """Return a file's access lists and user attributes; none where the file system has none."""
    try:
        names = os.listxattr(file)
    except OSError:
        return {}
    values: dict[str, bytes] = {}
    for name in names:
        if name in _ACCESS_LISTS or name.startswith("user."):
            with contextlib.suppress(OSError):  # removed meanwhile
                values[name] = os.getxattr(file, name)
    return values


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
