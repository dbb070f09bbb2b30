"""Writing the reads of known releases into the package: `python -m recipes.reads.ship DIR …`.

Each DIR is the checkout of a release, named like it, in the order of the releases; the newest is the last.
"""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from recipes.drivers import driver_scripts
from recipes.reads.description import FORMAT
from recipes.reads.reads_cache import INDEX, SHIPPED, digest
from recipes.reads.walk import walk


def ship(roots: Sequence[Path], target: Path = SHIPPED) -> list[str]:
    """Write the reads of all distillation drivers of some releases, and return the files' names."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    entries = []
    for root in roots:
        for script in driver_scripts(root):
            if "distillation" not in script:
                continue
            reads = walk(root, script)
            if reads is None:
                continue
            name = f"{root.name}-{Path(script).stem}.json.z"
            (target / name).write_bytes(zlib.compress(reads.to_json().encode(), 9))
            files = {path: digest((root / path).read_bytes()) for path in reads.files}
            entries.append({"name": name, "release": root.name, "script": script, "files": files})
    index = json.dumps({"format": FORMAT, "entries": entries}, separators=(",", ":"))
    (target / INDEX).write_bytes(zlib.compress(index.encode(), 9))
    return [str(entry["name"]) for entry in entries]


if __name__ == "__main__":
    print("\n".join(ship([Path(argument) for argument in sys.argv[1:]])))
