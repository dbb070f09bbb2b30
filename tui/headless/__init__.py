"""The commands that need no screen. Each module registers its commands with `add_parsers`."""
