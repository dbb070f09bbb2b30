"""Typing in the wizard: replacing, editing, and keys that arrive together."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key

from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import Screen
from tests.tui.terminal import opened
from tests.tui.test_wizard import BACK, NEXT, node, on_review, page, to_step, wizard  # noqa: F401 - a fixture
from tui.screens.home import HomeScreen
from tui.widgets.path_completion import completed_path

_CHARACTERS = {"space": " ", "full_stop": ".", "colon": ":", "minus": "-"}


async def burst(screen: Screen, *keys: str) -> None:
    """Let keys arrive together, as from a slow link."""
    for key in keys:
        character = _CHARACTERS.get(key, key if len(key) == 1 else None)
        screen.app.post_message(Key(key, character))
    await screen.pilot.pause()


async def texts_are(screen: Screen, **texts: str) -> None:
    await screen.until(
        lambda: {name: page(screen).wizard_state.texts.get(name) for name in texts} == texts,
        f"{texts}",
        limit_s=40,  # four steps are laid out, which a busy machine takes 10 s for
    )


@pytest.mark.long
async def test_typing_replaces_the_value_of_a_field(node: LoginNode) -> None:  # noqa: F811
    async with wizard(node) as screen:
        await to_step(screen, "job")
        await screen.see("Nodes")
        await screen.press("4")
        await texts_are(screen, nodes="4")
        await screen.press("tab", "tab", "3", "0")
        await texts_are(screen, time="30")
        await screen.press("shift+tab", "shift+tab", "2")
        await texts_are(screen, nodes="2")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("end", "2"), "12"),
        (("home", "2"), "21"),
        (("right", "2"), "12"),
        (("left", "2"), "21"),
        (("backspace",), ""),
        (("backspace", "3"), "3"),
        (("delete", "3"), "3"),
        (("ctrl+u", "3"), "3"),
    ],
)
@pytest.mark.slow
async def test_the_usual_keys_edit_the_value(
    node: LoginNode,  # noqa: F811
    keys: tuple[str, ...],
    text: str,
) -> None:
    async with wizard(node) as screen:
        await to_step(screen, "job")
        await screen.see("Nodes")
        await screen.press(*keys)
        await texts_are(screen, nodes=text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        (("2", "down", "down", "3", "0", "m"), {"nodes": "2", "time": "30m"}),
        (("down", "down", "3", "0", "m", "down", "2"), {"time": "30m", "chain": "2"}),
        (("2", "tab", "tab", "2", "h", "3", "0", "tab", "4", "up", "end", "backspace", "5"),
         {"nodes": "2", "time": "2h35", "chain": "4"}),
        (("2", "enter", "enter", "5", "h", "enter", "3"), {"nodes": "2", "time": "5h", "chain": "3"}),
        (("8", BACK, "down", "down", "7", BACK, "4", NEXT, NEXT, "6"),
         {"nodes": "6", "val_period": "7", "prompts": "4"}),
        (("2", "down", "down", "3", "f4", "6", "0"), {"nodes": "2", "time": "60"}),
    ],
)  # fmt: skip
async def test_keys_that_arrive_together_land_where_the_ones_before_them_led(
    node: LoginNode,  # noqa: F811
    keys: tuple[str, ...],
    texts: dict[str, str],
) -> None:
    async with wizard(node) as screen:
        await to_step(screen, "job")
        await screen.see("Nodes")
        await burst(screen, *keys)
        await texts_are(screen, **texts)


@pytest.mark.long
async def test_a_dialog_takes_the_keys_that_arrive_with_the_one_that_opens_it(
    node: LoginNode,  # noqa: F811
) -> None:
    async with wizard(node) as screen:
        await burst(screen, "enter", "down", "enter", "down", "o", "t", "h", "e", "r")
        await texts_are(screen, partition="devel", account="other")
        await burst(screen, "escape", "n")
        await screen.see("There is a draft of a run.")
        assert any(isinstance(item, HomeScreen) for item in screen.app.screen_stack)


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("al", "alpha-"), ("alpha-o", "alpha-one.yaml"), ("alpha-", "alpha-one.yaml"), ("su", "sub/"),
        ("sub/", "sub/own.yaml"), ("./su", "./sub/"), ("~/su", "~/sub/"), (".h", ".hidden"), ("x", None),
        ("", None), ("nowhere/x", None), ("alpha-one.yaml", None),
    ],
)  # fmt: skip
def test_a_typed_path_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, completed: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("alpha-one.yaml", "alpha-two.yaml", ".hidden", "sub/own.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert completed_path(text) == completed


@pytest.mark.long
async def test_the_right_arrow_takes_the_rest_of_a_path(
    node: LoginNode,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(node.checkout)
    async with wizard(node) as screen:
        await screen.press(NEXT, "down")
        await screen.type("./rec")
        await screen.see("./recipe.yaml")
        assert page(screen).wizard_state.texts["recipe"] == "./rec"
        await screen.press("right")
        await texts_are(screen, recipe="./recipe.yaml")


@pytest.mark.long
def test_keys_typed_ahead_in_a_terminal(node: LoginNode, tmp_path: Path) -> None:  # noqa: F811
    with opened("new", str(node.recipe), environment=dict(node.environment)) as terminal:
        terminal.see("booster", "distill")
        down, page_down = b"\x1b[B", b"\x1b[6~"
        terminal.press(page_down * 5 + b"2" + down * 2 + b"2h30" + down + b"3" + page_down)
        terminal.see("2 nodes", "for 02:30:00, at most 3 jobs")
        terminal.press(b"\x03")
        assert terminal.wait() == 0
