"""The bound of what interpolations make is never below what OmegaConf makes of them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from recipes import bounds
from recipes.chain import Chain, source_of
from recipes.reference import ResolveError, resolve_by_omegaconf
from recipes.yaml.parse import parse

FORMS = (
    "${NAME}",
    "x${NAME}y",
    "${NAME}${NAME}",
    "${ NAME }",
    "${oc.select:NAME}",
    "${oc.create:{p: ${NAME}}}",
)
LAST = 5


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Return recipes whose keys refer to keys before them, as texts, sections and lists."""
    lines = ["k0: {x: 1, y: [long text, 2]}", "k1: some text"]
    for number in range(2, LAST + 1):
        names = st.sampled_from([f"k{index}" for index in range(number)] + ["k0.y", "k0.y.0", "k0.x"])
        forms = st.builds(lambda form, name: form.replace("NAME", name), st.sampled_from(FORMS), names)
        value = draw(
            st.one_of(
                forms.map(lambda text: f"'{text}'"),
                st.lists(forms, max_size=3).map(
                    lambda items: "[" + ", ".join(f"'{item}'" for item in items) + "]"
                ),
                st.lists(forms, max_size=3).map(
                    lambda items: (
                        "{" + ", ".join(f"m{index}: '{item}'" for index, item in enumerate(items)) + "}"
                    )
                ),
            )
        )
        lines.append(f"k{number}: {value}")
    return "\n".join(lines) + "\n"


def count(data: object) -> int:
    """Return how many values there are in data, this one included."""
    if isinstance(data, dict):
        return 1 + sum(map(count, data.values()))
    return 1 + sum(map(count, data)) if isinstance(data, list) else 1


@given(documents())
@settings(max_examples=25)
def test_the_bound_is_an_upper_bound(text: str) -> None:
    source = source_of(Path("r.yaml"), parse(text, "r.yaml"))
    try:
        values = resolve_by_omegaconf(Chain(source, ()), [])
    except ResolveError:
        return  # a section inside a text
    upper = bounds._Bounds(source.values)
    for key, value in source.values.items.items():
        extent, made = upper.of(value, (key,), 0).extent, values[str(key)]
        assert extent.values >= count(made)
        assert not isinstance(made, str) or extent.characters >= len(made)
