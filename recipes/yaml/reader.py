"""Reading of a text by OmegaConf's own loader, as a second opinion on ours.

`read` uses OmegaConf's loader class as it is. `read_fast` puts libyaml's scanner under the same
class where PyYAML was built with it: 3 ms instead of 30 for a recipe of 300 lines. The two scanners
differ on tabs and on rare flow syntax, so a text with tabs, or one that libyaml refuses, goes to `read`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from recipes.errors import FilePosition, RecipeError
from recipes.yaml.parser_events import scanners_differ

# Raised by the constructors for scalars that an explicit tag sends to them, and for nesting that is too deep.
_LOADER_FAULTS = (ValueError, TypeError, RecursionError, AttributeError, LookupError, ArithmeticError)


def read(text: str, name: str) -> Any:  # noqa: ANN401 - any YAML
    """Return the data OmegaConf's loader makes of a text; raises `RecipeError` if it refuses it."""
    import yaml

    # OmegaConf opens files in text mode, which makes every line break a \n.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return yaml.load(text, Loader=_loaders()[0])  # noqa: S506 - OmegaConf's loader builds no objects
    except yaml.YAMLError as error:
        raise _explained(error, name) from error
    except _LOADER_FAULTS as error:
        raise RecipeError(f"OmegaConf cannot read it: {error}", where=FilePosition(name)) from error


def read_config(text: str, name: str) -> None:
    """Make OmegaConf's config of a text as `OmegaConf.load` does; raises `RecipeError` if that fails."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    data = read(text, name)
    try:
        OmegaConf.create(data)
    except (OmegaConfBaseException, *_LOADER_FAULTS) as error:
        raise RecipeError(
            f"OmegaConf cannot read it: {str(error).splitlines()[0]}", where=FilePosition(name)
        ) from error


def read_fast(text: str, name: str) -> Any:  # noqa: ANN401
    """Return the same as `read`, faster where libyaml reads the text."""
    import yaml

    loader = _loaders()[1]
    if loader is not None and not scanners_differ(text):
        try:
            return yaml.load(text.removeprefix("\ufeff"), Loader=loader)  # noqa: S506 - the same loader
        except (yaml.YAMLError, *_LOADER_FAULTS):
            pass  # `read` decides
    return read(text, name)


def prepare_reading() -> None:
    """Import what the first edit reads its result with: 0.11 s of CPU, which its key press would wait for."""
    _loaders()


def _explained(error: Exception, name: str) -> RecipeError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = FilePosition(name, mark.line + 1, mark.column + 1) if mark else FilePosition(name)
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or str(error)
    return RecipeError(f"OmegaConf cannot read it: {' '.join(str(problem).split())}", where=position)


@lru_cache(maxsize=1)
def _loaders() -> tuple[Any, Any]:
    """Return OmegaConf's loader class, and the same over libyaml or None."""
    import yaml
    from omegaconf._utils import get_yaml_loader

    loader = get_yaml_loader()
    if not yaml.__with_libyaml__:
        return loader, None
    from yaml._yaml import CParser

    def start(self: Any, stream: str) -> None:  # noqa: ANN401
        CParser.__init__(self, stream)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    return loader, type("FastLoader", (CParser, loader), {"__init__": start})
