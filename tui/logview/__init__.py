"""The log view: reading, searching, filtering and drawing of logs of any size, and the pane around it."""
