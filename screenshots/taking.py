"""Taking the pictures: the real app runs without a terminal, keys are pressed, its screen is written down."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from screenshots.scenes import (
    EDITED,
    LOGIN,
    NOW,
    add_drafts,
    disk_of_another_day,
    doctor_of_another_day,
    examined_another_day,
    let_squeue,
    login_node,
    overview_runs,
    sample_runs,
    usage_of_another_day,
)
from screenshots.shots import (
    DRAFT_SHOTS,
    EDITOR_SHOTS,
    EMPTY_SHOTS,
    OVERVIEW_SHOTS,
    SHOTS,
    SIZES,
    WIZARD_SHOTS,
    WIZARD_SIZES,
    Shot,
)
from screenshots.stable_texts import reproducible, same_each_time, with_own_id
from tests.tui.fakeslurm import LoginNode
from tui.app import DistillApp
from tui.app_settings import AppSettings, EditStart
from tui.screens.login import LoginDialog
from tui.screens.wizard.model import WizardState

LIMIT_S = 60.0


def painted(app: DistillApp) -> str:
    """Return the screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def until(pilot: Pilot[Any], shown: Callable[[], bool], what: str) -> None:
    """Wait until a text is on the screen."""
    deadline = time.monotonic() + LIMIT_S
    while not shown():
        if time.monotonic() > deadline:
            raise SystemExit(f"not on the screen: {what}\n{painted(pilot.app)}")  # type: ignore[arg-type]
        await pilot.pause(0.05)


async def settle(pilot: Pilot[Any], app: DistillApp, settled_s: float = 1.0) -> None:
    """Wait until the screen stops changing: a log's lines arrive later."""
    text = ""
    while text != (text := painted(app)):
        await pilot.pause(settled_s)


async def take(root: Path, size: tuple[int, int]) -> dict[str, str]:
    """Take all pictures of one size; returns name and SVG of each."""
    taken = {}
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: shot.is_on(painted(app), size), shot.name)  # type: ignore[misc]
            await settle(pilot, app)
            if size in shot.sizes:
                taken[f"{shot.name}-{size[0]}x{size[1]}.svg"] = app.export_screenshot(title="distill-tui")
    return taken


async def take_overview(
    root: Path,
    size: tuple[int, int],
    settled_s: float = 1.0,
    shots: tuple[Shot, ...] = OVERVIEW_SHOTS,
) -> dict[str, tuple[str, str]]:
    """Take the pictures of list, charts and comparison of one size; returns name, SVG and text of each."""
    taken = {}
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in shots:
            if shot.down:
                let_squeue("down")
            await pilot.press(*shot.keys)
            if shot.login:
                app.push_screen(LoginDialog(LOGIN))
            await until(pilot, lambda shot=shot: shot.is_on(painted(app), size), shot.name)  # type: ignore[misc]
            for entry in app.screen.query(Input):
                entry.cursor_blink = False
            await settle(pilot, app, settled_s)
            svg = app.export_screenshot(title="distill-tui")
            taken[f"{shot.name}-{size[0]}x{size[1]}"] = (svg, same_each_time(painted(app)))
    return taken


async def take_wizard(node: LoginNode, size: tuple[int, int]) -> dict[str, str]:
    """Take the pictures of the wizard in one size; nothing is submitted."""
    taken = {}
    state = WizardState({"recipe": "distillation.yaml"})
    os.environ["XDG_STATE_HOME"] = str(node.root / "state")
    app = DistillApp(AppSettings(node.runs, wizard_state=state, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in WIZARD_SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: shot.is_on(painted(app), size), shot.name)  # type: ignore[misc]
            for entry in app.screen.query(Input):
                entry.cursor_blink = False
            await settle(pilot, app)
            if shot.sizes == SIZES or size in shot.sizes:
                name = f"{shot.name}-{size[0]}x{size[1]}.svg"
                picture = app.export_screenshot(title="distill-tui")
                taken[name] = reproducible(picture, name, node.root.parent)
    return taken


async def take_editor(node: LoginNode, size: tuple[int, int]) -> dict[str, str]:
    """Take the pictures of the editor in one size; nothing is saved."""
    taken = {}
    recipe = node.checkout / "mine.yaml"
    recipe.write_text(EDITED)
    os.environ["XDG_STATE_HOME"] = str(node.root / "state")
    app = DistillApp(AppSettings(node.runs, edit=EditStart(recipe), now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "would fail" in painted(app), "the recipe")
        for shot in EDITOR_SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: shot.is_on(painted(app), size), shot.name)  # type: ignore[misc]
            await settle(pilot, app)
            if size in shot.sizes:
                name = f"{shot.name}-{size[0]}x{size[1]}.svg"
                svg = app.export_screenshot(title="distill-tui")
                taken[name] = reproducible(svg, name, node.root.parent)
    return taken


def take_all() -> dict[str, str]:
    """Take all pictures."""
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    taken: dict[str, str] = {}
    with sample_runs() as root, usage_of_another_day():
        for size in SIZES:
            taken |= asyncio.run(take(root, size))
    for size in SIZES:
        with overview_runs() as root, usage_of_another_day():
            pictures = asyncio.run(take_overview(root, size))
            let_squeue("idle")
            empty = root.with_name("none")
            pictures |= asyncio.run(take_overview(empty, size, shots=EMPTY_SHOTS))
        with overview_runs() as root, examined_another_day():
            add_drafts()
            pictures |= asyncio.run(take_overview(root, size, shots=DRAFT_SHOTS))
        for name, (svg, text) in pictures.items():
            svg = with_own_id(same_each_time(svg), name)
            taken |= {f"{name}.svg": svg, f"text/{name}.txt": text}
    for size in WIZARD_SIZES:
        with login_node() as node, disk_of_another_day(), doctor_of_another_day():
            taken |= asyncio.run(take_wizard(node, size))
    for size in SIZES:
        with login_node() as node:
            taken |= asyncio.run(take_editor(node, size))
    return taken
