"""The checks as a table for the docs: `python -m launcher.doctor.check_docs`."""

from __future__ import annotations

from launcher.doctor.check_table import CHECKS

_STATIONS = {"login": "login node", "node": "node", "nodes": "between nodes"}


def table() -> str:
    """Return a Markdown table of all checks."""
    rows = ["| id | check | where | passes when | foretells |", "|---|---|---|---|---|"]
    for check in CHECKS:
        meaning = (check.judge.__doc__ or "").partition(": ")[2].split("\n", maxsplit=1)[0].rstrip(".")
        foretells = ", ".join(f"`{name}`" for name in check.foretells) or "–"
        rows.append(f"| {check.id} | {check.title} | {_STATIONS[check.station]} | {meaning} | {foretells} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
