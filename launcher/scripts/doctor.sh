#!/bin/bash
# The doctor's measurements in a job: one process on each node. RUN_DIR is the run's directory; DOCTOR_PYTHON the
# environment's Python, which may not start here: then any Python of the node does.

cd "$RUN_DIR" || exit 3
for python in "${DOCTOR_PYTHON:-}" python3 /usr/bin/python3 ''; do
  [[ -z $python ]] || ! "$python" -c '' 2>/dev/null || break
done
[[ -n $python ]] || { echo "[ERROR] no Python starts on $(hostname): neither ${DOCTOR_PYTHON:-of the checkout} nor python3"; exit 3; }
DOCTOR_NODES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' ')
export DOCTOR_NODES
exec srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --kill-on-bad-exit=0 "$python" doctor_node.py spec.json
