"""Storage of runs: what a run will write, where that lies, better directories, disk use, moves.

`size` is pure; `location` asks the file system, each question with a deadline; `decision` puts both into the
question that is asked once; `disk_use` counts, `moving` moves, `removal` removes checkpoints.
`drafts` keeps unsaved edits of recipes, `editors` tells open editors of each other.
"""
