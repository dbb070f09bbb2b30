"""Users and groups that an access list (ACL) lets write, beyond what the mode of a file tells.

With a list the group's part of the mode is the list's mask: `rwxrwx---` of a group without other members may
be a directory that a named colleague can write. A list of NFSv4 does not show in the mode at all.
"""

from __future__ import annotations

import grp
import os
import pwd
import struct
from collections.abc import Iterator
from shlex import quote

from launcher.text import clean

_LIST = "system.posix_acl_access"
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP, _MASK = 0x02, 0x08, 0x10
"""Tags of entries of named users and groups, and of the mask (linux/posix_acl.h)."""
_WRITE = 2
_NFS_LIST = "system.nfs4_acl"
_NFS_WRITE = 0x2 | 0x4 | 0x40 | 0x40000 | 0x80000
"""Write, append, delete a child, change the list, change the owner (RFC 8881, 6.2.1.3.1)."""
_NFS_INHERIT_ONLY, _NFS_IS_GROUP = 0x08, 0x40
_IN_THE_MODE = ("OWNER@", "GROUP@", "EVERYONE@")


def listed_writers(path: str) -> str:
    """Return who is named in a file's access list and can write: `user NAME` or `group NAME`; empty: nobody.

    Lists of a file system's own (GPFS: `mmgetacl`) are not looked at.
    """
    try:
        return _nfs_writers(os.getxattr(path, _NFS_LIST))
    except struct.error:
        return "others, by a list of an unknown form"
    except OSError:
        pass
    try:
        data = os.getxattr(path, _LIST)
    except OSError:
        return ""
    try:
        entries = list(_ENTRY.iter_unpack(data[_HEADER.size :]))
    except struct.error:
        return "others, by a list of an unknown form"
    mask = next((rights for tag, rights, _ in entries if tag == _MASK), 7)
    for tag, rights, number in entries:
        if tag in (_USER, _GROUP) and rights & mask & _WRITE and not (tag == _USER and number == os.getuid()):
            return f"user {_user(number)}" if tag == _USER else f"group {_group(number)}"
    return ""


def _nfs_writers(data: bytes) -> str:
    """Return who is named in a list of NFSv4 and can write; raises struct.error."""
    names = (str(os.getuid()), _user(os.getuid()))
    for kind, flags, rights, name in _nfs_entries(data):
        is_group = bool(flags & _NFS_IS_GROUP)
        if kind or not rights & _NFS_WRITE or flags & _NFS_INHERIT_ONLY or name in _IN_THE_MODE:
            continue
        if is_group or name.partition("@")[0] not in names:
            return f"{'group' if is_group else 'user'} {clean(name)}"
    return ""


def _nfs_entries(data: bytes) -> Iterator[tuple[int, int, int, str]]:
    """Yield kind (0: allows), flags, rights and name of each entry (RFC 8881, 6.2.1; XDR)."""
    (count,), at = struct.unpack_from(">I", data), 4
    for _ in range(count):
        kind, flags, rights, length = struct.unpack_from(">4I", data, at)
        (name,) = struct.unpack_from(f"{length}s", data, at + 16)
        yield kind, flags, rights, name.decode("utf-8", "replace")
        at += 16 + (length + 3 & ~3)


def far_writers_script(path: str) -> str:
    """Return the lines of `sh` that print the same of another machine as `user:NAME` or `group:NAME`.

    Without the programs that print lists `ls` tells that there is one, and the mode whether its mask lets
    anybody write.
    """
    name = quote(path)
    return (
        f"me=$(id -un)\n"
        f"{{ nfs4_getfacl {name} 2>/dev/null | grep -E '^A:[^:i]*:[^:]+:[a-zA-Z]*[waDCo]'"
        " | grep -v -E '^A:[^:]*:(OWNER|GROUP|EVERYONE)@:'"
        " | sed -E 's/^A:[^:]*g[^:]*:([^:]*):.*/group:\\1/; s/^A:[^:]*:([^:]*):.*/user:\\1/'\n"
        f"if command -v getfacl >/dev/null 2>&1; then getfacl -c -p -- {name} 2>/dev/null"
        # Whom a list lets write, as `user:NAME:rwx`, or with what the mask leaves behind it.
        " | grep -E '^(user|group):[^:]+:.w.($|.*effective:.w)'\n"
        f'else case "$(ls -L -l -d -- {name} 2>/dev/null)" in'
        " ?????w????+*) echo 'others:by an access list' ;;"
        ' esac; fi; } | grep -v -E "^user:($me|$(id -u))(@|:|$)" | head -n 1'
    )


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
