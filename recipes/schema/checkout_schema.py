"""The schema of a driver: which values its classes accept, and what is known of each key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.schema.algorithms import algorithm_of_driver, driver_of_algorithm
from recipes.schema.quick import surely_accepts
from recipes.schema.root_conditions import LateRoot, holds, part_of
from recipes.schema.schema_cache import Store, default_directory

if TYPE_CHECKING:
    from recipes.schema.explain import SchemaProblem
    from recipes.schema.types import Description


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the classes say of a recipe: `late` is the later step that refuses it, None for the start.

    `certain`: the code surely comes to where the value is refused.
    """

    problem: SchemaProblem
    title: str
    late: LateRoot | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Compiled:
    """The validators' data: core schemas by class, and what is needed beside them."""

    root: str
    validates: bool
    cores: Mapping[str, Any]
    late: tuple[LateRoot, ...]
    unknown: tuple[str, ...]
    release: str
    pydantic: str
    """The version of pydantic_core that made the core schemas, "" where they were written directly."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Compiled:
        """Read what is kept."""
        late = tuple(LateRoot(id_, path, tuple(all_of), where) for id_, path, all_of, where in data["late"])
        unknown = tuple(data["unknown"])
        return cls(
            data["root"], data["validates"], data["cores"], late, unknown, data["release"], data["pydantic"]
        )


@dataclass
class Schema:
    """The classes that a driver applies to a recipe, of a checkout or as shipped.

    `shipped` is the release whose classes these are where there is no checkout, "" for a checkout's own.
    """

    driver: str
    root: Path | None
    directory: Path
    shipped: str = ""
    _validators: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def description(self) -> Description:
        """The classes, described."""
        from recipes.schema import shipped
        from recipes.schema.types import from_json

        if self.root is None:
            return shipped.description(self.driver)
        kept = Store(self.root, self.driver, self.directory).load("description", {})
        return from_json(kept) if kept is not None else self._read[0]

    @cached_property
    def _read(self) -> tuple[Description, tuple[str, ...]]:
        """The classes, read from the checkout's sources, and which of its files that took."""
        from recipes.schema.roots import read_description
        from recipes.schema.types import to_json

        assert self.root is not None
        made, sources = read_description(self.root, self.driver)
        Store(self.root, self.driver, self.directory).save("description", {}, sources, to_json(made))
        return made, sources

    @cached_property
    def compiled(self) -> Compiled:
        """The validators' data, from the cache if it has them."""
        store = Store(self.root or Path(__file__).parent, self.driver, self.directory)
        kept = store.load("core", {})
        if kept is None or (kept["pydantic"] and kept["pydantic"] != _pydantic()):
            made, sources = self._read if self.root is not None else (self.description, ("shipped.json",))
            kept = _compiled(made)
            if kept.pop("plain"):
                store.save("core", {}, sources, kept)
        return Compiled.of(kept)

    def _validator(self, class_id: str) -> Any:  # noqa: ANN401 - a SchemaValidator
        if class_id not in self._validators:
            from pydantic_core import SchemaValidator

            from recipes.schema.core_schema import restored

            self._validators[class_id] = SchemaValidator(restored(self.compiled.cores[class_id]))
        return self._validators[class_id]

    def judge(self, values: Mapping[str, Any]) -> list[Judgement]:
        """Return what the classes refuse of a recipe's values, as the driver would apply them.

        Where the driver validates nothing (NeMo-RL up to v0.6), types are judged strictly, as nothing
        converts them either, and keys may be missing.
        """
        compiled = self.compiled
        name = compiled.root.rpartition(":")[2]
        strict = not compiled.validates
        result = [
            Judgement(problem, name, certain=compiled.validates)
            for problem in self._problems(compiled.root, values, strict=strict)
        ]
        for late in compiled.late if compiled.validates else ():
            reached = [holds(condition, values) for condition in late.conditions]
            part = part_of(values, late.path)
            if False not in reached and part is not None and part != {} and not result:
                for problem in self._problems(late.class_id, part, strict=False):
                    below = replace(problem, path=(*late.path.split("."), *problem.path))
                    title = late.class_id.rpartition(":")[2]
                    result.append(Judgement(below, title, late, certain=None not in reached))
        return result

    def _problems(self, class_id: str, values: object, *, strict: bool) -> list[SchemaProblem]:
        core = self.compiled.cores[class_id]
        if not self.compiled.pydantic and surely_accepts(core, values, strict=strict):
            return []
        from pydantic_core import ValidationError

        from recipes.schema.explain import SchemaProblem, problems

        try:
            self._validator(class_id).validate_python(values, strict=strict)
        except ValidationError as error:
            details = error.errors(include_url=False)
            return problems(item for item in details if not (strict and _whole_float(item)))
        except (TypeError, RecursionError) as error:
            return [SchemaProblem((), "type", "readable by pydantic", str(error), values)]
        return []


def _whole_float(error: Mapping[str, Any]) -> bool:
    """Tell whether a float with a whole value stands for an int: `${div:…}` makes such ones."""
    value = error.get("input")
    return error["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def _pydantic() -> str:
    import pydantic_core

    return str(pydantic_core.__version__)


def _compiled(made: Description) -> dict[str, Any]:
    """Make core schemas of the classes: directly where that is certain, else by pydantic."""
    from recipes.schema.direct import DirectBuilder, NotDirectError
    from recipes.schema.types import to_json

    roots = (made.root, *(item.class_id for item in made.late))
    refused: set[str] = set()
    plain, version = True, ""
    try:
        direct = DirectBuilder(made, lenient=not made.validates)
        cores: dict[str, Any] = {id_: direct.core_schema(id_) for id_ in roots}
    except NotDirectError:
        cores, refused, plain = _by_pydantic(made, roots)
        version = _pydantic()
    unknown = [f"{item.name} ({item.file}:{item.line}): {item.unknown}" for item in made.incomplete(roots)]
    unknown += [f"{id_.rpartition(':')[2]}: pydantic cannot make it" for id_ in sorted(refused)]
    data = to_json(made)
    return {
        "root": made.root, "validates": made.validates, "cores": cores, "late": data["late"],
        "unknown": unknown, "release": made.release, "plain": plain, "pydantic": version,
    }  # fmt: skip


def _by_pydantic(made: Description, roots: Iterable[str]) -> tuple[dict[str, Any], set[str], bool]:
    """Have pydantic make core schemas; return also the classes it refuses, and whether all is plain data."""
    from recipes.schema.build import Builder
    from recipes.schema.core_schema import NotPlainError, as_data

    builder = Builder(made, lenient=not made.validates)
    cores = {id_: builder.core_schema(id_) for id_ in roots}
    try:
        return {id_: as_data(core) for id_, core in cores.items()}, builder.refused, True
    except NotPlainError:
        return cores, builder.refused, False


def schema_of(driver: str, checkout: Path | None, directory: Path | None = None) -> Schema | None:
    """Return the schema of a driver (a module, or a script's path in the checkout).

    Without a checkout, or where it has no such driver, it is the shipped one of the newest release; None
    where there is none of that either. `directory` is where schemas are kept; the default is the user's
    cache.
    """
    directory = directory or default_directory()
    if checkout is not None:
        schema = Schema(driver, checkout, directory)
        try:
            schema.compiled  # noqa: B018 - reads it, or finds that there is nothing to read
        except LookupError:
            pass
        else:
            return schema
    from recipes.schema import shipped

    module = driver_of_algorithm(algorithm_of_driver(driver))
    return Schema(module, None, directory, shipped=shipped.release()) if module in shipped.drivers() else None


@dataclass
class Schemas:
    """The schemas of one process, each read at most once."""

    directory: Path | None = None
    _schemas: dict[tuple[str, Path | None], Schema | None] = field(default_factory=dict)

    def of(self, driver: str, checkout: Path | None) -> Schema | None:
        """Return the schema of a driver; see `schema_of`."""
        key = (driver, checkout)
        if key not in self._schemas:
            self._schemas[key] = schema_of(driver, checkout, self.directory)
        return self._schemas[key]
