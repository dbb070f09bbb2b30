"""Commands of a laptop in one process, over the one connection that they share.

Reads lines of JSON, the arguments of a command each; answers each with a line: code, output, messages, and
the questions of the login so far. PASSPHRASE is the answer to the question for one; a code is computed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from functools import cache

from launcher.transports.ssh.authentication import LoginPrompt
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.second_factor import code
from tui.cli import main
from tui.headless import hosts


def serve() -> None:
    """Carry out commands until there are no more."""
    passphrase, prompts = os.environ.pop("PASSPHRASE"), []
    answers, sys.stdin = sys.stdin, open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open to the end

    def answer(prompt: LoginPrompt) -> str:
        prompts.append(prompt.text)
        return passphrase if "Passphrase" in prompt.text else code()

    connected = hosts.transport_to

    def listed_anew(name: str) -> SshTransport:
        """Return a transport of a command's own over the one connection, as each screen has."""
        return connected(name).beside()

    hosts.answer = answer
    hosts.transport_to = cache(listed_anew)
    for line in answers:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                hosts.transport_to.cache_clear()
                result = main("test", json.loads(line))
            except SystemExit as end:
                result = end.code if isinstance(end.code, int) else 1
        reply = {"code": result, "out": out.getvalue(), "err": err.getvalue(), "prompts": prompts}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
