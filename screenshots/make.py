"""Make the screenshots: `uv run python screenshots/make.py [--png DIR] [--check]`.

The real app runs without a terminal on a copy of a recorded rehearsal (`sample/`), at a fixed time, and its
wizard on a login node whose Slurm commands are scripts. Its screens are written as SVG beside this file;
`--check` compares them with the existing files instead. `--png` also writes PNG files for a quick look, in
this machine's fonts. `shots` has the pictures, `scenes` what they are of, `taking` takes them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from screenshots.png import write_png  # noqa: E402 - the project is found first
from screenshots.taking import take_all  # noqa: E402


def main() -> int:
    """Make the pictures, or compare; returns 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", metavar="DIR", type=Path, help="also write PNG files there")
    parser.add_argument("--only", metavar="NAME", default="", help="only pictures whose names begin so")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the pictures differ")
    options = parser.parse_args()
    differing = []
    for name, svg in take_all().items():
        if not Path(name).name.startswith(options.only):
            continue
        path = HERE / name
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != svg:
                differing.append(name)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, encoding="utf-8")
        if options.png is not None and path.suffix == ".svg":
            options.png.mkdir(parents=True, exist_ok=True)
            write_png(svg, options.png / f"{path.stem}.png")
    if differing:
        print(f"these pictures differ: {', '.join(differing)}", file=sys.stderr)
        print("  Look at what changed; `uv run python screenshots/make.py` makes them anew.", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
