"""The rules by release, as a table for the docs: `python -m recipes.checks.releases DIR …`.

Each DIR is a checkout, named like its release. "yes": the rule applies as to the newest one; "differs": with
another condition or text; "–": there is no such failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.checks.checkout import Checkout
from recipes.checks.engine import RULES
from recipes.checks.rule_sources import FEATURES, FORMS

APPLIES, DIFFERS, MISSING = "yes", "differs", "–"


def state(checkout: Checkout, id_: str) -> str:
    """Return whether a rule applies to a checkout, differs or does not exist."""
    if not checkout.has_rule(id_):
        return MISSING
    forms = FORMS.get(id_, ())
    return DIFFERS if any(checkout.has(name) != FEATURES[name].newest for name in forms) else APPLIES


def table(roots: Sequence[Path]) -> str:
    """Return a Markdown table of all rules by checkout."""
    checkouts = [Checkout.at(root) for root in roots]
    names = [root.name for root in roots]
    lines = [f"| rule | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    lines += [
        f"| {rule.id} {rule.title} | {' | '.join(state(checkout, rule.id) for checkout in checkouts)} |"
        for rule in RULES
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table([Path(argument) for argument in sys.argv[1:]]), end="")
