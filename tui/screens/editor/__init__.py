"""The recipe editor: effective tree and text in step, with checks and memory while a value is typed."""
