"""Our typing of plain scalars against the three readers themselves."""

from __future__ import annotations

import math
import re
import string
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf._utils import get_yaml_loader
from ruamel.yaml import YAML

from recipes.yaml.scalars import Unreadable, read_omegaconf, read_pyyaml, read_ruamel, same

TABLE = re.findall(
    r"\S+",
    """
1e-5 1e5 1E5 1.0e5 1.0e+5 .5 .5e3 .5e+3 5. 012 0o17 08 0x1F 0X1F 0b11 0b_ 4:00:00 1:30 190:20:30.15 -1:30
2024-01-02 2024-01-02T03:04:05Z yes Yes yES no on Off y n Y N true TRUE tRue null Null ~ NULL nil 1_000
1__0 _1 +1 -0
.inf -.INF +.inf .nan .NaN .Nan nan inf 1.5.2 1e 1e+ e5 0 00 0_ 1:60 01:30 9:59 = << - ? : a:b 1.7B 1-2
-1 +.5 -.5 ._
1:00:00:00 00:03:45:00 3:45 0.0 -0.0 1e400 123456789012345678901234567890 0777 0o 0x 1,000 1.0e1 12e03
+12e03 1.e5
""",
)
CHARACTERS = "0123456789_.:+-eExXobnaifltruysNOFTAIB~=" + string.ascii_lowercase[:4]


def by_reader(loader: Any, text: str) -> Any:
    try:
        return yaml.load(f"k: {text}", Loader=loader)["k"]
    except (yaml.YAMLError, ValueError, OverflowError):
        return Unreadable(text)


def agrees(ours: Any, theirs: Any, text: str) -> bool:
    if isinstance(theirs, str | int | float | bool | None):
        return same(ours, theirs) or (isinstance(theirs, str) and theirs != text)
    return isinstance(ours, Unreadable)


def check(text: str) -> None:
    assert agrees(read_omegaconf(text), by_reader(get_yaml_loader(), text), text), text
    assert agrees(read_pyyaml(text), by_reader(yaml.SafeLoader, text), text), text
    try:
        theirs: Any = YAML(typ="safe", pure=True).load(f"k: {text}")["k"]
    except Exception as error:  # noqa: BLE001 - ruamel.yaml raises whatever its converters raise
        theirs = Unreadable(str(error))
    ours = read_ruamel(text)
    assert agrees(ours, theirs, text) or isinstance(theirs, Unreadable), text


def test_a_table_of_tricky_scalars() -> None:
    for text in TABLE:
        if text not in ("-", "?", ":"):
            check(text)


@given(st.text(CHARACTERS, min_size=1, max_size=9))
@settings(max_examples=120)
def test_random_scalars(text: str) -> None:
    if not re.match(r"[-?:] |[-?:]$|.*:$", text):
        check(text)


def test_same_minds_types_order_and_nan() -> None:
    assert same(math.nan, math.nan)
    assert same({"a": [1, None]}, {"a": [1, None]})
    assert not same(1, 1.0)
    assert not same(1, True)
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same([1], [1, 2])
