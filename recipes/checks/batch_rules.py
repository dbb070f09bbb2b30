"""Rules on batches and lengths: C22 to C32. They predict failures in the first step, when all is loaded."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided, warn
from recipes.checks.data import datasets, length_of
from recipes.checks.resume import changes, checkpoint_root, latest_step
from recipes.models import UnknownModel
from recipes.planning.setup import Side, whole
from recipes.planning.sizes import divisors, legal_global_batches, nearest_multiple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Fix

_GLOBAL = "policy.train_global_batch_size"
_PROMPTS = "distillation.num_prompts_per_step"
_DIVISOR = "policy.make_sequence_length_divisible_by"


def _nearest(values: list[int], value: int, count: int = 3) -> list[int]:
    return sorted(
        (known for known in values if known != value), key=lambda known: (abs(known - value), -known)
    )[:count]


def _batch_fixes(context: Context) -> list[Fix]:
    """Global batches near the present one that divide, then numbers of prompts that make it divide."""
    setup = context.setup
    ranks = setup.policy.dp if setup.policy in context.placed else 1
    micro = (
        1 if setup.policy.dynamic or setup.policy.packing else setup.policy.count("train_micro_batch_size")
    )
    samples, batch = setup.samples_per_step, setup.global_batch
    fixes = [
        context.fix(_GLOBAL, size) for size in _nearest(legal_global_batches(samples, ranks, micro), batch)
    ]
    each = max(samples // (whole(context.get(_PROMPTS)) or 1), 1)
    scoring = setup.teacher.dp if setup.teacher in context.placed else 1
    step = lcm(batch, ranks, scoring) if batch else lcm(ranks, scoring)
    targets = [
        target for target in nearest_multiple(samples, step) if target % each == 0 and target != samples
    ]
    return fixes + [context.fix(_PROMPTS, target // each) for target in targets]


def _step_divides(context: Context) -> Iterator[Finding]:
    """C22."""
    samples, batch = context.setup.samples_per_step, context.setup.global_batch
    if samples and batch and samples % batch:
        yield fail(
            f"a step has {samples} samples, no multiple of the global batch of {batch}",
            _GLOBAL,
            _PROMPTS,
            "distillation.num_generations_per_prompt",
            fixes=_batch_fixes(context),
            foretells=f"Total batch size ({samples}) is not a multiple of batch_size ({batch})",
        )


def _ranks_divide(context: Context) -> Iterator[Finding]:
    """C23."""
    setup = context.setup
    for side in context.placed:
        total = setup.global_batch if side.name == "policy" else setup.samples_per_step
        if not total or total % side.dp == 0:
            continue
        key = _GLOBAL if side.name == "policy" else _PROMPTS
        what = "the global batch" if side.name == "policy" else "a step's samples"
        fixes = _batch_fixes(context)
        if side.name == "teacher":
            fixes += _both_batches(context)
        yield fail(
            f"{what} of {total} cannot be shared by {side.name}'s {side.dp} data-parallel ranks",
            key,
            side.size_key("tp"),
            side.size_key("cp"),
            fixes=[*fixes, *_width_fixes(context, side, total)],
            foretells=f"Batch size ({total}) is not a multiple of shards ({side.dp})",
        )


def _both_batches(context: Context) -> list[Fix]:
    """Prompts and global batch changed together, to what both models' ranks share."""
    setup = context.setup
    each = max(setup.samples_per_step // (whole(context.get(_PROMPTS)) or 1), 1)
    micro = setup.policy.count("train_micro_batch_size")
    step = lcm(each, *(side.dp for side in context.placed), setup.policy.dp * micro)
    fixes = []
    for target in nearest_multiple(setup.samples_per_step, step):
        for batch in _nearest(legal_global_batches(target, setup.policy.dp, micro), setup.global_batch, 1):
            both = {_PROMPTS: target // each, _GLOBAL: batch}
            fixes.append(context.fix_all(both))
    return fixes


def _width_fixes(context: Context, side: Side, total: int) -> list[Fix]:
    """Context parallel sizes with which the ranks divide a batch."""
    room = side.gpus // (side.tp * side.pp)
    sizes = [size for size in divisors(room) if total % (room // size) == 0 and size != side.cp]
    return [context.fix(side.size_key("cp"), size) for size in _nearest(sizes, side.cp, 2)]


def _fits_tokens(context: Context, batching: str, *, dynamic: bool) -> Iterator[Finding]:
    length = context.setup.policy.length
    if length is None:
        return
    padded = _up(length, context.setup.policy.divisor)
    for side in context.sides:
        if not (side.dynamic if dynamic else side.packing):
            continue
        kind = "train" if side.name == "policy" else "logprob"
        key = side.key(f"{batching}.{kind}_mb_tokens")
        room = whole(context.get(key))
        rounded = whole(side.get(f"{batching}.sequence_length_round")) or 64
        if dynamic:
            longest = min(padded, _up(length, max(rounded, 1)))
        else:
            longest = _up(length, _packing_divisor(context, side))
        if room is None or longest <= room:
            continue
        fixes = [context.fix(key, longest)]
        if side.name == "teacher":
            fixes.insert(0, context.fix("teacher.max_total_sequence_length", length))
            fixes.append(context.fix("policy.max_total_sequence_length", room // 64 * 64))
        else:
            fixes.insert(0, context.fix("policy.max_total_sequence_length", room // 64 * 64))
        text = (
            f"got an input of padded ({rounded}) sequence length of {longest}, "
            f"however max microbatch size is {room} tokens"
            if dynamic
            else f"Sequence length {longest} exceeds bin capacity {room}"
        )
        yield fail(
            f"samples of up to {longest} tokens do not fit into {side.name}'s micro batches of {room}",
            key,
            "policy.max_total_sequence_length",
            side.key("max_total_sequence_length"),
            fixes=fixes,
            foretells=text,
        )


def _packing_divisor(context: Context, side: Side) -> int:
    """Return the multiple that each sample is padded to when a side packs: its own, not the policy's."""
    if context.has_feature("packing pads by the recipe"):
        return side.divisor
    return 2 * side.cp * side.tp if side.cp > 1 else side.tp  # v0.4 and v0.5


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _dynamic_tokens(context: Context) -> Iterator[Finding]:
    """C24."""
    return _fits_tokens(context, "dynamic_batching", dynamic=True)


def _packing_tokens(context: Context) -> Iterator[Finding]:
    """C25."""
    return _fits_tokens(context, "sequence_packing", dynamic=False)


def _micro_batches(context: Context) -> Iterator[Finding]:
    """C26."""
    setup = context.setup
    for side in context.placed:
        if side.dynamic or side.packing:
            continue
        student = side.name == "policy"
        total = setup.global_batch if student else setup.samples_per_step
        name = "train_micro_batch_size" if student else "logprob_batch_size"
        micro = side.count(name)
        if not total or total % side.dp or (total // side.dp) % micro == 0:
            continue
        each = total // side.dp
        sizes = [size for size in divisors(each) if size <= max(micro, 1)]
        values = [{side.key(name): size} for size in reversed(sizes[-2:])]
        other = side.key("logprob_batch_size" if student else "train_micro_batch_size")
        fixes = [context.fix_all(value) for value in values]
        fixes += [context.fix_all({**value, other: next(iter(value.values()))}) for value in values]
        yield fail(
            f"{side.name}: each rank has {each} samples, no multiple of the micro batch of {micro}",
            side.key(name),
            _GLOBAL if student else _PROMPTS,
            fixes=fixes,
            foretells=f"Data dict size ({each}) is not a multiple of the provided microbatch size ({micro})",
        )


def _order(context: Context) -> Iterator[Finding]:
    """C27."""
    for side in context.sides:
        key = side.key("sequence_packing.microbatch_order")
        if side.packing and context.get(key) not in (None, "packer", "largest_first"):
            yield fail(
                f"{key} is {context.get(key)}, not packer, largest_first or null",
                key,
                fixes=[context.fix(key, "packer")],
                foretells="sequence packing microbatch_order must be 'packer' or 'largest_first'",
            )


def _context_padding(context: Context) -> Iterator[Finding]:
    """C28: only the policy's divisor pads, and the same tensors go to the teacher.

    Megatron pads by itself where it packs (C29), and micro batches of dynamic size have rounded lengths.
    """
    sides = [
        side
        for side in context.sides
        if side.required_divisor > 1
        and (side.backend == "dtensor" or not (side.packing or side.dynamic or side.cp > 1))
    ]
    divisor = context.setup.policy.divisor
    wrong = [side for side in sides if divisor % side.required_divisor]
    if not wrong:
        return
    needed = lcm(*(side.required_divisor for side in sides))
    who = " and ".join(f"{side.name} (TP {side.tp}, CP {side.cp})" for side in wrong)
    yield fail(
        f"lengths are padded to multiples of {divisor}; {who} needs multiples of {needed}",
        _DIVISOR,
        *(side.size_key("cp" if side.cp > 1 else "tp") for side in wrong),
        fixes=[context.fix(_DIVISOR, lcm(needed, divisor)), context.fix(_DIVISOR, needed)],
        foretells=(
            ""
            if any(side.backend == "dtensor" for side in wrong)
            else "First dimension of the tensor should be divisible by tensor parallel size"
        ),
    )


def _megatron_padding(context: Context) -> Iterator[Finding]:
    """C29."""
    for side in context.sides:
        needed = side.required_divisor
        if side.backend == "megatron" and side.packing and side.divisor % needed:
            key = side.key("make_sequence_length_divisible_by")
            yield fail(
                f"{key} is {side.divisor}; TP {side.tp} and CP {side.cp} need a multiple of {needed}",
                key,
                side.size_key("cp"),
                fixes=[context.fix(key, lcm(needed, side.divisor)), context.fix(key, needed)],
                foretells=(
                    f"make_sequence_length_divisible_by ({side.divisor}) is not a multiple of "
                    f"minimum_pad_factor ({needed})."
                ),
            )


def _sampling(context: Context) -> tuple[Finding, ...]:
    """C30: a failure of losses on log probabilities; the distillation loss does not filter."""
    return ()


def _data_length(context: Context) -> Iterator[Finding]:
    """C31."""
    prompts = whole(context.get(_PROMPTS)) or 0
    entries = [entry for entry in datasets(context.recipe) if entry.split == "train"]
    lengths = [length_of(entry, context.inputs.root, prompts) for entry in entries]
    known = sum(length for length in lengths if isinstance(length, int))
    if not entries or known >= prompts:
        return
    unsized = next((length for length in lengths if isinstance(length, UnknownModel)), None)
    if unsized is not None:
        yield undecided(
            f"whether there are {prompts} training samples, {unsized.reason}",
            unsized.fix,
            f"{entries[0].key}",
        )
        return
    yield fail(
        f"{known} training samples make no step of {prompts}: the run would end with exit code 0",
        _PROMPTS,
        entries[0].key,
        fixes=[context.fix(_PROMPTS, size) for size in _legal_prompts(context, known)],
    )


def _legal_prompts(context: Context, most: int) -> list[int]:
    setup = context.setup
    each = max(setup.samples_per_step // (whole(context.get(_PROMPTS)) or 1), 1)
    step = lcm(setup.global_batch or 1, each, *(side.dp for side in context.placed)) // each
    return [most // step * step] if most >= step else []


def _resumes(context: Context) -> Iterator[Finding]:
    """C32: NeMo-RL resumes whatever lies in the checkpoint directory, also of another recipe."""
    key = "checkpointing.checkpoint_dir"
    folder = checkpoint_root(context.get(key), context.inputs.root)
    step = latest_step(folder) if folder is not None else None
    if folder is None or step is None:
        return
    most = whole(context.get("distillation.max_num_steps", 1000)) or 0
    fresh = context.fix(key, f"{context.get(key)}-new")
    if step >= most > 0:
        fixes = [context.fix("distillation.max_num_steps", step + most), fresh]
        yield fail(
            f"{folder} is at step {step} of {most}: the run would do nothing and exit with 0",
            key,
            "distillation.max_num_steps",
            fixes=fixes,
        )
        return
    differences = changes(folder / f"step_{step}" / "config.yaml", context.recipe.values)
    if isinstance(differences, UnknownModel):
        yield undecided(
            f"what recipe step {step} in {folder} is of, {differences.reason}", differences.fix, key
        )
    elif differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        yield warn(
            f"will resume step {step} of a different recipe: {', '.join(differences[:3])}{more} differ",
            key,
            fixes=[fresh],
            foretells="Loading weights from …: resuming is automatic",
        )


_DICT = "distributed/batched_data_dict.py"
RULES = (
    Rule(
        "C22",
        "The global batch divides a step",
        _step_divides,
        "Total batch size (…) is not a multiple of batch_size (…)",
        _DICT,
    ),
    Rule(
        "C23", "Ranks share the batch", _ranks_divide, "Batch size (…) is not a multiple of shards (…)", _DICT
    ),
    Rule("C24", "Samples fit into dynamic micro batches", _dynamic_tokens, "max microbatch size", _DICT),
    Rule(
        "C25",
        "Samples fit into packed bins",
        _packing_tokens,
        "exceeds bin capacity",
        "data/packing/algorithms.py",
    ),
    Rule(
        "C26",
        "Micro batches divide a rank's samples",
        _micro_batches,
        "is not a multiple of the provided microbatch size",
        _DICT,
    ),
    Rule(
        "C27",
        "Order of packed micro batches",
        _order,
        "microbatch_order must be 'packer' or 'largest_first'",
        _DICT,
    ),
    Rule(
        "C28",
        "Padding for context parallelism",
        _context_padding,
        "assert seq_length % (world_size * 2) == 0",
        "torch, _load_balancer.py",
    ),
    Rule(
        "C29",
        "Padding for Megatron",
        _megatron_padding,
        "is not a multiple of minimum_pad_factor",
        "models/megatron/data.py",
    ),
    Rule(
        "C30",
        "Padding for filtered sampling",
        _sampling,
        "must be divisible by tensor parallel size",
        "distributed/model_utils.py",
    ),
    Rule(
        "C31",
        "Enough samples for a step",
        _data_length,
        "nothing: all epochs pass without a step",
        "algorithms/distillation.py",
    ),
    Rule(
        "C32",
        "Checkpoints that are there already",
        _resumes,
        "nothing: training ends before its first step",
        "algorithms/distillation.py",
    ),
)
