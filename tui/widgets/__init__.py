"""Widgets, and the pure drawing behind them."""
