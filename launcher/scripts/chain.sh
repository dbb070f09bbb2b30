#!/bin/bash
# What the jobs of a chain do besides ray_bare.sub. A chain is several Slurm jobs of one name, one after another
# (--dependency=singleton), each of which resumes from the last checkpoint.
#
#   chain.sh left         print the seconds that the job has left
#   chain.sh save-by      print a value for checkpoint_must_save_by: when the driver must save and stop, DD:HH:MM:SS
#   chain.sh end CODE     ray_bare.sub has ended with CODE: cancel what is left of the chain if there is no more to do
#
# Needs SLURM_JOB_ID, SLURM_JOB_NAME and BASE_LOG_DIR; save-by in a container, which has no squeue, needs
# CHAIN_JOB_END instead of the first: when the job ends, in seconds since 1970. The driver's clock starts after its
# set-up.

set -u -o pipefail

# A duration of Slurm (D-HH:MM:SS, HH:MM:SS, MM:SS) in seconds; fails for anything else.
in_seconds() {
  local days=0 rest=$1 total=0 part
  [[ $rest =~ ^([0-9]+-)?[0-9]+(:[0-9]+){1,2}$ ]] || return 1
  if [[ $rest == *-* ]]; then days=${rest%%-*} rest=${rest#*-}; fi
  for part in ${rest//:/ }; do total=$((total * 60 + 10#$part)); done
  echo $((10#$days * 86400 + total))
}

# Seconds that set-up took in log directory $1, from the driver's start on; fails where that cannot be told.
measured_setup() {
  local at done_at began
  at=$(grep -abo -m 1 'SETUP COMPLETE' "$1/ray-driver.log" | head -n 1 | cut -d: -f1) && [[ -n $at ]] || return 1
  done_at=$(awk -F'\t' -v at="$at" '$2 == "ray-driver.log" && $3 > at { print $1; exit }' "$1/log-clock.tsv")
  began=$(awk -F'\t' '$2 == "ray-driver.log" { print $1; exit }' "$1/log-clock.tsv")
  [[ -n $done_at && -n $began ]] && echo $((done_at - began))
} 2>/dev/null

seconds_left() {
  if [[ -n ${CHAIN_JOB_END:-} ]]; then
    echo $((CHAIN_JOB_END - $(date +%s)))
  else
    in_seconds "$(squeue -h -j "$SLURM_JOB_ID" -o %L)"
  fi
}

save_by() {
  local left setup='' directory save budget
  left=$(seconds_left) || left=3600
  # Of the job before, whose directory is the youngest that says it.
  while read -r _ directory; do
    setup=$(measured_setup "$directory") && break
  done < <(stat -c '%Y %n' "$BASE_LOG_DIR"/*-logs 2>/dev/null | sort -rn)
  # Not measured yet: up to half an hour, as large models take.
  [[ -n $setup ]] || setup=$((left * 3 / 10 < 1500 ? left * 3 / 10 : 1500))
  save=$((left / 20 < 300 ? left / 20 : 300))
  # 25: the driver's grace at the end, and some seconds to notice.
  budget=$((left - setup * 6 / 5 - save - 25))
  ((budget > 0)) || budget=1
  printf '%02d:%02d:%02d:%02d\n' $((budget / 86400)) $((budget / 3600 % 24)) $((budget / 60 % 60)) $((budget % 60))
}

# Why the chain is over, if it is.
verdict() {
  case $1 in
    0) tail -c 20000 "$BASE_LOG_DIR/$SLURM_JOB_ID-logs/ray-driver.log" | grep -q 'Timeout has been reached' ||
      echo 'the run is finished' ;;
    129 | 130 | 137 | 143) ;; # stopped: time limit, preemption
    *) echo "the run failed (exit code $1)" ;;
  esac
}

end_chain() {
  local why rest try
  why=$(verdict "$1")
  [[ -n $why ]] || { echo 'chain.sh: to be continued by the next job'; return; }
  for try in 1 2 3 4 5; do
    if rest=$(squeue -h -u "$(id -un)" -n "$SLURM_JOB_NAME" -t PENDING -o %i); then
      [[ -n $rest ]] || return 0
      # shellcheck disable=SC2086 # several ids
      scancel $rest && { echo "chain.sh: $why; cancelled the jobs left:" $rest; return; }
    fi
    sleep $((try * 5))
  done
  echo "chain.sh: $why, but Slurm does not answer; cancel the jobs named $SLURM_JOB_NAME" >&2
}

case ${1:-} in
  left) seconds_left ;;
  save-by) save_by ;;
  end) end_chain "$2" ;;
  *) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac
