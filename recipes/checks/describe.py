"""The rules as a table for the docs: `python -m recipes.checks.describe`."""

from __future__ import annotations

from recipes.checks.engine import RULES


def table() -> str:
    """Return a Markdown table of all rules."""
    rows = ["| id | condition | error from NeMo-RL | source in NeMo-RL |"]
    rows.append("|---|---|---|---|")
    for rule in RULES:
        cells = (rule.id, rule.title, rule.foretells, rule.source_file)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
