"""The checks of the doctor, once: commands, screens, JSON and docs/doctor.md are made from this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from launcher.doctor import (
    cluster_checks,
    container_checks,
    file_checks,
    library_checks,
    machine_checks,
    node_checks,
    software_checks,
    storage_checks,
    worker_checks,
)
from launcher.doctor.subject import Requirement
from launcher.doctor.verdict import DoctorCheck, Station
from launcher.foretold import FORETOLD

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from launcher.doctor.verdict import Verdict


def _check(
    id_: str,
    title: str,
    judge: Callable[[Subject], Verdict | None],
    *needs: Requirement,
    station: Station = "login",
) -> DoctorCheck:
    return DoctorCheck(id_, title, station, judge, frozenset(needs), FORETOLD.get(id_, ()))


def _on_node(id_: str, title: str, judge: Callable[[Subject], Verdict | None]) -> DoctorCheck:
    return _check(id_, title, judge, station="node")


def _on_nodes(id_: str, title: str, judge: Callable[[Subject], Verdict | None]) -> DoctorCheck:
    return _check(id_, title, judge, station="nodes")


LOGIN_CHECKS = (
    _check("D01", "Slurm answers", cluster_checks.slurm_answers),
    _check("D02", "Partition takes the job", cluster_checks.partition_takes_jobs, "slurm"),
    _check("D03", "Account may be charged", cluster_checks.account_is_usable, "slurm"),
    _check("D04", "Budget suffices", cluster_checks.budget_suffices, "slurm"),
    _check("D05", "Room in the home directory", storage_checks.home_has_room),
    _check("D06", "Room for the run's output", storage_checks.output_fits, "recipe"),
    _check("D07", "Files may still be made", storage_checks.files_can_be_made),
    _check("D08", "Output directories can be made", storage_checks.output_can_be_made),
    _check("D09", "Directories are shared with the nodes", storage_checks.output_is_shared),
    _check("D10", "uv is installed", software_checks.uv_is_there),
    _check("D11", "uv's cache is filled", software_checks.uv_cache_is_filled, "recipe"),
    _check("D12", "Checkout of NeMo-RL", software_checks.checkout_is_clean),
    _check("D13", "Submodules of the checkout", software_checks.submodules_are_there, "checkout"),
    _check("D14", "Driver's environment has Python and Ray", software_checks.driver_venv_has_ray),
    _check("D15", "Driver's Python starts in the job", software_checks.driver_python_starts),
    _check("D16", "Driver's environment is complete", software_checks.driver_venv_is_complete, "checkout"),
    _check("D17", "Driver's environment is in place", software_checks.driver_venv_is_in_place),
    _check("D18", "Workers' environments are built", worker_checks.worker_venvs_are_there, "recipe"),
    _check("D19", "No building was interrupted", worker_checks.no_building_was_interrupted, "recipe"),
    _check(
        "D20", "Workers' environments are complete", worker_checks.worker_venvs_are_complete,
        "recipe", "checkout",
    ),
    _check(
        "D21", "Workers' environments are in place", worker_checks.worker_venvs_are_in_place, "recipe"
    ),
    _check("D22", "Models are in the cache", file_checks.models_are_there, "recipe"),
    _check("D23", "Tokenizers are in the cache", file_checks.tokenizers_are_there, "recipe"),
    _check("D24", "Data sets are there", file_checks.data_is_there, "recipe"),
    _check("D25", "Prompt files are there", file_checks.prompts_are_there, "recipe"),
    _check("D26", "No download was interrupted", file_checks.no_download_was_interrupted, "recipe"),
    _check("D27", "Directories of the shell reach the job", file_checks.directories_reach_the_job),
    _check("D28", "wandb works without internet", file_checks.wandb_needs_no_internet, "recipe"),
    _check("D29", "Ray's directory on the nodes", machine_checks.ray_directory_is_usable),
    _check("D30", "Limit of open files", machine_checks.open_files_suffice),
    _check("D31", "Clock", machine_checks.clock_is_right),
    _check("D32", "Session survives its connection", machine_checks.session_survives),
    _check("D33", "No Ray is left from earlier", machine_checks.no_ray_is_left),
    _check("D34", "Container image is there", container_checks.image_is_there),
    _check("D35", "Slurm starts containers", container_checks.slurm_starts_containers),
    _check("D36", "Container service answers", container_checks.service_answers),
    _check("D37", "Container networks are left", container_checks.networks_are_left),
    _check("D38", "Nodes were examined", node_checks.nodes_were_examined, "slurm"),
)  # fmt: skip
"""Checks that need no job."""

NODE_CHECKS = (
    _on_node("D41", "Packages can be imported", library_checks.packages_import),
    _on_node("D42", "cuDNN is the installed one", library_checks.cudnn_is_the_package_s),
    _on_node("D43", "NCCL is the installed one", library_checks.nccl_is_the_package_s),
    _on_node("D44", "CUDA runtime is the installed one", library_checks.runtime_is_the_package_s),
    _on_node("D45", "Driver supports torch's CUDA", library_checks.driver_supports_torch),
    _on_node("D46", "GPUs are there", node_checks.gpus_are_there),
    _on_node("D47", "GPUs are whole (MIG)", node_checks.gpus_are_whole),
    _on_node("D48", "GPUs have no memory errors", node_checks.gpus_have_no_errors),
    _on_node("D49", "GPUs are idle", node_checks.gpus_are_idle),
    _on_node("D50", "GPUs are connected", node_checks.gpus_are_connected),
    _on_node("D51", "Network interfaces", node_checks.interfaces_are_there),
    _on_node("D52", "InfiniBand is up", node_checks.infiniband_is_up),
    _on_nodes("D53", "Names of nodes resolve", node_checks.names_resolve),
    _on_nodes("D54", "Ports are open between nodes", node_checks.ports_are_open),
    _on_nodes("D55", "Gloo reduces over the nodes", node_checks.gloo_reduces),
    _on_nodes("D56", "NCCL reduces over the nodes", node_checks.nccl_reduces),
    _on_node("D57", "Room in /dev/shm", node_checks.shared_memory_suffices),
    _on_node("D58", "Room for Ray's session", node_checks.node_storage_suffices),
    _on_nodes("D59", "Storage is shared", node_checks.storage_is_shared),
    _on_node("D60", "Internet is as assumed", node_checks.internet_is_as_believed),
    _on_node("D61", "libibverbs for DeepEP", library_checks.verbs_are_there),
    _on_node("D62", "Limit of open files on nodes", node_checks.open_files_suffice_on_nodes),
    _on_nodes("D63", "Clocks of nodes agree", node_checks.clocks_agree),
)
"""Checks of what was measured on nodes; without that none of them applies."""

CHECKS = (*LOGIN_CHECKS, *NODE_CHECKS)
