"""What a person sees and types; the command line is in `tui.cli`."""
