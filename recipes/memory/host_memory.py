"""Host memory per node: what lies there between phases, and with CPU offload during them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.shapes import GIB
from recipes.planning.setup import value_at, whole

if TYPE_CHECKING:
    from recipes.memory.demand import Demand

_TEACHER, _STUDENT, _OFFLOADED = 4, 12, 16
"""Bytes per parameter: weights; with Adam's moments; with offload also the gradients."""


def host_gib(demand: Demand) -> float | None:
    """Return GiB per node: models put aside, sleeping engines, the driver's top-k on the head node."""
    setup, student, teacher = demand.setup, demand.student, demand.teacher
    if student is None or teacher is None:
        return None
    nodes = max(setup.train_gpus // setup.gpus_per_node, 1)
    per_student = _OFFLOADED if student.cpu_offload else _STUDENT
    copies = student.replicas
    aside = (_TEACHER * teacher.params * teacher.replicas + per_student * student.params * copies) / nodes
    engines = max(setup.gpus_per_node // setup.vllm_width, 1) if setup.colocated else 0
    asleep = 2 * (student.facts.params or 0) * engines
    logits = whole(value_at(setup.recipe, "distillation.topk_logits_k")) or 0
    driver = setup.samples_per_step * (setup.policy.length or 0) * logits * 12
    return (aside + asleep + driver) / GIB
