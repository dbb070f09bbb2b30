"""Names that others chose reach no shell: commands that the doctor offers, hosts, what an ssh client answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from launcher.errors import InputError
from launcher.transports.ssh.ssh_config import resolve_host
from tests.hostile.documents import VALUES
from tests.hostile.recipe_parts import hostile_text
from tests.tui.fakeslurm import LoginNode

Run = Callable[..., tuple[int, str, str]]
INJECTIONS = (
    "$(touch pwned)", "`touch pwned`", "org/x;touch pwned", "org/x\ntouch pwned\n", "'; touch pwned; '", "org/x' || touch pwned #",
    "-x/../../touch pwned", "org/x && touch pwned", "\u2028touch pwned", "org/$(touch\tpwned)",
)  # fmt: skip
_OPTIONS = ("hostname", "port", "user", "proxyjump", "proxycommand", "identityfile", "connecttimeout", "serveraliveinterval",
            "userknownhostsfile", "hostkeyalias", "certificatefile", "identitiesonly")  # fmt: skip


def quoted(text: str) -> str:
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'


@pytest.mark.long
@pytest.mark.parametrize("place", range(2))
def test_names_of_a_recipe_run_nothing_in_the_doctors_script(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    node = LoginNode.at(tmp_path / "node")
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    names = INJECTIONS[place::2]
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "touch").symlink_to(shutil.which("touch") or "/usr/bin/touch")
    for number, name in enumerate(names):
        recipe = node.recipe.with_name(f"r{number}.yaml")
        recipe.write_text(
            f"defaults: {quoted(str(node.recipe.name))}\npolicy: {{model_name: {quoted(name)}, tokenizer: {{name: {quoted(name)}}}}}\n"
            f"teacher: {{model_name: {quoted(name)}}}\ndata: {{train: {{dataset_name: {quoted(name)}}}}}\n"
        )
        code, script, err = run("doctor", str(recipe), "--print")
        assert code in (0, 1), err
        assert script.startswith("#!/bin/bash\n")
        body = "kill() { :; }\n" + script.replace("set -eu\n", "")
        subprocess.run(
            ["/bin/bash", "-c", body], env={"PATH": str(tmp_path / "stub")}, cwd=tmp_path, capture_output=True,
            stdin=subprocess.DEVNULL, check=False, timeout=60,
        )  # fmt: skip
        assert not list(tmp_path.rglob("pwned")), script


@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_name_is_an_option_of_ssh(count: int) -> None:
    random = Random(count)
    for _ in range(count):
        name = random.choice(("-o", "-", "", "a ", "$(id)", "a;", "@", "a@-x", "x\n")) + hostile_text(
            random, 3
        )
        with pytest.raises(InputError, match="invalid host"):
            resolve_host(f"{name} ", {"PATH": "/nosuch", "HOME": "/nosuch"})


@pytest.mark.parametrize("count", [15, pytest.param(150, marks=pytest.mark.slow)])
def test_an_ssh_client_that_answers_anything(tmp_path: Path, count: int) -> None:
    """Each is a host with a valid port, or a refusal in words."""
    random = Random(count)
    client, answer = tmp_path / "ssh", tmp_path / "answer"
    client.write_text(f"#!/bin/sh\ncat {answer}\n")
    client.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    texts = [str(value).replace("\x00", "") for value in VALUES if isinstance(value, str | int)]
    for _ in range(count):
        lines = [
            f"{random.choice(_OPTIONS)} {random.choice(texts)[:5000]}" for _ in range(random.randint(0, 8))
        ]
        answer.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        with suppress(InputError):
            assert 0 < resolve_host("x", environment).port < 1 << 16
