"""GPU and host memory of a recipe, accounted moment by moment (docs/memory.md)."""

from recipes.memory.demand import Demand, demand_of
from recipes.memory.estimate import Estimate, Phase, estimate
from recipes.memory.fit import Option, options
from recipes.memory.shapes import MemoryTerm, Moment, Work

__all__ = [
    "Demand",
    "Estimate",
    "MemoryTerm",
    "Moment",
    "Option",
    "Phase",
    "Work",
    "demand_of",
    "estimate",
    "options",
]
