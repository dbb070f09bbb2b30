"""Reading of a run's logs, tracking files and clock files: bytes in, typed events (`events.py`) out.

`sources` finds the files, `follow` reads what is new of each, `scanner` and `search` locate the few lines
that matter, `rules`, `driver_log`, `launcher_log`, `evidence` and `signatures` turn these into events.
`merged_log` gives several logs as one file in order of time. May import `launcher.transports` and the modules
beside the packages (`errors`, `text`); never `launcher.monitor`, `launcher.submit` or `launcher.clusters`.
"""
