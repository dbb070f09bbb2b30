"""Optimizers and schedulers of torch with the arguments that they take (torch 2.7 to 2.10)."""

from __future__ import annotations

_COMMON = "foreach maximize differentiable capturable"
_ADAM = f"lr betas eps weight_decay amsgrad fused {_COMMON}"

OPTIMIZERS: dict[str, str] = {
    "Adadelta": f"lr rho eps weight_decay {_COMMON}",
    "Adafactor": "lr beta2_decay eps d weight_decay foreach maximize",
    "Adagrad": f"lr lr_decay weight_decay initial_accumulator_value eps fused {_COMMON}",
    "Adam": f"{_ADAM} decoupled_weight_decay",
    "AdamW": _ADAM,
    "Adamax": f"lr betas eps weight_decay {_COMMON}",
    "ASGD": f"lr lambd alpha t0 weight_decay {_COMMON}",
    "LBFGS": "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
    "Muon": "",
    "NAdam": f"lr betas eps weight_decay momentum_decay decoupled_weight_decay {_COMMON}",
    "RAdam": f"lr betas eps weight_decay decoupled_weight_decay {_COMMON}",
    "RMSprop": f"lr alpha eps weight_decay momentum centered {_COMMON}",
    "Rprop": f"lr etas step_sizes {_COMMON}",
    "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    "SparseAdam": "lr betas eps maximize",
}
"""By class of torch.optim; "" takes anything."""

SCHEDULERS: dict[str, str] = {
    "ChainedScheduler": "",
    "ConstantLR": "factor total_iters last_epoch verbose",
    "CosineAnnealingLR": "T_max eta_min last_epoch verbose",
    "CosineAnnealingWarmRestarts": "T_0 T_mult eta_min last_epoch verbose",
    "CyclicLR": "",
    "ExponentialLR": "gamma last_epoch verbose",
    "LambdaLR": "lr_lambda last_epoch verbose",
    "LinearLR": "start_factor end_factor total_iters last_epoch verbose",
    "MultiStepLR": "milestones gamma last_epoch verbose",
    "MultiplicativeLR": "lr_lambda last_epoch verbose",
    "OneCycleLR": "",
    "PolynomialLR": "total_iters power last_epoch verbose",
    "ReduceLROnPlateau": "",
    "SequentialLR": "",
    "StepLR": "step_size gamma last_epoch verbose",
}
"""By class of torch.optim.lr_scheduler; `verbose` went with torch 2.7, and is not told of here."""

REQUIRED: dict[str, str] = {
    "CosineAnnealingLR": "T_max",
    "CosineAnnealingWarmRestarts": "T_0",
    "ExponentialLR": "gamma",
    "MultiStepLR": "milestones",
    "StepLR": "step_size",
}
"""Arguments without a default."""
