"""Options in any order, values that begin with a dash, and errors that suggest what was meant."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tui.cli import main, parse
from tui.cli.parser import Parser, UsageError, command_parser
from tui.cli.spec import Subcommand
from tui.cli.subcommands import COMMANDS

VALUES = (
    "recipe.yaml", "policy.lr", "a.b=1", "+a=1", "++a.b=2", "~a", "~a.b", "-5e-6", "-1", "-.inf", "-.5",
    "-1_000", "-", "- item", "x y", "", "k=--json", "é", "[1, -2]",
)  # fmt: skip
EXAMPLES = max(10, settings.default.max_examples // 6) if settings.default else 10
"""For each of 60 commands."""
DASHED = ("--json", "--no-such-option", "-x", "--a=b")

Words = list[str]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def option_value(action: argparse.Action) -> st.SearchStrategy[str]:
    """Return values that an option takes, by what its converter takes of all kinds."""
    if action.choices is not None:
        return st.sampled_from([str(choice) for choice in action.choices])
    candidates = [*VALUES, "3", "16", "2h30", "0.5"]
    return st.sampled_from([text for text in candidates if accepts(action, text)])


def accepts(action: argparse.Action, text: str) -> bool:
    if action.type is None:
        return True
    assert callable(action.type)
    try:
        action.type(text)
    except (ValueError, argparse.ArgumentTypeError):
        return False
    return True


def positional_values(draw: Draw, parser: Parser, texts: tuple[str, ...]) -> Words:
    words: Words = []
    for action in parser._get_positional_actions():
        least, most = {None: (1, 1), "?": (0, 1), "*": (0, 3), "+": (1, 4)}[action.nargs]  # type: ignore[index]
        value = st.sampled_from(list(action.choices or texts))
        words += draw(st.lists(value, min_size=least, max_size=most))
    return words


def option_words(draw: Draw, parser: Parser) -> list[Words]:
    """Draw options, each as the words that belong together."""
    exclusive = [group._group_actions for group in parser._mutually_exclusive_groups]
    units: list[Words] = []
    used: list[argparse.Action] = []
    for action in parser._get_optional_actions():
        rivals = [other for group in exclusive if action in group for other in group if other in used]
        if "--help" in action.option_strings or rivals or not (action.required or draw(st.booleans())):
            continue
        used.append(action)
        (name,) = action.option_strings
        for _ in range(draw(st.integers(1, 2)) if isinstance(action, argparse._AppendAction) else 1):
            if action.nargs == 0:
                units.append([name])
                continue
            value = draw(option_value(action))
            joined = draw(st.booleans())
            units.append([f"{name}={value}"] if joined else [name, value])
    return units


@st.composite
def command_lines(draw: st.DrawFn, command: Subcommand) -> tuple[Words, list[Words], Words]:
    """Draw positional arguments, options, and both in a mixed order."""
    parser = command_parser(command)
    values, options = positional_values(draw, parser, VALUES), option_words(draw, parser)
    places = sorted(draw(st.integers(0, len(values))) for _ in options)
    mixed: Words = []
    for index in range(len(values) + 1):
        for place, unit in zip(places, options, strict=True):
            if place == index:
                mixed += unit
        mixed += values[index : index + 1]
    return values, options, mixed


def namespace(command: Subcommand, words: Words) -> dict[str, Any]:
    return vars(parse("0", [*command.name.split(), *words]))


def flat(units: list[Words]) -> Words:
    return [word for unit in units for word in unit]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name.replace(" ", "-"))
def test_options_and_values_in_any_order_mean_the_same(command: Subcommand) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        values, options, mixed = data.draw(command_lines(command))
        expected = namespace(command, [*values, *flat(options)])
        assert namespace(command, [*flat(options), *values]) == expected
        assert namespace(command, mixed) == expected
        assert namespace(command, [*flat(options), "--", *values]) == expected

    check()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name.replace(" ", "-"))
def test_after_two_dashes_everything_is_a_value(command: Subcommand) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        parser = command_parser(command)
        options = flat(option_words(data.draw, parser))
        values = positional_values(data.draw, parser, DASHED)
        parsed = namespace(command, [*options, "--", *values])
        given_values: Words = []
        for action in parser._get_positional_actions():
            value = parsed[action.dest]
            given_values += value if isinstance(value, list) else [] if value is None else [value]
        assert given_values == values

    check()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("check F --json a.b=1", {"file": "F", "override": ["a.b=1"], "json": True}),
        ("check --nodes 2 F --json ++a.b=1 ~c", {"file": "F", "override": ["++a.b=1", "~c"], "nodes": 2}),
        ("recipe get F --json K", {"file": "F", "key": "K", "json": True}),
        ("recipe origin F K --json a=1", {"key": "K", "override": ["a=1"], "json": True}),
        ("recipe set F k -5e-6 --dry-run", {"pairs": ["k", "-5e-6"], "dry_run": True}),
        ("recipe set --dry-run F a -.inf b -1", {"pairs": ["a", "-.inf", "b", "-1"]}),
        ("recipe comment F k -- --above", {"text": "--above", "above": False}),
        ("check F --time 2h30", {"time": 9000}),
        ("watch --log driver=a --once --log slurm=b", {"log": ["driver=a", "slurm=b"], "once": True}),
        ("--no-mouse watch x", {"no_mouse": True, "target": ["x"]}),
        ("watch x --no-mouse", {"no_mouse": True, "target": ["x"]}),
    ],
)
def test_command_lines(words: str, expected: dict[str, Any]) -> None:
    parsed = vars(parse("0", words.split()))
    assert {name: parsed[name] for name in expected} == expected


def test_submit_takes_overrides_after_options() -> None:
    parsed = parse("0", ["submit", "F", "--rehearse", "--time", "8:00", "a.b=1", "--nodes", "2", "~c"])
    assert (parsed.recipe, parsed.override, parsed.rehearse, parsed.nodes) == ("F", ["a.b=1", "~c"], True, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("submit F --time 0:5", "--time: 0:5 is 5 seconds in Slurm: write 5m or 00:05:00"),
        ("chek F", "unknown command 'chek'; did you mean check?"),
        ("lint F", "unknown command 'lint'; did you mean `recipe lint`?"),
        ("recipe gett F", "unknown command 'gett'; did you mean get?"),
        ("recipe", "a command is required: get, show"),
        ("recipe --jsn get", "unknown option --jsn"),
        ("--no-mose watch", "unknown option --no-mose; did you mean --no-mouse?"),
        ("check F --jsn", "unknown option --jsn; did you mean --json?"),
        ("check F --gpus 4", "unknown option --gpus; did you mean --gpus-per-node?"),
        ("submit F --time 1 --acount a", "unknown option --acount; did you mean --account?"),
        ("submit F --time 1 --gpus-per-node -1", "--gpus-per-node: must be a whole number >= 0, not '-1'"),
        ("submit F --time soon", "--time: invalid time limit 'soon' (expected MM, HH:MM:SS"),
        ("submit F --time 1 --launcher ray.sup", "did you mean ray.sub?"),
        ("watch F --role drivr", "(expected slurm, head, driver, worker, companion); did you mean driver?"),
        ("completion bsh", "did you mean bash?"),
        ("check F --nodes 0", "--nodes: must be a whole number >= 1, not '0'"),
        ("check F --nodes -1", "--nodes: must be a whole number >= 1, not '-1'"),
        ("check F --nodes 1.5", "--nodes: must be a whole number >= 1, not '1.5'"),
        ("check F --nodes=", "--nodes: must be a whole number >= 1, not ''"),
        ("memory F --gpu-memory nan", "--gpu-memory: must be a number > 0, not 'nan'"),
        ("check F --time soon", "--time: invalid time limit 'soon' (expected MM, HH:MM:SS, D-HH:MM:SS"),
        ("check F --nodes --json", "option --nodes needs a value (N)"),
        ("check F --nodes", "option --nodes needs a value (N)"),
        ("submit F --time 1 --sbatch-arg --hold", "write --sbatch-arg=--hold if that is its value"),
        ("check F --json=yes", "--json: ignored explicit argument 'yes'"),
        ("check", "the following arguments are required: FILE"),
        ("detect foo", "unexpected argument 'foo'"),
        ("recipe set F k -abc", "unknown option -abc; put -- before values that begin with -"),
        ("recipe show F --expand --effective", "not allowed with argument"),
    ],
)
def test_errors_say_what_was_meant(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("0", words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("distill-tui: ")
    assert len(err.splitlines()) <= 3
    assert "--help`" in err


def test_control_characters_of_the_command_line_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main("0", ["\x1b]52;c;ZXZpbA==\x07\x9b2Jrun"]) == 2
    assert not [char for char in capsys.readouterr().err if char != "\n" and not char.isprintable()]


@pytest.mark.long
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=12), st.sampled_from(COMMANDS))
def test_any_word_is_a_value_or_a_usage_error(word: str, command: Subcommand) -> None:
    assume(word not in {argument.name for argument in command.arguments})
    with contextlib.suppress(UsageError):
        values = [value for value in namespace(command, [word]).values() if isinstance(value, str | list)]
        assert any(word == value or word in value for value in values)


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("4711", "`distill-tui watch 4711`"),
        ("my.yaml", "`distill-tui edit my.yaml`"),
        (str(Path(__file__).parent), f"`distill-tui watch {Path(__file__).parent}`"),
        (__file__, f"`distill-tui watch {__file__}`"),
        ("/no/such/path", "There is no such file"),
        ("chek", "did you mean check?"),
    ],
)
def test_what_a_command_takes_without_the_command(word: str, fix: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse("0", [word])
    assert fix in str(refused.value)
