"""The table of commands, and what is made of it: bindings, bar, palette, help."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.actions import parse
from textual.binding import Binding

from tests.tui.pilot import NARROW, WIDE, shown
from tests.tui.replay import running
from tui.app import DistillApp
from tui.commands import COMMANDS, Command, Scope, bindings, commands, key_name, key_tables
from tui.logview.view import LogView
from tui.screens.charts import ChartsScreen
from tui.screens.comparison import ComparisonScreen
from tui.screens.doctor import DoctorScreen
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.recipe_editor import RecipeEditorScreen
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.help import help_text
from tui.screens.home import HomeScreen
from tui.screens.monitor import MonitorScreen
from tui.screens.palette import Palette
from tui.screens.wizard.screen import WizardScreen
from tui.widgets.keybar import footer

OWNERS = {
    Scope.HOME: HomeScreen,
    Scope.CHARTS: ChartsScreen,
    Scope.COMPARISON: ComparisonScreen,
    Scope.MONITOR: MonitorScreen,
    Scope.LOG: LogView,
    Scope.WIZARD: WizardScreen,
    Scope.EDITOR: RecipeEditorScreen,
    Scope.OUTLINE: OutlineView,
    Scope.TEXT_MODE: RecipeTextArea,
    Scope.DOCTOR: DoctorScreen,
    Scope.APP: DistillApp,
}
TAKEN_BY_TMUX = {"ctrl+b"}
NOT_SENT_BY_TMUX = ("shift+enter", "ctrl+enter", "ctrl+shift", "super+")


def test_ids_are_unique_and_every_action_exists() -> None:
    assert len({command.id for command in COMMANDS}) == len(COMMANDS)
    for command in COMMANDS:
        owner = OWNERS[command.scope]
        assert hasattr(owner, f"action_{command.action.partition('(')[0]}"), command.id


@pytest.mark.parametrize(
    "screen",
    [
        HomeScreen,
        ChartsScreen,
        ComparisonScreen,
        MonitorScreen,
        WizardScreen,
        RecipeEditorScreen,
        DoctorScreen,
    ],
    ids=lambda screen: screen.__name__,
)
def test_a_key_means_one_thing_on_a_screen(
    screen: type[
        HomeScreen
        | ChartsScreen
        | ComparisonScreen
        | MonitorScreen
        | WizardScreen
        | RecipeEditorScreen
        | DoctorScreen
    ],
) -> None:
    keys = [key for command in commands(*screen.SCOPES) for key in command.keys]
    assert len(keys) == len(set(keys))


def test_keys_arrive_in_every_terminal() -> None:
    for command in COMMANDS:
        assert command.keys != ("escape",), f"{command.id}: escape comes late or not at all over SSH and tmux"
        for key in command.keys:
            assert key not in TAKEN_BY_TMUX
            assert not key.startswith(NOT_SENT_BY_TMUX)


def test_bindings_carry_ids_and_words() -> None:
    for binding in bindings(Scope.MONITOR):
        assert isinstance(binding, Binding)
        assert binding.id
        assert binding.description


@pytest.mark.parametrize("width", [20, 40, 80, 160])
def test_the_bar_fits_and_always_tells_help_and_quit(width: int) -> None:
    valid = [item for item in commands(Scope.MONITOR, Scope.APP) if item.id != "app.quit-now"]
    shown_commands = [(command, command.keys[0]) for command in valid if command.footer]
    told = footer(shown_commands, width)
    assert told.cell_length <= width
    assert "F1 help" in told.plain
    assert "q quit" in told.plain


def test_the_help_names_every_command_within_its_width() -> None:
    text = help_text(tuple(Scope), "about", 60).plain
    for command in COMMANDS:
        assert command.title in text
    assert max(len(line) for line in text.split("\n")) <= 60


@pytest.mark.long
@pytest.mark.parametrize("key", ["f1", "question_mark"])
async def test_help_on_both_screens(tmp_path: Path, key: str) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, WIDE) as screen:
        await screen.see("11/20")
        await screen.press(key)
        await screen.see("Help", "Filter the list")
        await screen.press("end")
        await screen.see("Everywhere")
        assert "Search in the log" not in screen.text
        await screen.press("j", "k", "q")
        await screen.press("enter")
        await screen.see("✓ Ray head up")
        await screen.press(key)
        await screen.see("Help", "Search in the log")
        await screen.press("end")
        await screen.see("Everywhere", "Quit at once")
        await screen.press("escape")
        assert isinstance(screen.app.screen, MonitorScreen)


def offered(app: DistillApp) -> list[str]:
    return [command.title for command in app.get_system_commands(app.screen)]


def titles(*places: Scope, without: tuple[str, ...] = ()) -> set[str]:
    def wanted(command: Command) -> bool:
        return command.palette and command.id not in without

    return {command.title for command in commands(*places) if wanted(command)}


@pytest.mark.long
async def test_the_palette_offers_what_is_valid_and_does_it(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("11/20")
        # Of the actions on a run those are left out that need an ended one, several, or one of Slurm's.
        invalid = ("home.resume", "home.again", "home.remove", "home.compare", "home.copy")
        assert set(offered(screen.app)) == titles(Scope.HOME, Scope.APP, without=invalid)
        await screen.press("ctrl+p")
        await screen.type("open the run")
        await screen.see("Open the run")
        await screen.press("enter")
        await screen.see("✓ Ray head up")
        perhaps = {"Next finding", "Previous finding"}
        # No line is left out, the run has not ended, is none of Slurm's, and there is one pane.
        several: tuple[str, ...] = (
            "log.pane",
            "log.pane-before",
            "log.zoom",
            "log.taller",
            "log.shorter",
            "log.wider",
        )
        several += ("log.narrower", "log.equal", "log.across")
        of_run = ("monitor.again", "monitor.remove", "monitor.resume", "monitor.shell")
        not_now = ("log.all-lines", *of_run, *several)
        all_there = titles(Scope.MONITOR, Scope.APP, without=not_now)
        assert set(offered(screen.app)) | perhaps == all_there
        await screen.press("ctrl+p")
        await screen.type("search in")
        await screen.see("Search in the log")
        await screen.press("enter")
        field = screen.monitor.logs.prompt.field
        await screen.until(lambda: field.has_focus, "the search field has the keys")


async def test_every_command_on_the_logs_exists(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("✓ Ray head up")
        actions = [parse(command.action) for command in commands(Scope.MONITOR)]
        used = {arguments[0] for _, action, arguments in actions if action == "log"}
        assert used == set(screen.monitor.log_commands.commands)


async def test_another_theme_can_be_chosen(tmp_path: Path) -> None:
    async with shown(tmp_path) as screen:
        await screen.see("No runs yet.")
        await screen.app.run_action("app.change_theme")
        await screen.see("distill")
        await screen.press("escape")


def test_the_documentation_lists_the_keys_that_there_are() -> None:
    text = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text(encoding="utf-8")
    listed = text.partition("<!-- keys: python -m tui.commands -->\n")[2].partition("<!-- end of keys -->")[0]
    assert listed.strip() == key_tables().strip(), "put the output of `python -m tui.commands` there"


def test_keys_have_names_that_people_write() -> None:
    names = {key_name(key) for command in COMMANDS for key in command.keys}
    assert not {name for name in names if "_" in name or name in ("slash", "escape")}


@pytest.mark.parametrize(
    "keys", [("pageup",), ("pagedown",), ("end",), ("q", "x", "j", "z", "pageup", "end")]
)
async def test_the_palette_is_paged_through_before_it_has_lines(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """Textual's list fails there: it looks up a line that is not laid out yet."""
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, (40, 6)) as screen:
        await screen.press("ctrl+p", *keys)
        await screen.until(lambda: isinstance(screen.app.screen, Palette), "the palette is open")
        await screen.press("escape")
        await screen.until(lambda: not isinstance(screen.app.screen, Palette), "the palette is closed")
