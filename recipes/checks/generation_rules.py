"""Rules on vLLM and on the cluster: C38, C39, C41, C42, C58 to C63."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.planning.setup import whole
from recipes.planning.sizes import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator

_VLLM = "models/generation/vllm/vllm_generation.py"
_CLUSTER = "distributed/virtual_cluster.py"
_DISTILLATION = "algorithms/distillation.py"
_BASE = "policy.generation.vllm_cfg"
_RESOURCES = "policy.generation.colocated.resources"
_CPUS_PER_GPU = 3
"""CPUs that Ray reserves per GPU, one for each worker group that may share it; with Megatron generation 1."""
_OLD_TOP_K, _OLD_TOP_P = 8000, 0.99
"""TOP_K_THRESHOLD and TOP_P_THRESHOLD of models/generation/vllm/vllm_generation.py in v0.4 and v0.5."""
_REQUIRED = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "expert_parallel_size": 1,
    "gpu_memory_utilization": 0.6,
    "max_model_len": None,
    "async_engine": False,
}


_COUNTS = ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size")


def _vllm(context: Context) -> bool:
    return bool(context.get("policy.generation.backend") == "vllm")


def _size(context: Context, name: str) -> int:
    return whole(context.get(f"{_BASE}.{name}")) or 1


def _engines(context: Context) -> Iterator[Finding]:
    """C38."""
    setup = context.setup
    width, gpus = setup.vllm_width, setup.generation_gpus
    if not _vllm(context) or not setup.split_is_legal:
        return
    if gpus % width == 0:
        yield from _engines_of_a_node(context)
        return
    key = f"{_BASE}.tensor_parallel_size"
    pipeline = _size(context, "pipeline_parallel_size")
    tensor = _size(context, "tensor_parallel_size")
    sizes = [size for size in divisors(gpus) if gpus % (size * pipeline) == 0]
    yield fail(
        f"{gpus} generating GPUs do not divide into engines of {width}",
        key,
        f"{_BASE}.pipeline_parallel_size",
        fixes=[context.fix(key, size) for size in sorted(sizes, key=lambda size: abs(size - tensor))[:3]],
        foretells=(
            f"World size must be a multiple of model parallel size. Got world size {gpus} and model parallel "
            f"size (TP * PP) {width}."
        ),
    )


def _engines_of_a_node(context: Context) -> Iterator[Finding]:
    """Engines that fit into a node are placed node by node, and leave the GPUs over that do not make one."""
    setup = context.setup
    width, gpus = setup.vllm_width, setup.generation_gpus
    nodes = 1 if not setup.colocated and setup.nodes == 1 else max(gpus // setup.gpus_per_node, 1)
    per_node = gpus // nodes
    if width > per_node or per_node % width == 0:
        return
    key = f"{_BASE}.tensor_parallel_size"
    pipeline = _size(context, "pipeline_parallel_size")
    sizes = [size for size in divisors(per_node) if per_node % (size * pipeline) == 0]
    stages = f"{_BASE}.pipeline_parallel_size"
    yield fail(
        f"the {per_node} generating GPUs of a node do not divide into engines of {width}",
        key,
        stages,
        fixes=[
            *(context.fix(key, size) for size in reversed(sizes[-2:])),
            context.fix_all({key: 1, stages: 1}),
        ],
        foretells=(f"Data parallel size mismatch. Expected {gpus // width}, got {per_node // width * nodes}"),
    )


def _engine_stages(context: Context) -> Iterator[Finding]:
    """C39."""
    key = f"{_BASE}.pipeline_parallel_size"
    engine = f"{_BASE}.async_engine"
    if _vllm(context) and _size(context, "pipeline_parallel_size") > 1 and context.get(engine) is not True:
        fixes = [context.fix(engine, after=True), context.fix(key, 1)]
        yield fail("an engine of several stages must be asynchronous", key, engine, fixes=fixes)


def _sampling(context: Context) -> Iterator[Finding]:
    """C41: up to v0.5 nearly no filtering is allowed at all."""
    if not _vllm(context):
        return
    old = context.has_feature("sampling thresholds")
    smallest_k, smallest_p = (_OLD_TOP_K, _OLD_TOP_P) if old else (1, 0.0)
    key = "policy.generation.top_k"
    top_k = whole(context.get(key))
    if top_k is not None and top_k != -1 and top_k < smallest_k:
        yield fail(
            f"{key} is {top_k}, it must be null, -1 or at least {smallest_k}",
            key,
            fixes=[context.fix(key, None)],
            foretells=(
                f"top_k sampling with values < {smallest_k} is not supported"
                if old
                else f"top_k valid values: i) None or -1: no filtering. … Got top_k={top_k}."
            ),
        )
    key = "policy.generation.top_p"
    top_p = context.get(key, 1.0)
    if not isinstance(top_p, (int, float)) or isinstance(top_p, bool):
        return
    if top_p < smallest_p or (not old and (top_p <= 0 or top_p > 1)):
        yield fail(
            f"{key} is {top_p}, it must be at least {smallest_p}"
            if old
            else f"{key} is {top_p}, not in (0, 1]",
            key,
            fixes=[context.fix(key, 1.0)],
            foretells=(
                f"top_p sampling with values < {smallest_p} is not supported"
                if old
                else f"top_p valid values: i) 1.0: no filtering. … Got top_p={top_p}."
            ),
        )


def _required(context: Context) -> Iterator[Finding]:
    """C42."""
    if not _vllm(context):
        return
    if not isinstance(context.get(_BASE), dict):
        yield fail(f"{_BASE} is missing", _BASE)
        return
    kwargs = "policy.generation.vllm_kwargs"
    if context.has(kwargs) and context.get(kwargs) is None:
        yield fail(
            f"{kwargs} is null, it must be a section",
            kwargs,
            fixes=[context.fix(kwargs, {})],
            foretells="TypeError: 'NoneType' object does not support item assignment",
        )
    for name, default in _REQUIRED.items():
        key = f"{_BASE}.{name}"
        if name in _COUNTS and context.has(key) and context.get(key) is None:
            yield fail(
                f"{key} is null, it must be a number",
                key,
                fixes=[context.fix(key, default)],
                foretells="TypeError: unsupported operand type(s): 'NoneType' and 'int'",
            )
        elif not context.has(key):
            value = context.get("policy.max_total_sequence_length") if default is None else default
            yield fail(
                f"{key} is missing", key, fixes=[context.fix(key, value)], foretells=f"KeyError: '{name}'"
            )


def _megatron_generation(context: Context) -> Iterator[Finding]:
    """C58."""
    if context.get("policy.generation.backend") == "megatron" and not context.setup.colocated:
        keys = "policy.generation.backend", "policy.generation.colocated.enabled"
        yield fail(
            "Megatron generates only on the GPUs that train", *keys, fixes=[context.fix(keys[1], after=True)]
        )


def _split_one_node(context: Context) -> Iterator[Finding]:
    """C59."""
    setup = context.setup
    if setup.colocated or setup.nodes != 1 or context.get("policy.generation.backend") == "megatron":
        return
    gpus, key = setup.generation_gpus_per_node, f"{_RESOURCES}.gpus_per_node"
    half = max(setup.gpus_per_node // 2, 1)
    fixes = [context.fix(key, half)] if setup.gpus_per_node > 1 else []
    fixes.append(context.fix("policy.generation.colocated.enabled", after=True))
    if gpus is None or gpus <= 0:
        text = f"{key} must be explicitly set to a value > 0 when cluster.num_nodes = 1"
        yield fail(f"{key} is {shown(context.get(key))}", key, fixes=fixes, foretells=text)
    elif gpus >= setup.gpus_per_node:
        text = "num_gpus_per_node must be greater than 0 if using GPUs"
        message = f"generation takes {gpus} of {setup.gpus_per_node} GPUs, none is left to train"
        yield fail(message, key, "cluster.gpus_per_node", fixes=fixes, foretells=text)
    nodes_key = f"{_RESOURCES}.num_nodes"
    if setup.generation_nodes not in (None, 1):
        text = (
            f"{nodes_key} must be 1 or set to null when cluster.num_nodes = 1 and inference is non-colocated"
        )
        both = {nodes_key: None} if gpus and 0 < gpus < setup.gpus_per_node else {nodes_key: None, key: half}
        yield fail(
            f"{nodes_key} is {setup.generation_nodes} on one node",
            nodes_key,
            fixes=[context.fix_all(both)],
            foretells=text,
        )


def _split_nodes(context: Context) -> Iterator[Finding]:
    """C60: the classic trap is a split made for one node, carried to several."""
    setup = context.setup
    if setup.colocated or setup.nodes == 1 or context.get("policy.generation.backend") == "megatron":
        return
    nodes_key, gpus_key = f"{_RESOURCES}.num_nodes", f"{_RESOURCES}.gpus_per_node"
    nodes = (
        setup.generation_nodes if setup.generation_nodes and 0 < setup.generation_nodes < setup.nodes else 1
    )
    legal = {nodes_key: nodes, gpus_key: setup.gpus_per_node}
    fixes = [context.fix_all({key: value for key, value in legal.items() if context.get(key) != value})]
    fixes.append(context.fix("policy.generation.colocated.enabled", after=True))
    present = setup.generation_nodes
    if present is None or present <= 0:
        text = (
            "TypeError: '>' not supported between NoneType and int"
            if present is None
            else f"{nodes_key} must be > 0"
        )
        yield fail(
            f"{nodes_key} is {shown(context.get(nodes_key))}, with {setup.nodes} nodes",
            nodes_key,
            fixes=fixes,
            foretells=text,
        )
    elif present >= setup.nodes:
        message = f"generation takes {present} of {setup.nodes} nodes, none is left to train"
        yield fail(
            message,
            nodes_key,
            "cluster.num_nodes",
            fixes=fixes,
            foretells="num_gpus_per_node must be greater than 0",
        )
    if setup.generation_gpus_per_node != setup.gpus_per_node:
        text = f"{gpus_key} must be explicitly set and equal to cluster.gpus_per_node"
        message = f"{gpus_key} is {shown(context.get(gpus_key))}, nodes have {setup.gpus_per_node}"
        yield fail(message, gpus_key, "cluster.gpus_per_node", fixes=fixes, foretells=text)


def _resources(context: Context) -> Iterator[Finding]:
    """C61: both clusters of a split reserve as many CPUs per GPU as one that is shared."""
    setup, request = context.setup, context.inputs.request
    cpus = request.node_cpus
    megatron = context.get("policy.generation.backend") == "megatron"
    each = 1 if megatron and setup.colocated else _CPUS_PER_GPU
    needed = setup.gpus_per_node * each
    if cpus is not None and cpus < needed:
        yield fail(
            f"a node has {cpus} CPUs for Ray, {needed} are needed ({each} per GPU)",
            "cluster.gpus_per_node",
            foretells=f"Not enough CPUs available. Requested {needed} CPUs, but only {cpus} are available",
        )
    nodes = request.available_nodes
    if nodes is not None and setup.nodes > nodes:
        yield fail(
            f"the recipe asks for {setup.nodes} nodes, there are {nodes}",
            "cluster.num_nodes",
            fixes=[context.fix("cluster.num_nodes", nodes)],
            foretells=f"Not enough GPUs available. Requested {setup.gpus} GPUs",
        )
    if cpus is None and nodes is None:
        yield undecided(
            "what the nodes have", "Ask for a partition: its nodes' CPUs and GPUs are then compared."
        )


def _one_node(context: Context) -> Iterator[Finding]:
    """C62."""
    gpus = context.inputs.request.node_gpus
    asked = context.setup.gpus_per_node
    if gpus is not None and asked > gpus:
        key = "cluster.gpus_per_node"
        yield fail(
            f"a node has {gpus} GPUs, the recipe asks for {asked} on one", key, fixes=[context.fix(key, gpus)]
        )


def _segments(context: Context) -> Iterator[Finding]:
    """C63."""
    key = "cluster.segment_size"
    size = whole(context.get(key))
    setup = context.setup
    if size is None or not setup.split_is_legal:
        return
    apart = not setup.colocated and setup.nodes > 1
    nodes = setup.nodes - (setup.generation_nodes or 0) if apart else setup.nodes
    if size <= 0 or nodes % size:
        text = f"num_nodes ({nodes}) must be divisible by segment_size ({size})."
        yield fail(
            f"segments of {size} do not divide {nodes} {'training ' if apart else ''}nodes",
            key,
            "cluster.num_nodes",
            fixes=[context.fix(key, None)],
            foretells=text,
        )
    else:
        yield warn(f"{key} is for systems with NVLink between nodes", key, fixes=[context.fix(key, None)])


RULES = (
    Rule(
        "C38",
        "GPUs divide into engines",
        _engines,
        "World size must be a multiple of model parallel size.",
        _VLLM,
    ),
    Rule(
        "C39",
        "Engines of several stages",
        _engine_stages,
        "When pipeline_parallel_size > 1, async_engine must be set to True",
        _VLLM,
    ),
    Rule("C41", "Sampling", _sampling, "top_k valid values: …", _VLLM),
    Rule(
        "C42",
        "Keys that vLLM needs",
        _required,
        "VLLM Configuration Error: Missing required keys in VllmConfig.",
        _VLLM,
    ),
    Rule(
        "C58",
        "Megatron generation",
        _megatron_generation,
        "Non-colocated inference is not supported for Megatron generation backends.",
        _DISTILLATION,
    ),
    Rule(
        "C59",
        "Generation apart, on one node",
        _split_one_node,
        "policy.generation.colocated.resources.gpus_per_node must be explicitly set",
        _DISTILLATION,
    ),
    Rule(
        "C60",
        "Generation apart, on several nodes",
        _split_nodes,
        "policy.generation.colocated.resources.num_nodes must be > 0",
        _DISTILLATION,
    ),
    Rule("C61", "Ray has the GPUs and CPUs", _resources, "Not enough GPUs available", _CLUSTER),
    Rule(
        "C62",
        "A node has its GPUs",
        _one_node,
        "Timed out waiting for placement groups to be ready.",
        _CLUSTER,
    ),
    Rule(
        "C63",
        "Segments of nodes",
        _segments,
        "num_nodes (…) must be divisible by segment_size (…).",
        _CLUSTER,
    ),
)
