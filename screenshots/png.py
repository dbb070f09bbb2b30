"""Pictures as PNG files, for a quick look: in this machine's fonts."""

from __future__ import annotations

import re
from pathlib import Path

# Rich writes each run of equal style as one element with its length; braille is all that a curve has.
_BRAILLE = re.compile(
    r'<text (?P<class>class="[^"]*") x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<length>[\d.]+)"'
    r"(?P<rest>[^>]*)>(?P<text>[^<]*[\u2800-\u28ff][^<]*)</text>"
)


def _spaced(element: re.Match[str]) -> str:
    """Place each character of a curve: the font that has braille is no monospaced one."""
    text = element["text"].replace("&#160;", "\u00a0")
    step = float(element["length"]) / len(text)
    positions = " ".join(f"{float(element['x']) + step * index:.1f}" for index in range(len(text)))
    style = 'style="font-family: DejaVu Sans"'
    return f'<text {element["class"]} {style} x="{positions}" y="{element["y"]}">{text}</text>'


def write_png(svg: str, path: Path) -> None:
    """Write a picture with this machine's fonts: DejaVu Sans Mono lacks braille, and none has the emoji."""
    import cairosvg  # type: ignore[import-untyped]

    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
    svg = _BRAILLE.sub(_spaced, svg)
    svg = re.sub("[\U0001f300-\U0001faff\u23f1]\ufe0f?", "▪", svg)
    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(path))
