"""A second factor: a real PAM that asks for a code after the key, and the codes (RFC 6238)."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from pathlib import Path

import pytest

SECRET = "3132333435363738393031323334353637383930"
"""Seed of the codes, in hex (RFC 6238, appendix B)."""
OPTIONS = (
    "UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no",
    "AuthenticationMethods publickey,keyboard-interactive",
)  # fmt: skip
_MODULES = Path("/lib/x86_64-linux-gnu/security")


def code(moment: float | None = None) -> str:
    """Return the code of a moment, by default of now."""
    counter = int((time.time() if moment is None else moment) // 30).to_bytes(8, "big")
    digest = hmac.new(bytes.fromhex(SECRET), counter, hashlib.sha1).digest()
    begin = digest[-1] & 0x0F
    return f"{(int.from_bytes(digest[begin : begin + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}"


def wrapper(directory: Path, user: str, *, message: str = "") -> list[str]:
    """Return what is put before a server's command so that PAM asks a user for codes.

    `message`: what PAM tells after the code, in a round without a question.
    """
    if os.geteuid() != 0 or not (_MODULES / "pam_oath.so").exists():
        pytest.skip("a PAM of its own is made by root only (Debian: libpam-oath)")
    users, pam = directory / "users.oath", directory / "pam"
    users.write_text(f"HOTP/T30/6 {user} - {SECRET}\n")
    users.chmod(0o600)
    lines = [
        f"auth required pam_oath.so usersfile={users} window=3 digits=6",
        "account required pam_permit.so",
        "session required pam_permit.so",
    ]
    if message:
        (directory / "message").write_text(f"{message}\n")
        lines.insert(1, f"auth optional pam_echo.so file={directory / 'message'}")
    pam.write_text("\n".join(lines) + "\n")
    return ["unshare", "-m", "sh", "-c", f'mount --bind {pam} /etc/pam.d/sshd && exec "$@"', "sh"]
