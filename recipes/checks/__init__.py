"""Start-up failures of NeMo-RL that can be predicted: one object per rule, with fixes that were tried."""

from recipes.checks.core import ClusterRequest, Context, Inputs, RecipeLine, Result, Rule
from recipes.checks.engine import RULES, Checker, Report, apply, is_skipped, skip_id

__all__ = [
    "RULES",
    "Checker",
    "ClusterRequest",
    "Context",
    "Inputs",
    "RecipeLine",
    "Report",
    "Result",
    "Rule",
    "apply",
    "is_skipped",
    "skip_id",
]
