"""Picture of a rank's memory, moment by moment: `python -m recipes.memory.moments_picture > FILE.svg`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from recipes.memory.allocator import limit
from recipes.memory.shapes import SLACK_GIB, MemoryTerm, Moment, Work
from recipes.memory.training import student_moments
from recipes.memory.wrapping import V1, V2_HOLDING, Wrapping
from recipes.models.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLE = Work(TABLE["Qwen/Qwen3-8B"], gpus=8, tokens=2048, micro_batches=32, wrapping=V2_HOLDING)
"""The student of the picture: eight GPUs, sequences of 2048 tokens."""
_COLOURS = {
    "weights": "#4e79a7",
    "Adam": "#76a5d0",
    "gradients": "#a0cbe8",
    "gathered embedding and head": "#59a14f",
    "last layer, not resharded": "#8cd17d",
    "layers gathered again and held": "#e15759",
    "activations": "#f28e2b",
    "logits": "#b07aa1",
    "head's gradient": "#b6992d",
    "one layer's backward pass": "#ffbe7d",
    "root's gradients": "#9c755f",
    "first layer's gradients": "#d7b5a6",
    "optimizer temporaries": "#86bcb6",
}
_OTHER = "other"
_GREY = "#bab0ac"
_LEFT, _WIDTH, _ROW, _BAR, _TOP = 250, 520, 30, 20, 46
_SMALLEST = 0.05


def picture(work: Work = EXAMPLE) -> str:
    """Return the moments of both workers as stacked bars, with the least limit, as SVG."""
    panels = [(name, student_moments(replace(work, wrapping=way))) for name, way in _ways()]
    widest = max(limit(moments) for _, moments in panels)
    scale = _WIDTH / widest
    parts: list[str] = []
    top = _TOP
    for name, moments in panels:
        parts.append(_text(10, top - 14, f"DTensor {name}", weight="bold"))
        for moment in moments:
            parts.extend(_bar(moment, top, scale))
            top += _ROW
        parts.append(_limit(moments, top, scale))
        top += 2 * _ROW
    parts.extend(_axis(top - _ROW, widest, scale))
    parts.extend(_legend(top + 6))
    height = top + 6 + 18 * ((len(_COLOURS) + 3) // 3) + 12
    size = f'viewBox="0 0 {_LEFT + _WIDTH + 70} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join((head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>")) + "\n"


def _ways() -> Iterator[tuple[str, Wrapping]]:
    yield "v1", V1
    yield "v2, as NeMo-RL v0.7 has it", V2_HOLDING


def _bar(moment: Moment, top: float, scale: float) -> Iterator[str]:
    yield _text(10, top + 14, moment.title)
    left = float(_LEFT)
    for name, gib in _shares(moment.terms):
        width = gib * scale
        colour = _COLOURS.get(name, _GREY)
        area = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"'
        yield f'<rect {area} fill="{colour}"><title>{name}: {gib:.2f} GiB</title></rect>'
        left += width
    yield _text(left + 5, top + 14, f"{moment.gib:.1f}")


def _shares(terms: Sequence[MemoryTerm]) -> list[tuple[str, float]]:
    """Return the terms that are seen, in the legend's order, and the rest together."""
    sizes = {term.name: term.gib for term in terms if term.name in _COLOURS and term.gib >= _SMALLEST}
    rest = sum(term.gib for term in terms) - sum(sizes.values())
    return [*((name, sizes[name]) for name in _COLOURS if name in sizes), (_OTHER, rest)]


def _limit(moments: Sequence[Moment], bottom: float, scale: float) -> str:
    """Return the line of the least limit: the highest of moment, slack and block."""
    value = limit(moments)
    x = _LEFT + value * scale
    top = bottom - _ROW * len(moments)
    line = f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="black" stroke-dasharray="4 3"/>'
    words = f"needed by the allocator: {value:.1f} GiB (moment + {SLACK_GIB} + largest block)"
    return line + _text(x, bottom + 12, words, anchor="end")


def _axis(top: float, widest: float, scale: float) -> Iterator[str]:
    for value in range(0, int(widest) + 1, 10):
        yield _text(_LEFT + value * scale, top + 22, f"{value} GiB", anchor="middle", colour="#555")


def _legend(top: float) -> Iterator[str]:
    for number, (name, colour) in enumerate((*_COLOURS.items(), (_OTHER, _GREY))):
        x, y = 10 + 265 * (number % 3), top + 18 * (number // 3)
        yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>' + _text(x + 18, y + 11, name)


def _text(
    x: float, y: float, words: str, *, weight: str = "normal", anchor: str = "start", colour: str = "black"
) -> str:
    style = f'font-weight="{weight}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y}" {style}>{words}</text>'


if __name__ == "__main__":
    sys.stdout.write(picture())
