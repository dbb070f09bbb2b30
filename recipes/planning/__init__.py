"""Legal sizes for a recipe, and going from one size to another."""

from recipes.planning.edits import Fix, RecipeEdit, overrides_of
from recipes.planning.setup import Setup, Side
from recipes.planning.sizes import Parallel

__all__ = ["Fix", "Parallel", "RecipeEdit", "Setup", "Side", "overrides_of"]
