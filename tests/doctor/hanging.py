"""A file system that never answers, as one whose server is gone: FUSE whose daemon reads and says nothing."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_INIT_REPLY = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 0, 0, 0, 0)
"""Version 7.31 of the protocol (linux/fuse.h: struct fuse_init_out)."""
_HEADER = "<IiQ"
_MNT_FORCE, _MNT_DETACH = 1, 2
_LARGEST = 1 << 17


@contextmanager
def hanging_file_system(path: Path) -> Iterator[None]:
    """Mount it; whoever waits in it is let go at the end. Skips where nothing can be mounted."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        channel = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"/dev/fuse: {error.strerror}")
    try:
        options = f"fd={channel},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"hanging", os.fsencode(path), b"fuse", 0, options):
            pytest.skip(f"mount: {os.strerror(ctypes.get_errno())}")
        reader = threading.Thread(target=_read_on, args=(channel,))
        try:
            request = os.read(channel, _LARGEST)
            (unique,) = struct.unpack_from("<Q", request, 8)
            length = struct.calcsize(_HEADER) + len(_INIT_REPLY)
            os.write(channel, struct.pack(_HEADER, length, 0, unique) + _INIT_REPLY)
            # Whoever waits for what was read cannot be ended by any signal.
            reader.start()
            yield
        finally:
            libc.umount2(os.fsencode(path), _MNT_FORCE | _MNT_DETACH)  # which ends reader and calls
            if reader.ident is not None:
                reader.join()
    finally:
        os.close(channel)


def _read_on(channel: int) -> None:
    with suppress(OSError):
        while os.read(channel, _LARGEST):
            pass
