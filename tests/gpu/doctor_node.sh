#!/bin/bash
# The doctor's node part on a machine with GPUs, without Slurm: measures this node and prints the verdicts.
#
#   bash tests/gpu/doctor_node.sh [VENV …]     Python environments to examine; default: the one that `python3` belongs to
#
# Needs the project's own environment for the verdicts (DISTILL_TUI_PYTHON, default .venv/bin/python, else python3 with
# pydantic); without it the measurements alone are printed. Results go to $OUT, else to a temporary directory.
set -u -o pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-$(mktemp -d)}
python=${DISTILL_TUI_PYTHON:-$root/.venv/bin/python}
[[ -x $python ]] || python=python3
(($#)) || set -- "$(python3 -c 'import sys; print(sys.prefix)')"
mkdir -p "$out"
echo sings >"$out/canary.txt"
python3 - "$out" "$@" <<'PY'
import json
import sys
from pathlib import Path

out, *venvs = sys.argv[1:]
names = ["torch", "ray", "transformers", "vllm", "transformer_engine", "flash_attn"]
labels = ["driver", *(Path(venv).name for venv in venvs[1:])]
spec = {
    "out": out,
    "venvs": {label: {"path": venv, "imports": names} for label, venv in zip(labels, venvs)},
    "suffix": "",
    "tmp": "/tmp",
    "canary": {"path": f"{out}/canary.txt", "text": "sings\n"},
    "internet": ["huggingface.co:443"],
    "limit_s": 120,
}
Path(out, "spec.json").write_text(json.dumps(spec))
PY
time python3 "$root/launcher/scripts/doctor_node.py" "$out/spec.json" || exit 1
cd "$root" || exit 1
"$python" - "$out" <<'PY' || cat "$out"/doctor-*.json
import json
import sys
from pathlib import Path

from launcher.doctor.check_table import NODE_CHECKS
from launcher.doctor.runner import examine
from launcher.doctor.subject import JobSize, Subject
from launcher.sites import Site
from launcher.transports.local import LocalTransport

measured = {path.stem.removeprefix("doctor-"): json.loads(path.read_text()) for path in Path(sys.argv[1]).glob("doctor-*.json")}
site = Site("here", "this machine", (), (), ())
subject = Subject(LocalTransport(), {}, {}, site, Path(sys.argv[1]), JobSize(), measured=measured)
for item in examine(NODE_CHECKS, subject, limit_s=20).examinations:
    print(f"{item.verdict.outcome:7} {item.check.id} {item.check.title}: {item.verdict.evidence}")
PY
