"""The wizard: from nothing to a submitted run, step by step.

`model` is what is typed and what it means, without a screen; `lookout` finds out what a draft comes to, on a
thread; `pages` says it in words; `screen` shows it.
"""
