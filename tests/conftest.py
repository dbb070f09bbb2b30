"""Shared fixtures."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).parent.parent
settings.register_profile(
    "fast",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=2000)
# The same examples each time, and none made smaller: tests/mutation asks only whether a test fails.
settings.register_profile(
    "mutation",
    settings.get_profile("fast"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Under nohup, or behind `&` in a script, they are ignored, which is inherited: bash cannot trap them then.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the modules that start a Ray cluster begin: they take longest, and would else be waited for."""
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the directory of test data that does not come with the project; skip without it."""
    path = Path(os.environ.get("DISTILL_TUI_TEST_DATA", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no test data in {path} (DISTILL_TUI_TEST_DATA)")
    return path


@pytest.fixture(scope="session", autouse=True)
def schema_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep schemas in a directory of the tests instead of the user's cache."""
    directory = tmp_path_factory.mktemp("schema-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.schema.checkout_schema.default_directory", lambda: directory)
        yield directory


@pytest.fixture
def cases() -> Path:
    """Return the project's own small cases."""
    return Path(__file__).parent / "cases"
