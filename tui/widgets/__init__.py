"""Widgets, and the pure functions that draw them.

Imports `tui.commands`, `tui.formatting` and the data that is shown (`tui.run_view`, `tui.run_list`); no
screen, no thread, no file. In: frozen values, by `show`. Out: painted lines, and messages on input.
"""
