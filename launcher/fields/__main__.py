"""`python -m launcher.fields` prints the table of fields."""

import sys

from launcher.fields import table

sys.stdout.write(table())
