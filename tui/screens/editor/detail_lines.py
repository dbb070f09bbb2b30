"""The details of one key as facts: what is wrong with it, its value, type, origin, and who follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.text import clean
from tui.formatting import plural
from tui.theme import OUTCOME_MARKS, UNDECIDED
from tui.widgets.fact_lines import Fact, fact_lines

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.editing import KeyDetails, OutlineRow
    from recipes.inheritance import Origin

_MOST_FOLLOWERS = 8
_MOST_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class DetailHints:
    """Keys that the details may name, as they are where the user is."""

    fix: str = "f"
    in_tree: bool = True
    """Whether the keys of the tree do something: in the text mode they are letters of the text."""

    def tail(self, text: str) -> str:
        """Return a remark on a key of the tree, empty where it is none."""
        return f"; {text}" if self.in_tree else ""


TREE_HINTS = DetailHints()
TEXT_MODE_HINTS = DetailHints("F7", in_tree=False)


def detail_lines(
    row: OutlineRow | None, details: KeyDetails, width: int, hints: DetailHints = TREE_HINTS
) -> list[Content]:
    """Return the details of a key in `width` cells; `row` is None for a key that is not set."""
    return fact_lines(detail_facts(row, details, hints), width)


def finding_lines(finding: Result, width: int) -> list[Content]:
    """Return a finding in full: message, what NeMo-RL would say, where it is, and how to fix it."""
    facts = [finding_fact(finding)]
    if finding.foretells:
        facts.append(Fact("predicted", clean(finding.foretells), "dim"))
    facts += [
        Fact("at", clean(f"{line.key}  ({Path(line.file).name}:{line.line})".strip()))
        for line in finding.where
    ]
    facts += [Fact("fixes", clean(fix.title)) for fix in finding.fixes if fix.edits]
    return fact_lines(facts, width)


def detail_facts(
    row: OutlineRow | None, details: KeyDetails, hints: DetailHints = TREE_HINTS
) -> Iterator[Fact]:
    """Yield the facts about a key, the most important first."""
    findings = (item for item in details.findings if item.outcome in ("fail", "warn"))
    yield from (finding_fact(finding, hints.fix) for finding in findings)
    if details.unknown:
        hint = f"; did you mean {details.did_you_mean}?" if details.did_you_mean else ""
        yield Fact(
            "unknown", clean(f"NeMo-RL has no key of this name{hint}"), "$text-warning", UNDECIDED.glyph
        )
    if row is not None and row.state == "commented":
        yield Fact("state", f"commented out{hints.tail('# takes it back in')}")
    elif row is not None:
        yield from _value(row)
    yield from _kind(details)
    if row is None:
        yield Fact("state", f"not set{hints.tail('enter sets it in this file')}")
    elif details.origin is not None:
        yield Fact("from", origin_text(details.origin, row, hints))
    for link in details.replaced[:1] if row is None or not row.size else ():
        yield Fact("replaces", _cut(f"{link.written}  ({place(link.origin)})"))
    yield from _relations(details, hints)
    for text in filter(None, (details.remark.beside, details.remark.above)):
        yield Fact("remark", _cut(text))
    for help_text in details.help:
        yield Fact("help", Content.assemble(_cut(help_text.text), (f"  {clean(help_text.source)}", "dim")))


def finding_fact(finding: Result, fix_key: str = TREE_HINTS.fix) -> Fact:
    """Return a check's finding: its id and its message in full."""
    mark = OUTCOME_MARKS[finding.outcome]
    tail = f" · {fix_key} fixes it" if any(fix.edits for fix in finding.fixes) else ""
    text = Content.assemble(
        (f"{finding.id} ", f"bold {mark.style}"), (clean(finding.message), "$foreground"), (tail, "dim")
    )
    return Fact("check", text, mark.style, mark.glyph)


def _value(row: OutlineRow) -> Iterator[Fact]:
    if row.size:
        noun = "item" if row.kind == "list" else "key"
        yield Fact("holds", plural(row.size, noun))
    elif row.interpolated:
        yield Fact(
            "value", Content.assemble((_cut(row.effective), "bold"), (f"  ↳ {_cut(row.written)}", "dim"))
        )
    else:
        yield Fact("value", Content.assemble((_cut(row.effective or row.written) or "(empty)", "bold")))


def _kind(details: KeyDetails) -> Iterator[Fact]:
    parts = [clean(details.type)] if details.type else []
    parts += [clean(details.unit)] if details.unit else []
    parts += ["required"] if details.required else []
    parts += [f"default {clean(details.default)}"] if details.default else []
    if parts:
        yield Fact("type", " · ".join(parts))
    if details.allowed:
        yield Fact("allowed", _cut("  ".join(details.allowed)))


def _relations(details: KeyDetails, hints: DetailHints) -> Iterator[Fact]:
    chain: Sequence[str] = [clean(link.key) for link in details.chain[1:]]
    if chain:
        yield Fact("follows", " → ".join(chain))
    if details.followers:
        names = [clean(name) for name in details.followers]
        more = f" and {len(names) - _MOST_FOLLOWERS} more" if len(names) > _MOST_FOLLOWERS else ""
        yield Fact("followed by", ", ".join(names[:_MOST_FOLLOWERS]) + more)
    if details.counterpart:
        text = f"{details.counterpart} does not follow: it is {details.counterpart_value}"
        text += hints.tail("B sets both")
        yield Fact("teacher" if details.counterpart.startswith("teacher") else "student", _cut(text))


def origin_text(origin: Origin, row: OutlineRow | None, hints: DetailHints = TREE_HINTS) -> str:
    """Return where a value comes from, in words, with file and line."""
    if origin.how == "override":
        return "an override of the command line"
    where = place(origin)
    if row is not None and row.state == "own":
        return f"this file, line {origin.line}"
    words = {
        "parent": f"inherited from {where}{hints.tail('enter sets it here, o opens it there')}",
        "merge": f"an anchor at {where}",
        "interpolation": f"an interpolation at {where}",
    }
    return words.get(origin.how, where)


def place(origin: Origin) -> str:
    """Return a file's name and line."""
    return clean(f"{Path(origin.file).name}:{origin.line}")


def _cut(text: object) -> str:
    cleaned = clean(str(text))
    return cleaned if len(cleaned) <= _MOST_CHARACTERS else f"{cleaned[:_MOST_CHARACTERS]} …"
