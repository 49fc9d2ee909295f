"""Record results of training with PyTorch and optax for the tests of `tensorken_nn`.

    python -m oracles.record_training           record the results
    python -m oracles.record_training --check   compare the recorded results with new ones

All results are float64: the parameters after steps of optimisers with recorded gradients (PyTorch; optax for Lion),
the learning rates of schedules (optax; PyTorch for staircases), and losses with their gradients (PyTorch).
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import torch

from oracles.recording import record_or_check

jax.config.update("jax_enable_x64", True)

FILE = Path(__file__).parents[1] / "plugins" / "nn" / "tests" / "recorded" / "training.json"
STEPS = 100
RECORDED_STEPS = (1, 2, 3, 10, 30, 100)
"""The steps after which the parameters are recorded."""

OPTIMIZERS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("SGD", {}, {}),
    ("SGD", {"momentum": 0.9}, {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.8, "dampening": 0.3}, {}),
    ("Adam", {}, {}),
    ("Adam", {"learning_rate": 0.01, "weight_decay": 0.1}, {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}),
    ("AdamW", {}, {}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.5}, {"beta1": 0.8, "beta2": 0.99}),
    ("RMSProp", {}, {}),
    ("RMSProp", {"momentum": 0.9, "centered": True, "alpha": 0.9, "weight_decay": 0.1}, {}),
    ("Adagrad", {}, {}),
    ("Adagrad", {"learning_rate": 0.1, "initial_accumulator": 0.5, "weight_decay": 0.1}, {}),
    ("Lion", {"learning_rate": 1e-4}, {}),
    ("Lion", {"learning_rate": 0.01, "weight_decay": 0.1}, {"beta1": 0.8, "beta2": 0.95}),
)
"""The optimiser, the options with equal or similar names in PyTorch, and the other options."""

NAMES = {"learning_rate": "lr", "epsilon": "eps", "initial_accumulator": "initial_accumulator_value"}
CLASSES = {"RMSProp": torch.optim.RMSprop}


def drawn() -> tuple[list[float], list[list[float]]]:
    """Initial parameters, and gradients of very different magnitudes; one gradient is always zero."""
    rng = random.Random(5)
    scales = (1.0, 1e-3, 1e3, 1e-9, 0.0, 1.0)
    gradients = [[rng.gauss(0.3, 1.0) * scale for scale in scales] for _ in range(STEPS)]
    return [rng.gauss(0.0, 1.0) for _ in scales], gradients


def with_torch(name: str, options: dict[str, Any], start: list[float], gradients: Any) -> list[list[float]]:
    """The parameters after each step of a PyTorch optimiser."""
    arguments = {NAMES.get(key, key): value for key, value in options.items()}
    if "beta1" in arguments:
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
    p = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = CLASSES.get(name, getattr(torch.optim, name, None))([p], **arguments)
    parameters = []
    for gradient in gradients:
        p.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        parameters.append(p.detach().tolist())
    return parameters


def with_optax(options: dict[str, Any], start: list[float], gradients: Any) -> list[list[float]]:
    """The parameters after each step of optax's Lion."""
    arguments = {{"beta1": "b1", "beta2": "b2"}.get(key, key): value for key, value in options.items()}
    optimizer = optax.lion(**arguments)
    p = np.array(start)
    state = optimizer.init(p)
    parameters = []
    for gradient in gradients:
        change, state = optimizer.update(np.array(gradient), state, p)
        p = np.asarray(optax.apply_updates(p, change))
        parameters.append(p.tolist())
    return parameters


def optimizers() -> dict[str, Any]:
    """The initial parameters, the gradients, and the parameters after some steps of each optimiser."""
    start, gradients = drawn()
    cases = []
    for name, common, own in OPTIMIZERS:
        options = common | own
        parameters = (
            with_optax(options, start, gradients)
            if name == "Lion"
            else with_torch(name, options, start, gradients)
        )
        steps = {str(step): parameters[step - 1] for step in RECORDED_STEPS}
        cases.append({"optimizer": name, "options": options, "parameters": steps})
    return {"start": start, "gradients": gradients, "cases": cases}


def staircase(milestones: list[int] | int, steps: int) -> list[float]:
    """The learning rates of PyTorch's StepLR or MultiStepLR, from 0.1, with a factor of 0.5."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    schedulers = torch.optim.lr_scheduler
    schedule: Any = (
        schedulers.StepLR(optimizer, milestones, 0.5)
        if isinstance(milestones, int)
        else schedulers.MultiStepLR(optimizer, milestones, 0.5)
    )
    rates = []
    for _ in range(steps):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return rates


def schedules() -> dict[str, list[float]]:
    """The learning rates of each schedule at steps 1 to 40."""
    steps = range(40)
    rise = optax.linear_schedule(0.2 / 6, 0.2, 5)
    functions = {
        "linear": optax.linear_schedule(0.5, 0.1, 30),
        "cosine": optax.cosine_decay_schedule(0.5, 30, alpha=0.2),
        "warmup": optax.join_schedules([rise, optax.cosine_decay_schedule(0.2, 20)], [5]),
    }
    rates = {name: [float(schedule(step)) for step in steps] for name, schedule in functions.items()}
    return rates | {"staircase": staircase(7, len(steps)), "join": staircase([4, 20], len(steps))}


LOGITS = [[1.5, -2.0, 0.3], [0.0, 0.0, 0.0], [1e4, -1e4, 0.0], [-30.0, 30.0, 1e-3]]
LABELS = [2, 0, 1, 1]
TARGETS = [[1.0, 0.0, 0.25], [0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
CHANCES = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.1, 0.2, 0.7]]


def losses() -> dict[str, Any]:
    """The inputs, and for each loss function its values, their mean and its gradient."""
    f = torch.nn.functional
    functions = {
        "squared_error": lambda x, r: f.mse_loss(x, torch.tensor(TARGETS), reduction=r),
        "l1": lambda x, r: f.l1_loss(x, torch.tensor(TARGETS), reduction=r),
        "huber": lambda x, r: f.huber_loss(x, torch.tensor(TARGETS), reduction=r, delta=1.25),
        "binary_cross_entropy_with_logits": lambda x, r: f.binary_cross_entropy_with_logits(
            x, torch.tensor(TARGETS), reduction=r
        ),
        "kl_divergence": lambda x, r: (
            f.kl_div(torch.log_softmax(x, -1), torch.tensor(CHANCES), reduction="none").sum(-1)
            if r == "none"
            else f.kl_div(torch.log_softmax(x, -1), torch.tensor(CHANCES), reduction="batchmean")
        ),
        "cross_entropy": lambda x, r: f.cross_entropy(x, torch.tensor(LABELS), reduction=r),
        "cross_entropy, smoothed": lambda x, r: f.cross_entropy(
            x, torch.tensor(LABELS), reduction=r, label_smoothing=0.2
        ),
        "cross_entropy, ignoring": lambda x, r: f.cross_entropy(
            x, torch.tensor(LABELS), reduction=r, ignore_index=1
        ),
    }
    torch.set_default_dtype(torch.float64)
    cases = {}
    for name, loss in functions.items():
        x = torch.tensor(LOGITS, requires_grad=True)
        mean = loss(x, "mean")
        mean.backward()  # type: ignore[no-untyped-call]
        cases[name] = {
            "none": loss(x, "none").tolist(),
            "mean": mean.item(),
            "gradient": x.grad.tolist(),  # type: ignore[union-attr]
        }
    return {
        "logits": LOGITS,
        "labels": LABELS,
        "targets": TARGETS,
        "chances": CHANCES,
        "cases": cases,
    }


if __name__ == "__main__":
    results = {"optimizers": optimizers(), "schedules": schedules(), "losses": losses()}
    sys.exit(record_or_check(FILE, results, sys.argv[1:]))
