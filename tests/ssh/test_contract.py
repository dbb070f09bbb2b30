"""The contract of transports: the same for this machine, over SSH, and over SSH without SFTP."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launcher.errors import TransportError
from launcher.transports.base import NewFile, ProcessId, Transport
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.server import Server

pytestmark = pytest.mark.long
# SFTP gives whole seconds and no inode.
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs", "Cc"]), max_size=20)


def test_a_command_gives_code_output_and_errors(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (done.code, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_arguments_arrive_as_they_are(transport: Transport, odd_path: Path) -> None:
    words = ["", " ", "a b", "$HOME", "`id`", "'", '"', "\\", "*", "-n", "--", "a\nb", "ü漢", str(odd_path)]
    script = "import sys; print(ascii(sys.argv[1:]))"
    done = transport.run([sys.executable, "-c", script, *words])
    assert done.stdout.strip() == ascii(words)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, max_size=5))
def test_any_arguments_arrive_as_they_are(transport: Transport, words: list[str]) -> None:
    done = transport.run([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *words])
    assert done.stdout.strip() == ascii(words)


def test_an_environment_replaces_the_one_that_is_there(transport: Transport, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "A": "a b'\"$x\nc", "LC_ALL": "C"}
    script = (
        "import os; print(ascii(sorted(k for k in os.environ if k not in ('PWD', 'OLDPWD', '_', 'SHLVL')))"
    )
    script += ", ascii(os.environ['A']), os.getcwd())"
    done = transport.run(
        [sys.executable, "-c", script.replace("import os", "import os", 1)], env=env, cwd=str(tmp_path)
    )
    assert done.stdout.strip() == f"{sorted(env)!r} {env['A']!a} {tmp_path}"


def test_output_of_megabytes_comes_whole(transport: Transport) -> None:
    script = (
        "import sys\nfor n in range(200_000): print(f'{n:019d}'); n % 2 or print('e' * 9, file=sys.stderr)"
    )
    done = transport.run([sys.executable, "-c", script], timeout_s=60)
    lines = done.stdout.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (200_000, f"{0:019d}", f"{199_999:019d}")
    assert len(done.stderr) == 100_000 * 10


def test_what_does_not_end_in_time_is_an_error_and_ends(transport: Transport) -> None:
    mark = f"987{os.getpid()}"
    with pytest.raises(TransportError, match="'sleep' did not end"):
        transport.run(["sleep", mark], timeout_s=1.0)
    for _ in range(50):
        if subprocess.run(["pgrep", "-f", f"^sleep {mark}$"], check=False, capture_output=True).returncode:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("it goes on")
    assert transport.run(["echo", "on"]).stdout == "on\n"


def test_what_ignores_its_end_is_left_in_time(transport: Transport) -> None:
    before = time.monotonic()
    with pytest.raises(TransportError, match="did not end"):
        transport.run(["sh", "-c", "trap '' TERM; for n in 1 2 3 4 5 6; do sleep 1; done"], timeout_s=4.0)
    assert time.monotonic() - before < 60
    assert transport.run(["echo", "on"]).stdout == "on\n"


def test_output_without_end_is_refused(transport: Transport) -> None:
    with pytest.raises(TransportError, match="'yes' printed more than"):
        transport.run(["yes"], timeout_s=60)
    assert transport.run(["echo", "on"]).stdout == "on\n"


def test_bytes_that_are_no_text_are_shown_as_such(transport: Transport) -> None:
    done = transport.run(["printf", "\\377\\000a\\303\\274\\303\\n"])
    assert done.stdout.endswith("aü\ufffd\n")
    assert "\ufffd" in done.stdout[:2]


def test_a_file_that_never_answers_is_an_error_in_time(
    transport: Transport, server: Server, tmp_path: Path
) -> None:
    """Whoever opens a pipe that nobody writes waits; the next file is read all the same."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    short: Transport
    if isinstance(transport, LocalTransport):
        short = LocalTransport(deadline_s=1.0)
    else:
        short = SshTransport(server.host(), deadline_s=2.0)
    before = time.monotonic()
    with pytest.raises(TransportError):
        short.read(str(tmp_path / "pipe"))
    assert time.monotonic() - before < 30
    assert short.read(str(tmp_path / "file")) == b"x"


def test_a_command_that_is_missing(transport: Transport) -> None:
    try:
        done = transport.run(["no-such-command-here"])
        outcome = f"{done.code} {done.stderr}"
    except TransportError as error:
        outcome = error.what
    assert re.search(r"127 .*not found|'no-such-command-here' cannot be run", outcome)


def test_control_sequences_in_output_are_cleaned(transport: Transport) -> None:
    done = transport.run(["printf", "a\\033[31mb\\007\\033]52;c;x\\007c"])
    assert done.stdout == "abc"


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_bytes_are_written_and_read(transport: Transport, odd_path: Path, size: int) -> None:
    path = odd_path / "new" / "file.bin"
    data = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    transport.write_atomic(str(path), data, 0o600)
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["file.bin"]
    assert transport.read(str(path)) == data
    assert transport.read(str(path), 1, 300) == data[1:301]
    assert transport.read(str(path), size + 5) == b""
    transport.write_atomic(str(path), b"short")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"short", 0o644)


def test_entries(transport: Transport, odd_path: Path) -> None:
    (odd_path / "file\n1").write_bytes(b"abc")
    (odd_path / "directory").mkdir()
    (odd_path / "link").symlink_to("file\n1")
    (odd_path / "broken").symlink_to("nowhere")
    os.utime(odd_path / "file\n1", (1_700_000_000, 1_700_000_000))
    entries = {entry.name: entry for entry in transport.listdir(str(odd_path))}
    assert sorted(entries) == ["directory", "file\n1", "link"]
    assert (entries["link"].size, entries["file\n1"].mtime) == (3, 1_700_000_000)
    assert (entries["directory"].is_dir, entries["link"].is_dir) == (True, False)
    single = transport.stat(str(odd_path / "link"))
    assert single is not None
    assert (single.name, single.size, single.is_dir) == ("link", 3, False)
    assert transport.stat(str(odd_path / "none")) is None
    assert transport.stat(str(odd_path / "file\n1" / "below")) is None
    assert transport.stat(str(odd_path / "broken")) is None


def test_a_link_in_a_circle_hides_no_other_entry(transport: Transport, odd_path: Path) -> None:
    (odd_path / "circle").symlink_to("circle")
    (odd_path / "file").write_bytes(b"abc")
    assert [entry.name for entry in transport.listdir(str(odd_path))] == ["file"]
    with pytest.raises(TransportError, match=r"Not a directory|No such file"):  # as SFTP has it
        transport.listdir(str(odd_path / "file"))


def test_output_of_too_many_lines_is_refused(transport: Transport) -> None:
    assert transport.run(["seq", "1", "300000"], timeout_s=60).code == 0
    with pytest.raises(TransportError, match="'seq' printed more than 300,000 lines"):
        transport.run(["seq", "1", "300002"], timeout_s=60)


@pytest.mark.parametrize("call", ["listdir", "read", "remove"])
def test_what_is_missing_is_named(transport: Transport, tmp_path: Path, call: str) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(TransportError, match="none: No such file"):
        getattr(transport, call)(path)


def test_a_file_in_the_way_of_a_directory(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TransportError, match="cannot write"):
        transport.write_atomic(str(tmp_path / "file" / "below" / "new"), b"x")
    assert (tmp_path / "file").read_text() == "x"


def test_directories_and_trees(transport: Transport, odd_path: Path) -> None:
    transport.make_directory(str(odd_path / "x" / "y"))
    transport.make_directory(str(odd_path / "x" / "y"))
    (odd_path / "x" / "y" / "file").write_text("1")
    transport.remove(str(odd_path / "x" / "y" / "file"))
    assert not (odd_path / "x" / "y" / "file").exists()
    transport.remove_tree(str(odd_path / "x"))
    assert not (odd_path / "x").exists()
    with pytest.raises(TransportError, match="cannot remove"):
        transport.remove_tree(str(odd_path / "x"))


def test_a_full_file_system_leaves_the_old_file(transport: Transport) -> None:
    if not Path("/dev/full").exists() or os.geteuid() != 0:
        pytest.skip("a small file system is mounted by root only")
    directory = Path("/tmp") / f"small-{os.getpid()}-{time.monotonic_ns()}"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(directory)], check=True)
    try:
        path = directory / "run.json"
        transport.write_atomic(str(path), b"old")
        with pytest.raises(TransportError, match="cannot write"):
            transport.write_atomic(str(path), b"x" * 200_000)
        assert path.read_bytes() == b"old"
        assert os.listdir(directory) == ["run.json"]
    finally:
        subprocess.run(["umount", str(directory)], check=True)
        directory.rmdir()


def test_ownership(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    path.chmod(0o644)
    own = transport.ownership(str(path))
    assert own is not None
    assert (own.is_own, own.writable_by) == (True, "")
    path.chmod(0o646)
    shared = transport.ownership(str(path))
    assert shared is not None
    assert shared.writable_by == "everybody"
    assert transport.ownership(str(tmp_path / "none")) is None


def test_a_process_of_its_own(transport: Transport, odd_path: Path) -> None:
    output = odd_path / "out"
    env = {"PATH": os.environ["PATH"], "MARK_OF_TEST": f"m {os.getpid()}"}
    script = "trap 'echo ended; exit 0' TERM; echo $0 $1; while :; do sleep 0.1; done"
    process = transport.spawn(
        ["sh", "-c", script, "zero", "o n e"], env=env, cwd=str(odd_path), output=str(output)
    )
    assert transport.alive(process) is True
    for _ in range(100):  # until it is the program and no longer the one that starts it
        if transport.was_started_with(process, f"MARK_OF_TEST=m {os.getpid()}"):
            break
        time.sleep(0.1)
    assert transport.was_started_with(process, f"MARK_OF_TEST=m {os.getpid()}")
    assert not transport.was_started_with(process, "MARK_OF_TEST=m")
    assert transport.find_process(f"MARK_OF_TEST=m {os.getpid()}") == process
    later = ProcessId(process.host, process.boot, process.pid, process.started + 1)
    assert transport.alive(later) is False
    assert transport.signal(later, signal.SIGTERM) is False
    assert transport.alive(ProcessId("elsewhere", process.boot, process.pid, process.started)) is None
    assert transport.signal(process, signal.SIGTERM) is True
    for _ in range(100):
        if transport.alive(process) is False:
            break
        time.sleep(0.1)
    assert transport.alive(process) is False
    assert output.read_text() == "zero o n e\nended\n"
    assert transport.find_process(f"MARK_OF_TEST=m {os.getpid()}") is None


def test_files_are_written_together(transport: Transport, odd_path: Path) -> None:
    new = [NewFile(str(odd_path / name), data, mode) for name, data, mode in (
        ("run.json", b"{}", 0o644), ("logs/a 'b'.sh", b"echo \\ %s $x\n" * 5000, 0o755),
        ("keys", b"\0\xff", 0o600),
    )]  # fmt: skip
    transport.write_files(new)
    for file in new:
        path = Path(file.path)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (file.data, file.mode)
    assert sorted(os.listdir(odd_path)) == ["keys", "logs", "run.json"]
    (odd_path / "file").write_text("x")
    first, second = NewFile(str(odd_path / "one"), b"1"), NewFile(str(odd_path / "file" / "two"), b"2")
    with pytest.raises(TransportError, match="cannot write"):
        transport.write_files([first, second])
    assert (odd_path / "one").read_bytes() == b"1"
