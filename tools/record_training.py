#!/usr/bin/env python3
"""Records how PyTorch trains: a hundred steps of every optimiser, and the rates of every schedule, in training.safetensors.

    python3 tools/record_training.py

Each case here has its C++ counterpart of the same name in tests/optim. The parameters are recorded after 1, 10 and 100
steps, in double precision, so that what differs is the arithmetic and not its rounding.
"""
import math

import torch
from torch.optim import _muon, lr_scheduler as schedules

from record_ops import recorded_path, save_safetensors

STEPS = 100
MOMENTS = (1, 10, STEPS)


def ramp(low, high, *shape):
    return torch.linspace(low, high, math.prod(shape), dtype=torch.float64).view(shape)


class Problem:
    """A layer of four tanh between two matrices."""

    def __init__(self):
        self.x, self.y = torch.sin(ramp(0, 40, 8, 6)), torch.cos(ramp(0, 25, 8, 3))
        self.w = (0.5 * torch.cos(ramp(-3, 4, 6, 4))).requires_grad_()
        self.v = (0.5 * torch.cos(ramp(-2, 9, 4, 3))).requires_grad_()
        self.b = (0.1 * torch.cos(ramp(0, 3, 4))).requires_grad_()

    def loss(self):
        return (torch.tanh(self.x @ self.w + self.b) @ self.v - self.y).square().mean()


class Lion(torch.optim.Optimizer):
    """The paper's, which PyTorch does not have."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p -= lr * group["weight_decay"] * p
                p -= lr * torch.sign(beta1 * m + (1 - beta1) * p.grad)
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


def newton_schulz(grad, ns_coefficients, ns_steps, eps):
    """As PyTorch's, in the gradient's own dtype."""
    a, b, c = ns_coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


O = torch.optim
OPTIMIZERS = {
    "sgd": lambda p: O.SGD(p, 0.1),
    "sgd_momentum": lambda p: O.SGD(p, 0.05, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "sgd_nesterov": lambda p: O.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: O.Adam(p, 0.01, weight_decay=0.01),
    "adam_amsgrad": lambda p: O.Adam(p, 0.01, betas=(0.8, 0.95), amsgrad=True),
    "adamw": lambda p: O.AdamW(p, 0.01, weight_decay=0.1),
    "nadam": lambda p: O.NAdam(p, 0.01),
    "nadam_decoupled": lambda p: O.NAdam(p, 0.01, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.1),
    "nadam_decay": lambda p: O.NAdam(p, 0.01, weight_decay=0.1),
    "radam": lambda p: O.RAdam(p, 0.01),
    "radam_decay": lambda p: O.RAdam(p, 0.01, betas=(0.8, 0.9), weight_decay=0.1),
    "radam_decoupled": lambda p: O.RAdam(p, 0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "rmsprop": lambda p: O.RMSprop(p, 0.01),
    "rmsprop_centered": lambda p: O.RMSprop(p, 0.01, alpha=0.9, eps=1e-4, centered=True, weight_decay=0.01),
    "rmsprop_momentum": lambda p: O.RMSprop(p, 0.003, momentum=0.9),
    "rmsprop_all": lambda p: O.RMSprop(p, 0.001, momentum=0.5, centered=True, eps=1e-3, maximize=True),
    "adagrad": lambda p: O.Adagrad(p, 0.1),
    "adagrad_decay": lambda p: O.Adagrad(p, 0.1, lr_decay=0.01, weight_decay=0.01, initial_accumulator_value=0.1, eps=1e-6),
    "adadelta": lambda p: O.Adadelta(p),
    "adadelta_decay": lambda p: O.Adadelta(p, 0.5, rho=0.8, eps=1e-4, weight_decay=0.1),
    "adafactor": lambda p: O.Adafactor(p),
    "adafactor_decay": lambda p: O.Adafactor(p, 0.5, beta2_decay=-0.6, eps=(1e-4, 1e-2), d=1.5, weight_decay=0.01),
    "lion": lambda p: Lion(p, 0.003),
    "lion_decay": lambda p: Lion(p, 0.003, betas=(0.8, 0.95), weight_decay=0.1),
    "groups": lambda p: O.RMSprop([{"params": [p[0]], "lr": 0.002}, {"params": p[1:], "alpha": 0.9, "momentum": 0.5}], 0.001),
    "muon": lambda p: O.Muon(p[:2], 0.002),
    "muon_plain": lambda p: O.Muon(p[:2], 0.002, nesterov=False, momentum=0.8, ns_steps=3, weight_decay=0),
    "muon_rms": lambda p: O.Muon(p[:2], 0.002, adjust_lr_fn="match_rms_adamw"),
    "muon_spectral": lambda p: O.Muon(p[:2], 0.002, adjust_lr_fn="spectral_unclamped"),
}


def train(name, make, tensors):
    problem = Problem()
    optimizer = make([problem.w, problem.v, problem.b])
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        problem.loss().backward()
        optimizer.step()
        if step in MOMENTS:
            for key in ("w", "v", "b"):
                tensors[f"{name}/{step}/{key}"] = getattr(problem, key).detach().clone()


QUASI_NEWTON = {
    "lbfgs": lambda p: O.LBFGS(p, 0.5, max_iter=5, history_size=4),
    "lbfgs_wolfe": lambda p: O.LBFGS(p, max_iter=7, line_search_fn="strong_wolfe"),
    "lbfgs_evaluations": lambda p: O.LBFGS(p, 2.0, max_iter=9, max_eval=6, history_size=3, line_search_fn="strong_wolfe"),
}


def quasi_newton(name, make, tensors):
    """Ten steps, each of several evaluations, and the losses that they begin with."""
    problem, losses = Problem(), []
    optimizer = make([problem.w, problem.v, problem.b])

    def closure():
        optimizer.zero_grad()
        loss = problem.loss()
        loss.backward()
        return loss

    for step in range(1, 11):
        losses.append(optimizer.step(closure).detach())
        if step in MOMENTS:
            for key in ("w", "v", "b"):
                tensors[f"{name}/{step}/{key}"] = getattr(problem, key).detach().clone()
    tensors[f"{name}/losses"] = torch.stack(losses)


def muon_in_bf16(tensors):
    """One step along a gradient whose singular values are all alike, so that rounding stays what it is."""
    param = torch.zeros(5, 3, dtype=torch.float32, requires_grad=True)
    param.grad = (torch.eye(5, 3) + 0.3 * torch.cos(ramp(0, 20, 5, 3))).float()
    tensors["muon_bf16/grad"] = param.grad.clone()
    O.Muon([param], 0.5).step()
    tensors["muon_bf16/param"] = param.detach()


S = schedules
SCHEDULES = {
    "step": lambda o: S.StepLR(o, 7, 0.5),
    "multi_step": lambda o: S.MultiStepLR(o, [3, 20, 20, 60], 0.3),
    "constant": lambda o: S.ConstantLR(o, 0.25, 8),
    "linear": lambda o: S.LinearLR(o, 0.1, 0.9, 30),
    "linear_default": lambda o: S.LinearLR(o),
    "exponential": lambda o: S.ExponentialLR(o, 0.97),
    "polynomial": lambda o: S.PolynomialLR(o, 40, 2.0),
    "cosine": lambda o: S.CosineAnnealingLR(o, 25, 0.01),
    "warm_restarts": lambda o: S.CosineAnnealingWarmRestarts(o, 10),
    "warm_restarts_growing": lambda o: S.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "lambda": lambda o: S.LambdaLR(o, lambda n: 1 / (n + 1)),
    "lambdas": lambda o: S.LambdaLR(o, [lambda n: 1 / (n + 1), lambda n: 0.9**n]),
    "one_cycle": lambda o: S.OneCycleLR(o, 0.8, total_steps=STEPS + 1),
    "one_cycle_linear": lambda o: S.OneCycleLR(o, [0.8, 0.4], epochs=11, steps_per_epoch=10, pct_start=0.2,
                                               anneal_strategy="linear", base_momentum=0.7, max_momentum=0.99,
                                               div_factor=10.0, final_div_factor=100.0),
    "one_cycle_three_phases": lambda o: S.OneCycleLR(o, 0.8, total_steps=STEPS + 1, three_phase=True, cycle_momentum=False),
    "sequential": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 10), S.CosineAnnealingLR(o, 50),
                                               S.ExponentialLR(o, 0.9)], [10, 60]),
    "warm_up_lambda": lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 100), S.LambdaLR(o, lambda n: 0.95**n)], [5]),
}


def rates(name, make, tensors):
    """Of two groups: before the first step and after each."""
    one, other = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = O.SGD([{"params": [one]}, {"params": [other], "lr": 0.2}], 0.5, momentum=0.9)
    schedule = make(optimizer)
    rows, momenta = [], []
    for step in range(STEPS + 1):
        rows.append([g["lr"] for g in optimizer.param_groups])
        momenta.append([g["momentum"] for g in optimizer.param_groups])
        optimizer.step()
        if step < STEPS:
            schedule.step()
    tensors[f"schedule/{name}"] = torch.tensor(rows, dtype=torch.float64)
    if name.startswith("one_cycle"):
        tensors[f"schedule/{name}/momentum"] = torch.tensor(momenta, dtype=torch.float64)


def metric(step):
    return 1 / (1 + min(step, 30)) + 0.05 * math.sin(1.7 * step)


PLATEAUS = {
    "plateau": dict(factor=0.5, patience=3),
    "plateau_abs": dict(factor=0.3, patience=2, threshold=0.01, threshold_mode="abs", cooldown=4, min_lr=[0.01, 0.05]),
    "plateau_max": dict(mode="max", factor=0.8, patience=0, threshold=0.02, eps=0.03),
    "plateau_max_abs": dict(mode="max", factor=0.5, patience=5, threshold=0.02, threshold_mode="abs"),
}


def plateau(name, options, tensors):
    optimizer = O.SGD([{"params": [torch.zeros(1, requires_grad=True)]},
                       {"params": [torch.zeros(1, requires_grad=True)], "lr": 0.2}], 0.5)
    schedule, rows = S.ReduceLROnPlateau(optimizer, **options), []
    for step in range(STEPS):
        schedule.step(metric(step))
        rows.append([g["lr"] for g in optimizer.param_groups])
    tensors[f"schedule/{name}"] = torch.tensor(rows, dtype=torch.float64)


def average(tensors):
    """The exponential average of parameters that move by plain descent."""
    problem = Problem()
    model = torch.nn.ParameterList([problem.w, problem.v, problem.b])  # on the same memory
    averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = O.SGD([problem.w, problem.v, problem.b], 0.1)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        problem.loss().backward()
        optimizer.step()
        averaged.update_parameters(model)
        if step in MOMENTS:
            for i, key in enumerate(("w", "v", "b")):
                tensors[f"average/{step}/{key}"] = averaged.module[i].detach().clone()


def main():
    torch.set_default_dtype(torch.float64)  # of NAdam's products too
    tensors = {}
    start = Problem()
    for key in ("x", "y", "w", "v", "b"):
        tensors[f"start/{key}"] = getattr(start, key).detach()
    muon_in_bf16(tensors)
    _muon._zeropower_via_newtonschulz = newton_schulz
    for name, make in OPTIMIZERS.items():
        train(name, make, tensors)
    for name, make in QUASI_NEWTON.items():
        quasi_newton(name, make, tensors)
    for name, make in SCHEDULES.items():
        rates(name, make, tensors)
    for name, options in PLATEAUS.items():
        plateau(name, options, tensors)
    average(tensors)
    save_safetensors(recorded_path("training.safetensors"), tensors, {"PyTorch": torch.__version__})
    print(f"{len(tensors)} tensors with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
