"""A small terminal: what a screen shows after the output that it got."""

from __future__ import annotations

import re

from rich.cells import cell_len

_TOKENS = re.compile(
    r"\x1b\[(?P<args>[?<>\d;]*)(?P<verb>[a-zA-Z])|\x1b(?P<escape>[A-Z])|(?P<text>.)", re.DOTALL
)


class Emulator:
    """Cells with their looks; understands what the app paints with, and fails on anything else."""

    def __init__(self, width: int, height: int, *, erases_in_colour: bool) -> None:
        self.width, self.height = width, height
        self.erases_in_colour = erases_in_colour
        self.cells: list[list[tuple[str, tuple[str, ...]]]] = [self._blank(()) for _ in range(height)]
        self.row = self.column = 0
        self.look: tuple[str, ...] = ()
        self.top, self.bottom = 0, height - 1

    def _blank(self, look: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
        return [(" ", look)] * self.width

    @property
    def _erased(self) -> tuple[str, ...]:
        """The look of erased cells: the background alone, or nothing."""
        background = tuple(code for code in self.look if code.startswith("4") and code != "4")
        return background if self.erases_in_colour else ()

    def feed(self, data: str) -> None:
        position = 0
        for match in _TOKENS.finditer(data):
            assert match.start() == position, repr(data[position : position + 20])
            position = match.end()
            if match["verb"]:
                self._csi(match["verb"], match["args"])
            elif match["escape"]:
                assert match["escape"] == "M"
                self._reverse_feed()
            else:
                self._put(match["text"])
        assert position == len(data)

    def _csi(self, verb: str, args: str) -> None:
        numbers = [int(part) for part in args.split(";") if part.isdigit()]
        match verb:
            case "H":
                self.row, self.column = numbers[0] - 1, numbers[1] - 1
            case "C":
                self.column += numbers[0] if numbers else 1
            case "m":
                self.look = _looks(self.look, args)
            case "K":
                self._erase(self.width - self.column)
            case "X":
                self._erase(numbers[0])
            case "r":
                self.top, self.bottom = (numbers[0] - 1, numbers[1] - 1) if numbers else (0, self.height - 1)
                self.row = self.column = 0
            case "h" | "l":
                pass
            case _:
                raise AssertionError(f"not understood: {verb} {args}")

    def _erase(self, count: int) -> None:
        for index in range(self.column, self.column + count):
            self.cells[self.row][index] = (" ", self._erased)

    def _reverse_feed(self) -> None:
        assert self.row == self.top
        del self.cells[self.bottom]
        self.cells.insert(self.top, self._blank(self._erased))

    def _put(self, text: str) -> None:
        if text == "\n":
            if self.row == self.bottom:
                del self.cells[self.top]
                self.cells.insert(self.bottom, self._blank(self._erased))
            else:
                self.row = min(self.row + 1, self.height - 1)
            return
        width = cell_len(text)
        cells = self.cells[self.row]
        if width == 0:
            lead = self.column - 1 if cells[self.column - 1][0] else self.column - 2
            cells[lead] = (cells[lead][0] + text, cells[lead][1])
            return
        assert self.column + width <= self.width, "beyond the edge"
        cells[self.column] = (text, self.look)
        if width == 2:
            cells[self.column + 1] = ("", self.look)
        self.column += width

    @property
    def shown(self) -> list[list[tuple[str, tuple[str, ...]]]]:
        """Cells as they are seen: of a blank, only the background and what is seen on it."""
        return [[(text, _seen(look) if text == " " else look) for text, look in row] for row in self.cells]


def _seen(look: tuple[str, ...]) -> tuple[str, ...]:
    """Return what of a look is seen on a blank."""
    if {"4", "7", "9"} & {*look}:
        return look
    return tuple(code for code in look if len(code) > 1 and code.startswith("4"))


def _looks(look: tuple[str, ...], args: str) -> tuple[str, ...]:
    """Return the look after an SGR sequence: colour, background and weights, sorted."""
    found = {code[0] if len(code) > 1 else f"w{code}": code for code in look}
    parts = args.split(";") if args else ["0"]
    while parts:
        code = parts.pop(0)
        if code in ("38", "48"):
            kind = parts[0]
            count = 2 if kind == "5" else 4
            found[code[0]] = ";".join([code, *parts[:count]])
            del parts[:count]
        elif code == "0":
            found = {}
        elif code in ("39", "49"):
            found.pop(code[0], None)
        elif len(code) > 1 and code[0] in "34":
            found[code[0]] = code
        else:
            found[f"w{code}"] = code
    return tuple(sorted(found.values()))
