"""Cells on the terminal, and the shortest output that turns them into the next frame.

Textual paints whole widgets. `CellFrame.reduce` keeps what the terminal shows and returns only the cells that
differ; lines that moved up or down are moved by the terminal itself. Understood are the sequences that
Textual paints with: cursor positions, colours and text; other output passes unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from rich.cells import cell_len

_TOKEN = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H|\x1b\[(?P<sgr>[\d;]*)m|(?P<newline>[\r\n]+)"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
)
_HARMLESS = re.compile(
    r"(?:\x1b\[[?<>=][\d;]*\$?[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[\d;]*[nctq]|\x07)*"
)
"""Modes, queries, titles, the clipboard and the bell: they change no cell."""
_SCREENS = ("\x1b[?1049", "\x1b[?47", "\x1b[?1047")
_JOIN = 4
"""Unchanged cells between two changed ones up to which they are sent, too: a move takes as many bytes."""
_ON_BLANKS = frozenset(("4", "5", "7", "9", "21", "53"))
"""Weights that are seen on a blank: underlined, blinking, reversed, struck."""
_EMOJI_SELECTOR, _JOINER = "\ufe0f", "\u200d"
_WORD = 24
"""Cells up to which a changed word is sent whole."""
_ERASE = 6
"""Blanks from which on they are erased instead of being sent."""
_MOVED = 3
"""Rows that must have moved the same way before the terminal is told to move them."""
_MOVE_COST = 24


@dataclass(frozen=True, slots=True)
class _Look:
    """Colours and weights of a cell, as parameters of SGR."""

    colour: str = ""
    background: str = ""
    weights: frozenset[str] = frozenset()


class _CellRow:
    """Characters and looks of a row; None where it is unknown what the terminal shows.

    A wide character's second cell holds an empty text.
    """

    __slots__ = ("looks", "texts")

    def __init__(self, texts: list[str | None], looks: list[str]) -> None:
        self.texts = texts
        self.looks = looks

    @classmethod
    def blank(cls, width: int, text: str | None = None, look: str = "") -> _CellRow:
        return cls([text] * width, [look] * width)

    def copy(self) -> _CellRow:
        return _CellRow(self.texts.copy(), self.looks.copy())

    def changes(self, before: _CellRow) -> list[int]:
        """Return the cells that are known and differ."""
        if self.texts == before.texts and self.looks == before.looks:
            return []
        cells = zip(count(), self.texts, before.texts, self.looks, before.looks, strict=False)
        return [
            index
            for index, text, text_before, look, look_before in cells
            if text is not None and (text != text_before or look != look_before)
        ]

    def key(self) -> str:
        """Return the text by which a row is recognised where it moved to; empty for a blank one."""
        return "".join([text or " " for text in self.texts[:-2]]).strip()


class CellFrame:
    """What the terminal shows."""

    def __init__(self, *, erases_in_colour: bool = True) -> None:
        self._erases_in_colour = erases_in_colour
        """Whether erased cells get the current background (`bce` in terminfo)."""
        self._width = 0
        self._rows: list[_CellRow] = []
        self._look = "0"
        """Colours and weights that the terminal writes with; empty where unknown."""
        self._cursor: tuple[int, int] | None = None

    def resize(self, width: int, height: int) -> None:
        """Set the size; nothing is known of what the terminal shows then."""
        self._width = width
        self._rows = [_CellRow.blank(width) for _ in range(height)]
        self._look, self._cursor = "", None

    def forget(self) -> None:
        """Assume nothing of what the terminal shows."""
        self.resize(self._width, len(self._rows))

    def reduce(self, data: str) -> str:
        """Return the output with the same effect as `data`, as short as possible."""
        if not data:
            return ""
        painted = self._painted(data)
        if painted is None:
            return self._passed_on(data)
        rows, cursor = painted
        output = self._moved(rows)
        for index in sorted(rows):
            output += self._row_output(index, rows[index])
            self._rows[index] = rows[index]
        # The cursor is hidden: its position matters only in an input field, for input methods.
        if cursor is not None and cursor not in (self._cursor, (0, 0)):
            output.append(f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H")
            self._cursor = cursor
        return "".join(output)

    def _passed_on(self, data: str) -> str:
        harmless = _HARMLESS.fullmatch(data) is not None and not any(name in data for name in _SCREENS)
        if harmless:
            return data
        self.forget()
        return f"\x1b[0m{data}"

    def _painted(self, data: str) -> tuple[dict[int, _CellRow], tuple[int, int] | None] | None:
        """Return the rows that the output paints, and where it leaves the cursor; None for other output."""
        rows: dict[int, _CellRow] = {}
        look, row, column, position = "0", -1, 0, 0
        moved = False
        for match in _TOKEN.finditer(data):
            if match.start() != position:
                return None
            position = match.end()
            if match["text"] is not None:
                if not 0 <= row < len(self._rows):
                    return None
                if row not in rows:
                    rows[row] = self._rows[row].copy()
                column = _write(rows[row], column, match["text"], look)
                if column > self._width:
                    return None
                moved = False
            elif match["row"] is not None:
                row, column, moved = int(match["row"]) - 1, int(match["column"]) - 1, True
            elif match["sgr"] is not None:
                look = match["sgr"] or "0"
        if position != len(data) or row < 0:
            return None
        return rows, (row, column) if moved else None

    # ------------------------------------------------------------ rows that moved

    def _moved(self, rows: dict[int, _CellRow]) -> list[str]:
        """Have the terminal move rows where that saves output; returns that output."""
        shift = self._shift(rows)
        if not shift:
            return []
        keys = {index: row.key() for index, row in rows.items()}
        matched = [
            index
            for index in rows
            if 0 <= index + shift < len(self._rows)
            and keys[index]
            and keys[index] == self._rows[index + shift].key()
        ]
        if shift > 0:
            top, bottom = min(matched), max(matched) + shift
        else:
            top, bottom = min(matched) + shift, max(matched)
        region = self._rows[top : bottom + 1]
        look = self._blank_look(rows, bottom if shift > 0 else top)
        blanks = [_CellRow.blank(self._width, " ", look) for _ in range(abs(shift))]
        after = [*region[shift:], *blanks] if shift > 0 else [*blanks, *region[:shift]]
        wanted = [rows.get(index, self._rows[index]) for index in range(top, bottom + 1)]
        cost = sum(len(row.changes(before)) for row, before in zip(wanted, region, strict=True))
        moved_cost = sum(len(row.changes(before)) for row, before in zip(wanted, after, strict=True))
        if moved_cost + _MOVE_COST > cost:
            return []
        for index in range(top, bottom + 1):  # what moved away is painted again where nothing comes
            rows.setdefault(index, self._rows[index])
        self._rows[top : bottom + 1] = after
        output = [_transition(self._look, look), f"\x1b[{top + 1};{bottom + 1}r"]
        # Line feeds and reverse line feeds: every terminal has them, unlike SU and SD.
        if shift > 0:
            output += [f"\x1b[{bottom + 1};1H", "\n" * shift]
        else:
            output += [f"\x1b[{top + 1};1H", "\x1bM" * -shift]
        self._look, self._cursor = look, None
        return [*output, "\x1b[r"]

    def _shift(self, rows: dict[int, _CellRow]) -> int:
        """Return by how many rows most of the painted rows moved up (negative: down); 0 for none."""
        if len(rows) <= _MOVED:
            return 0
        before = Counter(self._rows[index].key() for index in rows)
        places = {self._rows[index].key(): index for index in rows}
        shifts: Counter[int] = Counter()
        for index, row in rows.items():
            key = row.key()
            if key and before[key] == 1:
                shifts[places[key] - index] += 1
        best = max(shifts, key=lambda shift: shifts[shift], default=0)
        return best if shifts[best] >= _MOVED else 0

    def _blank_look(self, rows: dict[int, _CellRow], index: int) -> str:
        """Return the look of cells that come in: that of the row's blanks, where erasing gives it to them."""
        looks = Counter(rows[index].looks if index in rows else ())
        look = looks.most_common(1)[0][0] if looks else "0"
        return look if self._erases_in_colour and look and not _look(look).weights & _ON_BLANKS else "0"

    # ------------------------------------------------------------ one row

    def _row_output(self, index: int, row: _CellRow) -> list[str]:
        changed = row.changes(self._rows[index])
        if not changed:
            return []
        output: list[str] = []
        column = -1
        for start, stop in _runs(changed, row):
            if column < 0:
                output.append(f"\x1b[{index + 1};{start + 1}H")
            else:
                output.append(f"\x1b[{start - column}C" if start - column > 1 else "\x1b[C")
            column = self._run_output(row, start, stop, output)
        self._cursor = None
        return output

    def _run_output(self, row: _CellRow, start: int, stop: int, output: list[str]) -> int:
        """Append the output for some cells; returns the column at which it leaves the cursor."""
        while start < stop:
            look = row.looks[start]
            if row.texts[start] == " " and self._look and _serves_blank(self._look, look):
                look = self._look
            end = start + 1
            while end < stop and (
                row.looks[end] == look or (row.texts[end] == " " and _serves_blank(look, row.looks[end]))
            ):
                end += 1
            output.append(_transition(self._look, look))
            self._look = look
            text = "".join([part or "" for part in row.texts[start:end]])
            blanks = end - start - len(text.rstrip(" ")) if text.isascii() else 0
            if blanks >= _ERASE and self._erases_in_colour and not _look(look).weights & _ON_BLANKS:
                output.append(text[: len(text) - blanks])
                if end == self._width:
                    output.append("\x1b[K")
                    return end - blanks
                output.append(f"\x1b[{blanks}X")
                if end == stop:
                    return end - blanks
                output.append(f"\x1b[{blanks}C")
            else:
                output.append(text)
            start = end
        return stop


def _write(row: _CellRow, column: int, text: str, look: str) -> int:
    """Write text into a row; returns the column after it."""
    if column and column < len(row.texts) and row.texts[column] == "":
        row.texts[column - 1] = None  # half of a wide character is overwritten
    if text.isascii():
        stop = column + len(text)
        row.texts[column:stop] = text
        blank = _of_blank(look)
        if blank == look or " " not in text:
            row.looks[column:stop] = [look] * len(text)
        else:
            row.looks[column:stop] = [blank if character == " " else look for character in text]
    else:
        stop = _write_wide(row, column, text, look)
    if stop < len(row.texts) and row.texts[stop] == "":
        row.texts[stop] = None
    return stop


def _write_wide(row: _CellRow, column: int, text: str, look: str) -> int:
    """Write text with wide or combining characters; returns the column after it.

    Left out is what terminals disagree on, so that the rest is in its column: what is joined to an emoji, and
    the selector that makes a narrow character wide, which gets a blank instead. Rich counts like this.
    """
    characters = iter(text)
    for character in characters:
        width = cell_len(character)
        lead = max(column - 1 if column and row.texts[column - 1] else column - 2, 0)
        if character == _JOINER and column > 0:
            next(characters, "")
        elif character == _EMOJI_SELECTOR and column > 0:
            if column < len(row.texts) and _widens(row.texts[lead] or ""):
                row.texts[column], row.looks[column] = " ", look
                column += 1
        elif width == 0 and column > 0:
            row.texts[lead] = (row.texts[lead] or "") + character
        else:
            row.texts[column : column + width] = [character, ""][:width]
            row.looks[column : column + width] = [look] * width
            column += width
    return column


@lru_cache(maxsize=256)
def _widens(character: str) -> bool:
    """Return whether the selector makes a character wide."""
    return cell_len(character + _EMOJI_SELECTOR) > cell_len(character)


def _runs(changed: Sequence[int], row: _CellRow) -> list[tuple[int, int]]:
    """Return changed cells as runs of whole words; with the cells between them where those are few and known.

    Whole words, since a program that reads the screen's output aloud or looks for a word gets no pieces.
    """
    runs: list[list[int]] = []
    for index in changed:
        if runs and index < runs[-1][1]:
            continue
        start, stop = index, index + 1
        first = max(index - _WORD, runs[-1][1] if runs else 0)
        while start > 0 and (row.texts[start] == "" or (start > first and _in_word(row, start - 1))):
            start -= 1
        last = min(index + _WORD, len(row.texts))
        while stop < len(row.texts) and (row.texts[stop] == "" or (stop < last and _in_word(row, stop))):
            stop += 1
        joins = runs and start - runs[-1][1] <= _JOIN
        if joins and None not in row.texts[runs[-1][1] : start]:
            runs[-1][1] = stop
        else:
            runs.append([start, stop])
    return [(start, stop) for start, stop in runs]


def _in_word(row: _CellRow, index: int) -> bool:
    """Return whether a cell is part of a word: a letter, a digit or punctuation."""
    text = row.texts[index]
    return text is not None and (text == "" or (text != " " and text.isascii()) or text.isalpha())


@lru_cache(maxsize=1024)
def _look(sgr: str) -> _Look:
    """Parse the parameters of an SGR sequence that follows a reset."""
    colour = background = ""
    weights: set[str] = set()
    codes = iter(sgr.split(";"))
    for code in codes:
        if code in ("38", "48"):
            kind = next(codes, "")
            parts = [next(codes, "") for _ in range(1 if kind == "5" else 3)]
            value = ";".join([code, kind, *parts])
            colour, background = (value, background) if code == "38" else (colour, value)
        elif code in ("0", ""):
            colour, background, weights = "", "", set()
        elif code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97 or code == "39"):
            colour = "" if code == "39" else code
        elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107 or code == "49"):
            background = "" if code == "49" else code
        else:
            weights.add(code)
    return _Look(colour, background, frozenset(weights))


@lru_cache(maxsize=1024)
def _of_blank(look: str) -> str:
    """Return what of a look is seen on a blank: the background, and lines through it."""
    parsed = _look(look)
    if parsed.weights & _ON_BLANKS:
        return look
    return parsed.background or "0"


@lru_cache(maxsize=4096)
def _serves_blank(look: str, blank: str) -> bool:
    """Return whether a blank that is written with another look than its own is the same to see."""
    one, other = _look(look), _look(blank)
    return one.background == other.background and not (one.weights | other.weights) & _ON_BLANKS


@lru_cache(maxsize=4096)
def _transition(before: str, after: str) -> str:
    """Return the shortest SGR sequence from one look to another; `before` is empty where unknown."""
    if before == after:
        return ""
    old, new = _look(before), _look(after)
    whole = ";".join(["0", *sorted(new.weights), *(part for part in (new.colour, new.background) if part)])
    if not before or old.weights - new.weights:
        return f"\x1b[{whole}m"
    codes = sorted(new.weights - old.weights)
    if new.colour != old.colour:
        codes.append(new.colour or "39")
    if new.background != old.background:
        codes.append(new.background or "49")
    change = ";".join(codes)
    return f"\x1b[{min(change, whole, key=len)}m" if codes else ""
