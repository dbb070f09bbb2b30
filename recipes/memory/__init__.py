"""GPU and host memory of a recipe, calibrated on measurements (docs/memory.md)."""

from recipes.memory.estimate import Estimate, Phase, demand_of, estimate
from recipes.memory.search import Option, options
from recipes.memory.shapes import Term, Work

__all__ = ["Estimate", "Option", "Phase", "Term", "Work", "demand_of", "estimate", "options"]
