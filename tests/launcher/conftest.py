"""Settings of the launcher's tests."""

from __future__ import annotations

import os

# Read when numpy is loaded. The rehearsal's matrices are so small that a second thread on a busy machine
# makes them seven times slower (measured on 2 cores).
os.environ.setdefault("OMP_NUM_THREADS", "1")
