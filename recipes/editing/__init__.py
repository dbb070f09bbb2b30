"""Editing of recipes without a screen: text with history, effective tree, live checks and memory, search."""

from recipes.editing.analyser import RecipeAnalyser
from recipes.editing.analysis import Analysis, Placement, Prediction, SupersededError
from recipes.editing.edit_state import EditState, read_text
from recipes.editing.fitting_changes import FittingChange
from recipes.editing.key_details import KeyDetails
from recipes.editing.key_search import KeyMatch
from recipes.editing.legal_values import LegalValue
from recipes.editing.outline import Outline, OutlineRow
from recipes.editing.own_lines import LineRange
from recipes.editing.preflight_changes import PreflightChanges
from recipes.editing.session import EditSession
from recipes.editing.stock_comments import HelpText
from recipes.yaml.reader import prepare_reading

__all__ = [
    "Analysis",
    "EditSession",
    "EditState",
    "FittingChange",
    "HelpText",
    "KeyDetails",
    "KeyMatch",
    "LegalValue",
    "LineRange",
    "Outline",
    "OutlineRow",
    "Placement",
    "Prediction",
    "PreflightChanges",
    "RecipeAnalyser",
    "SupersededError",
    "prepare_reading",
    "read_text",
]
