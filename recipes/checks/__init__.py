"""Start-up failures of NeMo-RL that can be foretold: one object per rule, with fixes that were tried."""

from recipes.checks.core import Context, Inputs, Request, Result, Rule, Where
from recipes.checks.engine import RULES, Checker, Report, apply

__all__ = ["RULES", "Checker", "Context", "Inputs", "Report", "Request", "Result", "Rule", "Where", "apply"]
