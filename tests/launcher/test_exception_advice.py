"""Advice for exceptions without a signature, and the place in the code that raised them."""

from __future__ import annotations

import pytest

from launcher.logs.events import Role
from launcher.monitor.exception_advice import advice_for, class_name
from tests.launcher.test_diagnosis import state_of


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("ModuleNotFoundError: No module named 'x'", "PYTHONPATH"),
        ("ImportError: cannot import name 'a' from 'b'", "two environments"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a'", "every node"),
        ("KeyError: 'problem'", "columns of the data set"),
        ("TypeError: Adam.__init__() got an unexpected keyword argument 'b'", "does not know the setting"),
        ("AttributeError: module 'a' has no attribute 'b'", "different releases"),
        ("AttributeError: 'NoneType' object has no attribute 'b'", "Read the traceback"),
        ("my.errors.Odd: x", "Read the traceback"),
    ],
)
def test_an_exception_s_class_tells_what_to_look_at(message: str, words: str) -> None:
    assert words in advice_for(message, "")
    assert advice_for(message, "a/b.py:3, in f").startswith("Raised at a/b.py:3, in f. ")


def test_a_class_has_its_name_without_its_module() -> None:
    assert class_name("huggingface_hub.errors.EntryNotFoundError: 404: x.y") == "EntryNotFoundError"
    assert class_name("TimeoutError") == "TimeoutError"


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (["/w/run.py", "/p/my/env.py", "/v/site-packages/x/y.py"], "p/my/env.py:3, in f"),
        (["/v/bin/ray", "/v/site-packages/ray/scripts/scripts.py"], "ray/scripts/scripts.py:3, in f"),
        (["/v/lib/python3.12/runpy.py", "<frozen os>"], "<frozen os>:3, in f"),
    ],
)
def test_the_innermost_frame_that_is_no_library_s_is_the_place(frames: list[str], place: str) -> None:
    lines = ["Traceback (most recent call last):"]
    for path in frames:
        lines += [f'  File "{path}", line 3, in f', "    g()"]
    log = "\n".join([*lines, "ValueError: x", ""]).encode()
    root = state_of(("train.log", Role.DRIVER, log)).diagnosis.root
    assert root is not None
    assert root.fix.startswith(f"Raised at {place}. ")
