#!/bin/bash
# Process 1 of a machine of the test cluster, in namespaces of its own: machine.sh STATE NAME ROLE VISIBLE…
# ROLE is login or node. VISIBLE: paths that every user of the machine must be able to reach.
set -eu
STATE=$1 NAME=$2 ROLE=$3
shift 3

# Put an empty file system over directory $1 with mode $2; of what was below it, only VISIBLE stays.
cover() {
  local top=$1 mode=$2 stage=$STATE/machines/$NAME/cover path
  shift 2
  mkdir -p "$stage"
  mount -t tmpfs -o "mode=$mode,size=4g" cover "$stage"
  for path in "$@"; do
    [[ $path == "$top"/* ]] || continue
    mkdir -p "$stage/${path#"$top"/}"
    mount --rbind "$path" "$stage/${path#"$top"/}"
  done
  mount --move "$stage" "$top"
}

hostname "$NAME.test"
mount --make-rprivate /
mkdir -p /etc/slurm /run/munge
mount --bind "$STATE/etc/hosts" /etc/hosts
mount --bind "$STATE/etc/passwd" /etc/passwd
mount --bind "$STATE/etc/slurm" /etc/slurm
mount --bind "$STATE/munge" /run/munge
ip link set lo up
cover /root 755 "$@" "$STATE"
if [[ $ROLE == node ]]; then
  for controller in memory freezer cpuset devices cpuacct cpu pids; do # roots of this machine's own
    [[ ! -d /sys/fs/cgroup/$controller ]] ||
      { umount "/sys/fs/cgroup/$controller" && mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"; }
  done
  mount -t tmpfs -o size=4g,mode=1777 shm /dev/shm
  cover /tmp 1777 "$@" "$STATE"
fi
: >"$STATE/run/$NAME.ready"
trap : TERM INT HUP
while :; do sleep 3600 & wait $!; done # bash reaps the orphans
