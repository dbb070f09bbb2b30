"""Users and groups that an access list (ACL) lets write, beyond what the mode of a file tells.

With a list the group's part of the mode is the list's mask: `rwxrwx---` of a group without other members may
be a directory that a named colleague can write.
"""

from __future__ import annotations

import grp
import os
import pwd
import struct

_LIST = "system.posix_acl_access"
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP, _MASK = 0x02, 0x08, 0x10
"""Tags of entries of named users and groups, and of the mask (linux/posix_acl.h)."""
_WRITE = 2


def listed_writers(path: str) -> str:
    """Return who is named in a file's access list and can write: `user NAME` or `group NAME`; empty: nobody.

    Of lists in another form (NFSv4) nothing is told: the mode is what the server makes of them.
    """
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
