"""What the test cluster consists of, and the files that configure it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

GPUS = 4
CPUS = 16
MEMORY_MB = 64000


@dataclass(frozen=True)
class Settings:
    """Names and places. Everything lies in namespaces, so that none of it clashes with the machine's own."""

    state: Path = Path(os.environ.get("DISTILL_TUI_TEST_CLUSTER", "/var/tmp/distill-slurm"))
    """Everything the cluster writes. Not in /tmp: each node has a /tmp of its own."""
    name: str = "testbooster"
    login: str = "login01"
    gpu_nodes: tuple[str, ...] = ("node01", "node02", "node03")
    cpu_nodes: tuple[str, ...] = ("cpu01",)
    user: str = "carla"
    uid: int = 41001
    other_user: str = "bob"
    other_uid: int = 41002
    """Somebody else with an account on the machines; Slurm's accounting does not know him."""
    kill_wait_s: int = 5
    node_timeout_s: int = 20

    @property
    def nodes(self) -> tuple[str, ...]:
        """All compute nodes."""
        return self.gpu_nodes + self.cpu_nodes

    @property
    def home(self) -> Path:
        """The user's home, on a file system that all machines share."""
        return self.state / "home" / self.user

    def address(self, machine: str) -> str:
        """Return a machine's address."""
        return "10.78.0.1" if machine == self.login else f"10.78.0.{11 + self.nodes.index(machine)}"


def files(settings: Settings) -> dict[str, str]:
    """Return the files of `etc/`, by name."""
    return {
        "hosts": _hosts(settings),
        "passwd": Path("/etc/passwd").read_text()
        + f"{settings.user}:x:{settings.uid}:{settings.uid}::{settings.home}:/bin/bash\n"
        + f"{settings.other_user}:x:{settings.other_uid}:{settings.other_uid}::/nowhere:/bin/bash\n",
        "slurm/slurm.conf": _slurm_conf(settings),
        "slurm/gres.conf": f"NodeName={','.join(settings.gpu_nodes)} Name=gpu Type=a100 "
        f"File={settings.state}/dev/nvidia[0-{GPUS - 1}]\n",
        "slurm/cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n"
        "ConstrainRAMSpace=yes\nConstrainSwapSpace=no\nConstrainCores=no\nConstrainDevices=no\n",
        "slurm/slurmdbd.conf": _slurmdbd_conf(settings),
    }


def _hosts(settings: Settings) -> str:
    lines = ["127.0.0.1 localhost"]
    for machine in (settings.login, *settings.nodes):
        names = (
            f"{machine}.test {machine} {machine}i.test {machine}i"  # NAMEi: the fast network's names at JSC
        )
        lines.append(f"{settings.address(machine)} {names}")
    return "\n".join(lines) + "\n"


def _slurm_conf(settings: Settings) -> str:
    state = settings.state
    gpu, cpu = ",".join(settings.gpu_nodes), ",".join(settings.cpu_nodes)
    # config_overrides: the nodes may pretend to have more CPUs and memory than there are.
    shape = f"Sockets=2 CoresPerSocket={CPUS // 4} ThreadsPerCore=2 RealMemory={MEMORY_MB} State=UNKNOWN"
    gpu_addresses = ",".join(settings.address(node) for node in settings.gpu_nodes)
    cpu_addresses = ",".join(settings.address(node) for node in settings.cpu_nodes)
    return f"""\
ClusterName={settings.name}
SlurmctldHost={settings.login}({settings.address(settings.login)})
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={state}/spool/slurmctld
SlurmdSpoolDir={state}/spool/%n
SlurmctldPidFile={state}/run/daemons/slurmctld.pid
SlurmdPidFile={state}/run/slurmd-%n.pid
SlurmctldLogFile={state}/log/slurmctld.log
SlurmdLogFile={state}/log/slurmd-%n.log
SlurmctldDebug=verbose
MpiDefault=none
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
PrologFlags=Alloc,Contain
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
EnforcePartLimits=ALL
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=1
SlurmdTimeout={settings.node_timeout_s}
KillWait={settings.kill_wait_s}
MinJobAge=300
JobRequeue=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={settings.address(settings.login)}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
NodeName={gpu} NodeAddr={gpu_addresses} Gres=gpu:a100:{GPUS} Features=gpu,a100 {shape}
NodeName={cpu} NodeAddr={cpu_addresses} Features=cpu {shape}
PartitionName=DEFAULT OverSubscribe=EXCLUSIVE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=booster Nodes={gpu} Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00
PartitionName=develbooster Nodes={gpu} DefaultTime=00:30:00 MaxTime=02:00:00 MaxNodes=2
PartitionName=capped Nodes={gpu} DefaultTime=01:00:00 MaxTime=UNLIMITED QOS=part_capped
PartitionName=mixed Nodes={gpu},{cpu} MaxTime=04:00:00
PartitionName=low Nodes={gpu} MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=closed Nodes={gpu} MaxTime=01:00:00 State=DOWN AllowAccounts=other
"""


def _slurmdbd_conf(settings: Settings) -> str:
    return f"""\
AuthType=auth/munge
DbdHost={settings.login}
DbdAddr={settings.address(settings.login)}
SlurmUser=slurm
PidFile={settings.state}/run/daemons/slurmdbd.pid
LogFile={settings.state}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


ASSOCIATIONS: tuple[tuple[str, ...], ...] = (
    ("add", "cluster", "{cluster}"),
    ("add", "qos", "part_capped", "set", "MaxWall=12:00:00", "MaxTRESPerJob=node=2"),
    ("add", "qos", "one", "set", "MaxSubmitJobsPerUser=1"),
    ("add", "account", "distill", "Cluster={cluster}", "Description=d", "Organization=t"),
    ("add", "account", "other", "Cluster={cluster}", "Description=o", "Organization=t"),
    # An association for each account and partition, as a site with separate budgets has.
    (
        "add", "user", "{user}", "Cluster={cluster}", "Account=distill",
        "Partition=booster,develbooster,capped,mixed,low",
    ),
    ("add", "user", "{user}", "Cluster={cluster}", "Account=other", "Partition=booster,closed"),
    ("modify", "user", "{user}", "where", "Account=distill", "set", "qos=normal,one", "defaultqos=normal"),
)  # fmt: skip
"""What sacctmgr is told once."""
