"""Logging in: agent, keys, then what the server asks (a code of a second factor, a password)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import TransportError
from launcher.text import clean, clean_lines

if TYPE_CHECKING:
    import paramiko

    from launcher.transports.ssh.ssh_config import SshHost

_ROUNDS = 3
"""Times that a code may be typed in one connection; sshd ends it after MaxAuthTries (6), keys included."""


@dataclass(frozen=True, slots=True)
class LoginPrompt:
    """A question on the way in."""

    host: str
    text: str
    """As the server words it, cleaned."""
    instructions: str = ""
    echo: bool = False
    """Whether the answer may be shown."""


Prompter = Callable[[LoginPrompt], str]
"""Answers a question; the answer is used once and never kept. Raises TransportError to give up."""


class LoginError(TransportError):
    """A server did not let the user in."""


def no_answer(prompt: LoginPrompt) -> str:
    """Refuse to answer, where nobody can be asked.

    Raises:
        LoginError: always.
    """
    raise LoginError(
        f"{prompt.host} asks: {prompt.text}",
        fix="Run this at a terminal, where the question can be answered.",
    )


def log_in(transport: paramiko.Transport, host: SshHost, prompter: Prompter) -> None:
    """Log in to a server that the connection has been made to.

    Raises:
        LoginError: nothing that the user has is accepted, or the user gave up.
        paramiko.SSHException: the connection broke.
        OSError: likewise.
    """
    import paramiko

    tried: list[str] = []
    methods = _first_methods(transport, host)
    if methods is None:
        return
    if "publickey" in methods:
        for name, key in _keys(host, prompter):
            tried.append(name)
            try:
                methods = transport.auth_publickey(host.user, key)
            except paramiko.BadAuthenticationType as error:
                methods = error.allowed_types
                break
            except paramiko.AuthenticationException:
                if not transport.is_active():
                    raise _refused(host, tried, ["publickey"], "too many keys were tried") from None
                continue
            if transport.is_authenticated():
                return
            break  # accepted in part: what is left is asked below
    if "keyboard-interactive" in methods:
        _answer(transport, host, prompter)
    elif "password" in methods:
        _password(transport, host, prompter)
    if not transport.is_authenticated():
        raise _refused(host, tried, methods)


def _first_methods(transport: paramiko.Transport, host: SshHost) -> list[str] | None:
    """Return how the server lets users in; None if it asked for nothing."""
    import paramiko

    try:
        transport.auth_none(host.user)
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    return None if transport.is_authenticated() else []


def _keys(host: SshHost, prompter: Prompter) -> Iterator[tuple[str, paramiko.PKey]]:
    """Yield the keys to try: of the agent, then of the files."""
    import paramiko

    named = [blob for name in host.identity_files if (blob := _public(Path(f"{name}.pub"))) is not None]
    agent = paramiko.Agent()
    try:
        for held in agent.get_keys():
            if not host.identities_only or held.asbytes() in named:
                yield f"the agent's {clean(held.comment or held.get_name())}", held
    finally:
        agent.close()
    for name in host.identity_files:
        path = Path(name)
        if path.is_file() and (key := _load(path, host, prompter)) is not None:
            certificates = [Path(f"{name}-cert.pub"), *map(Path, host.certificate_files)]
            for certificate in certificates:
                if certificate.is_file():
                    key.load_certificate(str(certificate))
                    break
            yield str(path), key


def _public(path: Path) -> bytes | None:
    """Return the key of a .pub file; None if it cannot be read."""
    try:
        return base64.b64decode(path.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _load(path: Path, host: SshHost, prompter: Prompter) -> paramiko.PKey | None:
    """Return a file's key; its passphrase is asked for where it has one."""
    passphrase: str | None = None
    text = f"Passphrase for key {path}: "
    for _ in range(_ROUNDS):
        key, is_encrypted = _read_key(path, passphrase)
        if key is not None or not is_encrypted:
            return key
        passphrase = prompter(LoginPrompt(host.alias, text))
        text = f"Wrong passphrase; passphrase for key {path}: "
    return _read_key(path, passphrase)[0]


def _read_key(path: Path, passphrase: str | None) -> tuple[paramiko.PKey | None, bool]:
    """Return a file's key, and whether it could not be read for want of the right passphrase."""
    import paramiko

    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key_file(str(path), passphrase), False
        except paramiko.PasswordRequiredException:
            return None, True
        except (paramiko.SSHException, ValueError, OSError):  # of another type, or the passphrase is wrong
            continue
    return None, passphrase is not None


def _answer(transport: paramiko.Transport, host: SshHost, prompter: Prompter) -> None:
    """Answer the server's rounds of questions; a round without one is answered with nothing."""
    import paramiko

    def handler(title: str, instructions: str, questions: Sequence[tuple[str, bool]]) -> list[str]:
        shown = clean_lines("\n".join(part for part in (title, instructions) if part))
        return [prompter(LoginPrompt(host.alias, clean(text), shown, echo)) for text, echo in questions]

    for left in reversed(range(_ROUNDS)):
        try:
            transport.auth_interactive(host.user, handler)
        except paramiko.BadAuthenticationType as error:
            raise _refused(host, [], error.allowed_types) from None
        except paramiko.AuthenticationException:
            if left and transport.is_active():
                continue
            raise LoginError(
                f"{host.alias}: the answers were not accepted",
                fix="A code is valid for about 30 s and only once; check this machine's clock.",
            ) from None
        return


def _password(transport: paramiko.Transport, host: SshHost, prompter: Prompter) -> None:
    import paramiko

    for left in reversed(range(_ROUNDS)):
        text = f"Password of {host.user} on {host.hostname}: "
        try:
            transport.auth_password(host.user, prompter(LoginPrompt(host.alias, text)), fallback=False)
        except paramiko.AuthenticationException:
            if left and transport.is_active():
                continue
            raise LoginError(f"{host.alias}: the password was not accepted") from None
        return


def _refused(host: SshHost, tried: Sequence[str], methods: Sequence[str], why: str = "") -> LoginError:
    keys = f"{len(tried)} keys were tried ({', '.join(tried)})" if tried else "there is no key to try"
    return LoginError(
        f"{host.alias}: {host.hostname} refuses {host.user}"
        f" ({'; '.join(filter(None, (keys, why, 'it accepts ' + ', '.join(methods))))})",
        fix=(
            f"Check that `ssh {host.alias}` works. A key that is in place is also refused from an address"
            ' that the `from="…"` clause of its entry in authorized_keys does not list: after a change of'
            " network or VPN, update that clause where the site keeps keys."
        ),
    )
