"""Logging in: agent, keys, then what the server asks (a code of a second factor, a password)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
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

    with closing(paramiko.Agent()) as agent:
        methods, tried = _by_keys(transport, host, prompter, agent)
    if transport.is_authenticated():
        return
    if "keyboard-interactive" in methods:
        _answer(transport, host, prompter)
    elif "password" in methods:
        _password(transport, host, prompter)
    if not transport.is_authenticated():
        raise _refused(host, tried, methods)


def _by_keys(
    transport: paramiko.Transport, host: SshHost, prompter: Prompter, agent: paramiko.Agent
) -> tuple[list[str], list[str]]:
    """Offer the user's keys; return what the server wants of who is not in by then, and what was offered.

    Raises:
        LoginError: the server has ended the connection.
    """
    tried: list[str] = []
    plain, locked = _keys(host, agent)
    # Asking first what the server accepts costs two round trips: a key that can be offered at once is.
    methods: list[str] | None = ["publickey"] if plain else _first_methods(transport, host)
    if "publickey" in (methods or ()):
        methods = _offer_keys(transport, host, chain(plain, _unlocked(locked, host, prompter)), tried)
    if methods is None and not transport.is_authenticated():
        methods = _first_methods(transport, host)
    return methods or [], tried


def _offer_keys(
    transport: paramiko.Transport, host: SshHost, keys: Iterable[_NamedKey], tried: list[str]
) -> list[str] | None:
    """Offer keys until one is accepted; return what is left to do, None where the server told nothing.

    Raises:
        LoginError: the server has ended the connection.
    """
    import paramiko

    methods = None
    for name, key in keys:
        tried.append(name)
        try:
            methods = list(transport.auth_publickey(host.user, key))
            if "publickey" not in methods:  # else it wants another key, too
                return methods
        except paramiko.BadAuthenticationType as error:
            return list(error.allowed_types)
        except paramiko.AuthenticationException:
            if not transport.is_active():
                raise _too_many(host, tried) from None
    return methods


def _first_methods(transport: paramiko.Transport, host: SshHost) -> list[str] | None:
    """Return how the server lets users in; None if it asked for nothing."""
    import paramiko

    try:
        transport.auth_none(host.user)
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    return None if transport.is_authenticated() else []


_NamedKey = tuple[str, "paramiko.PKey"]


def _keys(host: SshHost, agent: paramiko.Agent) -> tuple[list[_NamedKey], list[Path]]:
    """Return the keys to offer, the likeliest first, and files of keys with a passphrase.

    A server ends the connection after some six keys (MaxAuthTries), so those that the configuration names
    come before what else an agent holds.
    """
    files = [(path, _public(Path(f"{path}.pub"))) for path in map(Path, host.identity_files)]
    named = [blob for _, blob in files if blob is not None]
    held = [(f"the agent's {clean(key.comment or key.get_name())}", key) for key in agent.get_keys()]
    first = [item for item in held if item[1].asbytes() in named]
    others = [] if host.identities_only else [item for item in held if item not in first]
    in_agent = {key.asbytes() for _, key in held}
    own: list[_NamedKey] = []
    locked: list[Path] = []
    for path, blob in files:
        if blob in in_agent or not path.is_file():
            continue
        key, is_encrypted = _read_key(path, None)
        if key is not None:
            own.append((str(path), _certified(key, path, host)))
        elif is_encrypted:
            locked.append(path)
    return [*first, *own, *others], locked


def _unlocked(paths: Iterable[Path], host: SshHost, prompter: Prompter) -> Iterator[_NamedKey]:
    """Yield the keys of files, each after the question for its passphrase."""
    for path in paths:
        key = _load(path, host, prompter)
        if key is not None:
            yield str(path), _certified(key, path, host)


def _certified(key: paramiko.PKey, path: Path, host: SshHost) -> paramiko.PKey:
    """Return a file's key with its certificate, where there is one."""
    for certificate in (Path(f"{path}-cert.pub"), *map(Path, host.certificate_files)):
        if certificate.is_file():
            key.load_certificate(str(certificate))
            break
    return key


def _public(path: Path) -> bytes | None:
    """Return the key of a .pub file; None if it cannot be read."""
    try:
        return base64.b64decode(path.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _load(path: Path, host: SshHost, prompter: Prompter) -> paramiko.PKey | None:
    """Return a file's key; its passphrase is asked for where it has one."""
    text = f"Passphrase for key {path}: "
    for _ in range(_ROUNDS):
        key, _ = _read_key(path, prompter(LoginPrompt(host.alias, text)))
        if key is not None:
            return key
        text = f"Wrong passphrase; passphrase for key {path}: "
    return None


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


def _too_many(host: SshHost, tried: Sequence[str]) -> LoginError:
    return LoginError(
        f"{host.alias}: {host.hostname} has ended the connection after {len(tried)} keys"
        f" (too many authentication failures; tried: {', '.join(tried)})",
        fix=(
            "Name the right key in ~/.ssh/config: `IdentityFile …` with `IdentitiesOnly yes` for this host;"
            " other keys that the agent holds are then not offered."
        ),
    )


def _refused(host: SshHost, tried: Sequence[str], methods: Sequence[str]) -> LoginError:
    keys = f"{len(tried)} keys were tried ({', '.join(tried)})" if tried else "there is no key to try"
    accepted = f"; it accepts {', '.join(methods)}" if methods else ""
    return LoginError(
        f"{host.alias}: {host.hostname} refuses {host.user} ({keys}{accepted})",
        fix=(
            f"Check that `ssh {host.alias}` works. A key that is in place is also refused from an address"
            ' that the `from="…"` clause of its entry in authorized_keys does not list: after a change of'
            " network or VPN, update that clause where the site keeps keys."
        ),
    )
