"""Access lists on a host: whom they let write is told, with the programs that print them and without."""

from __future__ import annotations

import getpass
import os
import shutil
import struct
from pathlib import Path

import pytest

from launcher.transports.access_lists import listed_writers
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.transport import SshTransport
from tests.hostile.write_inputs import access_list
from tests.ssh.server import SFTP, Server, running


def writers(transport: SshTransport | LocalTransport, path: Path) -> str:
    owner = transport.ownership(str(path))
    assert owner is not None
    return owner.writable_by


@pytest.mark.long
def test_a_host_without_programs_for_lists(server: Server, tmp_path: Path) -> None:
    if shutil.which("getfacl"):
        pytest.skip("getfacl is installed")
    directory = tmp_path / "a 'b'"
    directory.mkdir()
    transport = SshTransport(server.host())
    for rights, mask, text in ((4, 0o755, ""), (6, 0o755, "others by an access list")):
        try:
            os.setxattr(directory, "system.posix_acl_access", access_list({4711: rights}, 0))
        except OSError:
            pytest.skip("no access lists in this file system")
        if rights == 4:  # a mask that lets nobody write
            directory.chmod(mask)
        assert writers(transport, directory) == text
        assert bool(writers(LocalTransport(), directory)) == bool(text)
    transport.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "text", "expected"),
    [
        ("getfacl", "user::rw-\nuser:bob:rw-\ngroup::r--\nmask::rw-\nother::r--", "user bob"),
        ("getfacl", "user::rw-\nuser:bob:rw-\t#effective:r--\ngroup:it:rwx\t#effective:-w-", "group it"),
        ("getfacl", "user::rw-\nuser:ME:rw-\nuser:bob:r-x\ngroup::rwx\nmask::rwx", ""),
        ("getfacl", "user::rw-\nuser:ME:rw-\nuser:x-ME:rwx\nuser:MEx:rwx", "user x-ME"),
        ("nfs4_getfacl", "# file: x\nA::OWNER@:rwaDxtTnNcCoy\nA:g:GROUP@:rwa\nA::bob@site.org:rxtncy", ""),
        ("nfs4_getfacl", "A::OWNER@:rwa\nA::bob@site.org:rwaxtncy\nA::EVERYONE@:rxtncy", "user bob@site.org"),
        ("nfs4_getfacl", "A:fdi:bob@site.org:rwaxtncy\nA:fdg:staff@site.org:rwx", "group staff@site.org"),
        ("nfs4_getfacl", "D::bob@site.org:rwa\nA::ME@site.org:rwa", ""),
    ],
)
def test_what_programs_print(
    tmp_path_factory: pytest.TempPathFactory, program: str, text: str, expected: str
) -> None:
    place = tmp_path_factory.mktemp("lists")
    (place / "bin").mkdir()
    me = getpass.getuser()
    (place / "text").write_text(text.replace("ME", me) + "\n")
    (place / "bin" / program).write_text(f"#!/bin/sh\ncat '{place / 'text'}'\n")
    (place / "bin" / program).chmod(0o755)
    with running(place, SFTP, f"SetEnv PATH={place / 'bin'}:/usr/bin:/bin") as server:
        transport = SshTransport(server.host())
        assert writers(transport, place / "text") == expected.replace("ME", me)
        transport.close()


def _nfs(*entries: tuple[int, int, int, str]) -> bytes:
    parts = [struct.pack(">I", len(entries))]
    for kind, flags, rights, name in entries:
        parts += [
            struct.pack(">4I", kind, flags, rights, len(name)),
            name.encode().ljust(len(name) + 3 & ~3, b"\0"),
        ]
    return b"".join(parts)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (_nfs((0, 0, 0x1601BF, "OWNER@"), (0, 0x40, 0x6, "GROUP@"), (0, 0, 0x1200A9, "EVERYONE@")), ""),
        (_nfs((0, 0, 0x1601BF, "OWNER@"), (0, 0, 0x2, "bob@site.org")), "user bob@site.org"),
        (_nfs((0, 0x40, 0x40000, "staff@site.org")), "group staff@site.org"),
        (_nfs((0, 0x0B, 0x6, "bob@site.org"), (1, 0, 0x6, "eve@site.org"), (0, 0, 0x1, "kim@site.org")), ""),
        (_nfs((0, 0, 0x6, f"{os.getuid()}")), ""),
        (_nfs((0, 0, 0x2, "b\x1b[2Job"))[:-3], "others, by a list of an unknown form"),
        (b"\0\0", "others, by a list of an unknown form"),
        (struct.pack(">I", 2**32 - 1), "others, by a list of an unknown form"),
    ],
)
def test_lists_of_nfs(monkeypatch: pytest.MonkeyPatch, data: bytes, expected: str) -> None:
    def attribute(path: str, name: str) -> bytes:
        if name != "system.nfs4_acl":
            raise OSError(95, "Operation not supported")
        return data

    monkeypatch.setattr(os, "getxattr", attribute)
    assert listed_writers("x") == expected
