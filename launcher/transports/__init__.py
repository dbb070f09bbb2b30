"""Where commands run and files lie."""
