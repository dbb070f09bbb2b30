"""The tables of keys in docs/monitor.md: `python -m tui.commands`."""

from tui.commands import key_tables

if __name__ == "__main__":
    print(key_tables(), end="")
