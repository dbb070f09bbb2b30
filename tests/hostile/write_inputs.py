"""Generators of hostile writes: files with names, owners, rights and neighbours that saving must not lose."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.hostile.attempts import Attempt, Outcome

GROUP = "writes"
TEXT = b"# head\na: 1  # one\nb: {c: 2}\nlist: [1, 2]\n"
USER, OTHER = 65534, 12345
"""Numbers of the user that an edit is tried as, and of somebody else."""


def access_list(entries: dict[int, int], group: int) -> bytes:
    """Return a POSIX access list as its attribute holds it: rights by user id, and those of the group."""
    undefined = 0xFFFFFFFF
    rows = [(0x01, 6, undefined), *((0x02, rights, uid) for uid, rights in sorted(entries.items()))]
    rows += [(0x04, group, undefined), (0x10, 7, undefined), (0x20, 4, undefined)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


@dataclass(frozen=True)
class WriteAttempt(Attempt):
    """Edit of a file with attributes."""

    name: str = "r.yaml"
    owner: tuple[int, int] = (0, 0)
    mode: int = 0o644
    directory_mode: int = 0o755
    attributes: tuple[tuple[str, bytes], ...] = ()
    link: str = ""
    """Kind of link by which the file is named: "", symbolic or hard."""
    leftover: bytes | None = None
    """Content of a lock file that lies there."""
    expected: bytes = b""
    """Text after an edit that succeeds."""

    def prepare(self, directory: Path) -> None:
        """Make the file with its attributes."""
        super().prepare(directory)
        file = directory / self.name
        for name, value in self.attributes:
            os.setxattr(file, name, value)
        if self.link == "symbolic":
            (directory / "link.yaml").symlink_to(self.name)
        elif self.link == "hard":
            (directory / "link.yaml").hardlink_to(file)
        if self.leftover is not None:
            (directory / f".{self.name}.distill-tui.lock").write_bytes(self.leftover)
        os.chown(file, *self.owner)
        if not any(name.startswith("system.") for name, _ in self.attributes):
            file.chmod(self.mode)
        directory.chmod(self.directory_mode)


def write_attempts(count: int, seed: int) -> Iterator[WriteAttempt]:
    """Yield edits of files."""
    random = Random(seed)
    for _ in range(count):
        yield _write(random)


def _write(random: Random) -> WriteAttempt:
    name = random.choice(
        (
            "r.yaml",
            "x" * 250 + ".yaml",
            "é" * 120 + ".yaml",
            "中" * 80 + "a.yaml",
            "a b'\".yaml",
            "-r.yaml",
            ".yaml",
        )
    )
    name = random.choice((name, "n" * random.randint(190, 255)))
    owner = random.choice(((0, 0), (0, OTHER), (OTHER, OTHER), (USER, USER), (USER, OTHER)))
    rights = random.choice((((), ()), (("user.note", b"kept"),), (("user.\xe9", b"\x00\xff" * 50),)))
    attributes = tuple(item for item in rights if item)
    if random.random() < 0.3:
        entries = {random.choice((OTHER, USER, 4711)): random.choice((4, 6))}
        attributes += (("system.posix_acl_access", access_list(entries, random.choice((0, 4, 6)))),)
    argv, expected = random.choice(
        (
            (("set", "a", "5"), TEXT.replace(b"a: 1", b"a: 5")),
            (("set", "b.c", "-5e-6"), TEXT.replace(b"c: 2", b"c: -5e-6")),
            (("unset", "list"), TEXT.replace(b"list: [1, 2]\n", b"")),
            (("insert", "list", "0", "7"), TEXT.replace(b"[1, 2]", b"[7, 1, 2]")),
            (("comment", "a", "uno"), TEXT.replace(b"# one", b"# uno")),
        )
    )
    link = random.choice(("", "", "symbolic", "hard"))
    leftover = random.choice((None, None, b"", b"{", b"\xff" * 100, b'{"user": "x", "host": 1}', b"[" * 5000))
    file = "link.yaml" if link else name
    words = (
        "recipe",
        argv[0],
        *(("--accept-changes",) if random.random() < 0.2 else ()),
        "--",
        file,
        *argv[1:],
    )
    return WriteAttempt(
        GROUP,
        f"{argv[0]} of {'a link to ' if link else ''}a file of {owner}",
        words,
        {name: TEXT},
        uid=random.choice((0, USER)),
        name=name,
        owner=owner,
        mode=random.choice((0o644, 0o600, 0o666, 0o646, 0o640, 0o444, 0o755)),
        directory_mode=random.choice((0o777, 0o777, 0o1777, 0o755, 0o2777)),
        attributes=attributes,
        link=link,
        leftover=leftover if len(name.encode()) <= 200 else None,
        expected=expected,
    )


def look_at_write(attempt: Attempt, folder: Path, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with the file after an edit: its text, its attributes, what lies beside it."""
    assert isinstance(attempt, WriteAttempt)
    if not folder.is_dir():
        return
    file = folder / ("link.yaml" if attempt.link == "hard" else attempt.name)
    data, status = file.read_bytes(), file.stat()
    saved = outcome.code == 0
    if data != (attempt.expected if saved else TEXT):
        yield f"the text is {data!r}"
    names = {path.name for path in folder.iterdir()} - {attempt.name, "link.yaml"}
    locks = {name for name in names if name.endswith(".distill-tui.lock") and attempt.leftover is not None}
    if names - locks:
        yield f"left behind: {sorted(names)}"
    if saved and "--accept-changes" in attempt.argv:
        return
    if (status.st_uid, status.st_gid) != attempt.owner:
        yield f"the owner is {(status.st_uid, status.st_gid)}, was {attempt.owner}"
    if not attempt.attributes and stat.S_IMODE(status.st_mode) != attempt.mode:
        yield f"the mode is {status.st_mode:o}, was {attempt.mode:o}"
    for name, value in attempt.attributes:
        if name not in os.listxattr(file) or os.getxattr(file, name) != value:
            yield f"{name} is lost"
