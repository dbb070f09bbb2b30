"""A command on a laptop behind a relay that cuts once: PORT BYTES USER KEYS DIRECTORY ARGUMENT…

KEYS is the server's directory. Prints the bytes that the relay has passed on, then exits as the command does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.ssh.laptop import command, laptop
from tests.ssh.relay import relayed
from tests.ssh.server import Server


def main(port: str, cut_after: str, user: str, keys: str, directory: str, *argv: str) -> int:
    """Run the command; `cut_after` 0: never cut."""
    server = Server(Path(keys), int(port))
    with relayed(int(port)) as relay:
        relay.cut_after = int(cut_after) or None
        done = command(laptop(server, Path(directory), port=relay.port, user=user), *argv, timeout_s=200)
        print(relay.passed)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
