"""GPU and host memory of a recipe, calibrated on measurements (docs/memory.md)."""

from recipes.memory.estimate import Estimate, Phase, demand_of, estimate
from recipes.memory.fit import Option, options
from recipes.memory.shapes import MemoryTerm, Work

__all__ = ["Estimate", "MemoryTerm", "Option", "Phase", "Work", "demand_of", "estimate", "options"]
