"""Model facts: heads, layers, vocabulary …; from its files, the Hugging Face cache or a built-in table."""

from recipes.models.facts import ModelFacts, Source, UnknownModel
from recipes.models.hub import Hub, Models

__all__ = ["Hub", "ModelFacts", "Models", "Source", "UnknownModel"]
