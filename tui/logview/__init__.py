"""Log view: reading, searching, filtering, merging and painting of logs of any size.

Imports `launcher.logs`, the transports and `tui.widgets`; no screen. In: paths of logs, read through a
transport by one thread (`log_reader`), and input. Out: painted lines, and messages on the view's status.
`pane` is the part that a screen uses; `view` paints lines, `navigator` moves it to matches and jumps' lines.
"""
