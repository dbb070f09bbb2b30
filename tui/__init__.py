"""User interface: the Textual app, and the headless commands (`tui.headless`, parsed by `tui.cli`).

Imports `launcher` and `recipes`; nothing imports it. In: keys, arguments, and what the launcher reads of
runs, logs and clusters. Out: screens, text and JSON, and requests to the launcher (submit, cancel, resume).
The modules here are those that several screens share: the app, the table of commands, display formats, and
the threads that poll runs.
"""
