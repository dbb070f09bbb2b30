"""Screens and dialogs of the app.

A screen lays out widgets, starts a poller on a thread and shows the messages that it posts; it reaches the
app only through `tui.screens.host.Host`. Imports `tui.widgets`, `tui.logview`, the modules of `tui` and the
launcher. In: keys and messages. Out: what is painted, and requests to the host or the launcher.
"""
