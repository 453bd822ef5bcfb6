#!/usr/bin/env python3
"""Records what PyTorch's distributions say, with gradients, in distributions.safetensors, and special functions at their ends.

    python3 tools/record_distributions.py

Each case has its C++ counterpart of the same name in tests/distributions/. Everything is in double precision. A gradient
is that of the sum of sum(cos(position) * quantity) over the quantities that the file names for the case.
"""
import mpmath
import torch
import torch.distributions as D

from record_ops import recorded_path, save_safetensors

OUT, NAMES, METADATA = {}, [], {}
QUANTITIES = ["log_prob", "cdf", "icdf", "entropy", "mean", "mode", "variance", "stddev"]


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def weighted(x):
    weights = torch.cos(torch.arange(x.numel(), dtype=torch.float64)).reshape(x.shape)
    return (weights * x).sum()


def record(name, inputs, quantities):
    assert name not in NAMES, name
    NAMES.append(name)
    for i, x in enumerate(inputs):
        OUT[f"{name}/in{i}"] = x.detach()
    total, moving = 0, []
    for key, x in quantities.items():
        OUT[f"{name}/{key}"] = x.detach().to(torch.float64) if x.dtype != torch.int64 else x.detach()
        # PyTorch does not differentiate the incomplete gamma function by the shape.
        if x.requires_grad and torch.isfinite(x).all() and "igamma" not in str(x.grad_fn).lower():
            total = total + weighted(x)
            moving.append(key)
    if not moving:
        return
    METADATA["moving:" + name] = " ".join(moving)
    grads = torch.autograd.grad(total, [x for x in inputs if x.requires_grad], allow_unused=True)
    for x, g in zip([i for i, x in enumerate(inputs) if x.requires_grad], grads):
        if g is not None and torch.isfinite(g).all():
            OUT[f"{name}/grad{x}"] = g


# The value of log_prob and cdf comes last among the inputs; shares of icdf are 0.1 and 0.9 in turn.
def case(name, make, *inputs, without=(), moving_value=True):
    inputs = [x.clone() for x in inputs]
    for x in inputs[:-1]:
        x.requires_grad_()
    value = inputs[-1]
    if moving_value:
        value.requires_grad_()
    d = make(*inputs[:-1])
    quantities = {}
    for key in QUANTITIES:
        if key in without:
            continue
        try:
            if key in ("log_prob", "cdf"):
                quantities[key] = getattr(d, key)(value)
            elif key == "icdf":
                share = torch.full_like(d.mean, 0.1)
                share.reshape(-1)[::2] = 0.9
                quantities[key] = d.icdf(share)
                OUT[f"{name}/share"] = share.detach()
            else:
                quantities[key] = getattr(d, key)() if key == "entropy" else getattr(d, key)
        except NotImplementedError:
            pass
    record(name, inputs, quantities)


def kl(name, make, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    p, q = make(*inputs)
    record("kl_" + name, inputs, {"kl": D.kl_divergence(p, q)})


LOC, SCALE = tensor([-1.0, 0.0], [0.5, 30.0]), tensor(0.3, 2.5)
ANY = tensor([-2.0, 0.25], [0.7, 41.0])
POSITIVE, RATE = tensor([0.05, 0.9], [1.1, 12.5]), tensor(0.4, 3.0)
ABOVE = tensor([0.01, 0.5], [2.0, 7.0])
SHARE, OTHER_SHARE = tensor([0.1, 0.5], [0.75, 0.999]), tensor([0.3, 0.2], [0.6, 0.9])

case("normal", D.Normal, LOC, SCALE, ANY)
case("normal_far", D.Normal, tensor(0.0, 1e4), tensor(1e-3, 1e3), tensor(0.02, -2e4))
case("log_normal", D.LogNormal, tensor([-1.0, 0.0], [0.5, 1.5]), tensor(0.3, 1.5), ABOVE)
case("half_normal", D.HalfNormal, SCALE, ABOVE)
case("uniform", D.Uniform, tensor([-1.0, 0.0], [0.25, 2.0]), tensor(3.0, 8.0), tensor([0.5, 1.0], [2.5, 7.9]))
case("exponential", D.Exponential, POSITIVE, ABOVE)
case("laplace", D.Laplace, LOC, SCALE, ANY)
case("cauchy", D.Cauchy, LOC, SCALE, ANY)
case("gumbel", D.Gumbel, tensor([-1.0, 0.0], [0.5, 3.0]), SCALE, tensor([-1.2, 0.25], [0.7, 11.0]), without=("mode",))
case("gamma", D.Gamma, POSITIVE, RATE, ABOVE)
case("gamma_large", D.Gamma, tensor(250.0, 4e4), tensor(1.5, 2.0), tensor(170.0, 20100.0))
case("chi2", D.Chi2, POSITIVE, ABOVE)
case("student_t", D.StudentT, tensor([1.5, 2.5], [7.0, 100.0]), LOC, SCALE, ANY, without=("mean", "mode", "variance", "stddev"))
case("student_t_wide", D.StudentT, tensor(0.5, 1.5, 5.0), tensor(1.0, 2.0, 3.0), tensor(1.0, 1.0, 0.5), tensor(0.0, 1.0, 2.0))
case("beta", D.Beta, POSITIVE, RATE, SHARE, without=("mode",))
case("beta_mode", D.Beta, tensor(2.5, 1.5), tensor(3.5, 9.0), tensor(0.2, 0.7))
case("dirichlet", D.Dirichlet, tensor([0.5, 1.5, 3.0], [2.0, 2.0, 5.0]), tensor([0.2, 0.3, 0.5], [0.7, 0.2, 0.1]), without=("mode",))
case("dirichlet_mode", D.Dirichlet, tensor([1.5, 1.1, 3.0], [4.0, 2.0, 1.25]), tensor([0.2, 0.3, 0.5], [0.7, 0.2, 0.1]))

COUNTS = tensor([0.0, 1.0], [3.0, 6.0])
TRUTHS = tensor([0.0, 1.0], [1.0, 0.0])
case("bernoulli", D.Bernoulli, SHARE, TRUTHS)
case("bernoulli_logits", lambda l: D.Bernoulli(logits=l), ANY, TRUTHS)
case("bernoulli_ends", D.Bernoulli, tensor(0.0, 1.0), tensor(0.0, 1.0), without=("mode",))
case("geometric", D.Geometric, SHARE, COUNTS, moving_value=False)
case("geometric_logits", lambda l: D.Geometric(logits=l), tensor([-2.0, 0.25], [0.7, 4.0]), COUNTS, moving_value=False)
case("binomial", lambda p: D.Binomial(6, p), SHARE, COUNTS, without=("mode",))
case("binomial_logits", lambda l: D.Binomial(6, logits=l), tensor([-2.0, 0.25], [0.7, 4.0]), COUNTS, without=("mode",))
case("poisson", D.Poisson, POSITIVE, COUNTS, without=("mode",))
WEIGHTS = tensor([0.2, 0.3, 0.5], [4.0, 1.0, 2.0])
case("categorical", D.Categorical, WEIGHTS, torch.tensor([2, 0]), moving_value=False, without=("mean", "variance", "stddev"))
case("categorical_logits", lambda l: D.Categorical(logits=l), WEIGHTS, torch.tensor([2, 0]), moving_value=False, without=("mean", "variance", "stddev"))
case("one_hot_categorical", D.OneHotCategorical, WEIGHTS, tensor([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]), moving_value=False)
case("multinomial", lambda p: D.Multinomial(5, p), WEIGHTS, tensor([2.0, 3.0, 0.0], [1.0, 1.0, 3.0]), moving_value=False)
case("multinomial_logits", lambda l: D.Multinomial(5, logits=l), WEIGHTS, tensor([2.0, 3.0, 0.0], [1.0, 1.0, 3.0]), moving_value=False)

COVARIANCE = tensor([[2.0, 0.3], [0.3, 0.5]], [[1.0, -0.4], [-0.4, 3.0]])
ROOT = torch.linalg.cholesky(COVARIANCE)
VECTORS = tensor([0.3, -1.0], [2.0, 0.7])
symmetric = lambda m: 0.5 * (m + m.mT)
case("multivariate_normal", lambda l, c: D.MultivariateNormal(l, symmetric(c)), tensor(0.5, -0.5), COVARIANCE, VECTORS)
case("multivariate_normal_precision", lambda l, c: D.MultivariateNormal(l, precision_matrix=symmetric(c)), tensor(0.5, -0.5), COVARIANCE, VECTORS)
case("multivariate_normal_root", lambda l, c: D.MultivariateNormal(l, scale_tril=torch.tril(c)), tensor(0.5, -0.5), ROOT, VECTORS)

case("independent", lambda l, s: D.Independent(D.Normal(l, s), 1), LOC, SCALE, ANY, without=("cdf", "icdf"))
T = D.transforms
transformed = lambda *t: lambda l, s: D.TransformedDistribution(D.Normal(l, s), list(t))
PLAIN = ("entropy", "mean", "mode", "variance", "stddev", "icdf")
SMALL = tensor([-1.0, 0.0], [0.5, 1.0])
case("transformed_affine_exp", lambda l, s: D.TransformedDistribution(D.Normal(l, s), [T.AffineTransform(0.5, -2.0), T.ExpTransform()]), SMALL, SCALE, ABOVE, without=PLAIN)
case("transformed_sigmoid", transformed(T.SigmoidTransform()), SMALL, SCALE, OTHER_SHARE, without=PLAIN)
case("transformed_tanh", transformed(T.TanhTransform()), SMALL, SCALE, OTHER_SHARE, without=PLAIN)
case("transformed_power", lambda l, s: D.TransformedDistribution(D.LogNormal(l, s), [T.PowerTransform(torch.tensor(2.0))]), SMALL, SCALE, ABOVE, without=PLAIN)

# --- pairs: two sets of parameters
TWO = {
    "normal": (D.Normal, (LOC, SCALE), (SMALL, tensor(1.5, 0.5))),
    "log_normal": (D.LogNormal, (SMALL, SCALE), (LOC, tensor(1.5, 0.5))),
    "half_normal": (D.HalfNormal, (SCALE,), (tensor(1.5, 0.5),)),
    "uniform": (D.Uniform, (tensor(0.2, 0.5), tensor(0.7, 3.0)), (tensor(0.0, 0.5), tensor(1.0, 2.0))),
    "exponential": (D.Exponential, (POSITIVE,), (RATE,)),
    "laplace": (D.Laplace, (LOC, SCALE), (SMALL, tensor(1.5, 0.5))),
    "cauchy": (D.Cauchy, (LOC, SCALE), (SMALL, tensor(1.5, 0.5))),
    "gumbel": (D.Gumbel, (SMALL, SCALE), (tensor(0.3, -0.5), tensor(1.5, 3.5))),
    "gamma": (D.Gamma, (POSITIVE, RATE), (ABOVE, tensor(1.5, 0.5))),
    "beta": (D.Beta, (POSITIVE, RATE), (ABOVE, tensor(1.5, 0.5))),
    "dirichlet": (D.Dirichlet, (tensor([0.5, 1.5, 3.0], [2.0, 2.0, 5.0]),), (tensor(1.0, 0.3, 4.0),)),
    "bernoulli": (D.Bernoulli, (SHARE,), (OTHER_SHARE,)),
    "geometric": (D.Geometric, (SHARE,), (OTHER_SHARE,)),
    "poisson": (D.Poisson, (POSITIVE,), (RATE,)),
    "binomial": (lambda p: D.Binomial(6, p), (SHARE,), (OTHER_SHARE,)),
    "categorical": (D.Categorical, (WEIGHTS,), (tensor(0.5, 0.2, 0.3),)),
    "one_hot_categorical": (D.OneHotCategorical, (WEIGHTS,), (tensor(0.5, 0.2, 0.3),)),
    "multivariate_normal": (lambda l, c: D.MultivariateNormal(l, scale_tril=torch.tril(c)), (tensor(0.5, -0.5), ROOT), (VECTORS, ROOT.flip(0))),
    "independent": (lambda l, s: D.Independent(D.Normal(l, s), 1), (LOC, SCALE), (SMALL, tensor(1.5, 0.5))),
}
for name, (make, p, q) in TWO.items():
    kl(f"{name}_{name}", lambda *x, make=make, n=len(p): (make(*x[:n]), make(*x[n:])), *p, *q)

FIRST = {
    "bernoulli": (SHARE,), "beta": (POSITIVE, RATE), "exponential": (POSITIVE,), "gamma": (POSITIVE, RATE),
    "gumbel": (SMALL, SCALE), "laplace": (SMALL, SCALE), "normal": (SMALL, SCALE), "poisson": (POSITIVE,),
    "uniform": (tensor(0.2, 0.5), tensor(0.7, 0.9)),
}
SECOND = {
    "poisson": (RATE,), "exponential": (RATE,), "gamma": (ABOVE, tensor(1.5, 0.5)), "normal": (LOC, tensor(1.5, 0.5)),
    "uniform": (tensor(-0.2, 0.0), tensor(1.5, 2.0)), "gumbel": (SMALL, tensor(1.5, 0.8)), "laplace": (LOC, tensor(1.5, 0.5)),
    "beta": (POSITIVE, RATE), "bernoulli": (OTHER_SHARE,),
}
for first, second in [
        ("bernoulli", "poisson"), ("beta", "exponential"), ("beta", "gamma"), ("beta", "normal"), ("beta", "uniform"),
        ("exponential", "gamma"), ("exponential", "gumbel"), ("exponential", "normal"), ("exponential", "beta"),
        ("gamma", "exponential"), ("gamma", "gumbel"), ("gamma", "normal"), ("gamma", "uniform"), ("gumbel", "normal"),
        ("gumbel", "gamma"), ("laplace", "normal"), ("laplace", "exponential"), ("normal", "gumbel"), ("normal", "laplace"),
        ("normal", "beta"), ("poisson", "bernoulli"), ("uniform", "beta"), ("uniform", "exponential"), ("uniform", "gamma"),
        ("uniform", "gumbel"), ("uniform", "normal")]:
    p, q = FIRST[first], SECOND[second]
    kl(f"{first}_{second}", lambda *x, f=first, s=second, n=len(p): (TWO[f][0](*x[:n]), TWO[s][0](*x[n:])), *p, *q)

# --- special functions, to their ends
ENDS = tensor(-1e5, -7.5, -2.0, -1.25, -1e-9, 0.0, 1e-300, 1e-20, 0.3, 0.999999, 1.0, 1.5, 2.0, 9.99, 10.01, 333.0, 1e10, 1e300,
              float("inf"), float("nan"))
OUT["special/x"] = ENDS
OUT["special/lgamma"] = torch.lgamma(ENDS)
OUT["special/digamma"] = torch.digamma(ENDS)
INNER = tensor(-7.5, -1.25, 1e-3, 0.3, 1.0, 1.5, 9.99, 10.01, 333.0, 1e10)
OUT["special/polygamma_x"] = INNER
for n in (1, 2, 4):
    OUT[f"special/polygamma{n}"] = tensor(*[float(mpmath.psi(n, float(x))) for x in INNER])
OUT["special/mvlgamma"] = torch.mvlgamma(tensor(2.5, 30.0), 3)
UNIT = tensor(-2.0, -1.0, -1 + 1e-15, -0.9, -1e-200, 0.0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-12, 1.0, float("nan"))
OUT["special/unit"], OUT["special/erfinv"] = UNIT, torch.erfinv(UNIT)
SHAPES, POINTS = torch.meshgrid(
    tensor(0.01, 0.5, 1.0, 11.0, 80.0, 1e6),
    tensor(1e-12, 0.5, 1.0, 1.3), indexing="ij")
POINTS = POINTS * torch.where(POINTS > 1e-3, SHAPES, torch.ones(()))
OUT["special/shape"], OUT["special/point"] = SHAPES, POINTS
mpmath.mp.dps = 20


def quadrature(a, x, weight):
    """The integral of weight(t) t^(a-1) e^-t over the tail that does not hold the mode, over x^a e^-x, with its sign."""
    a, x = mpmath.mpf(a), mpmath.mpf(x)
    sign = -1 if x < a else 1
    f = lambda v: weight(x * mpmath.exp(sign * v)) * mpmath.exp(sign * a * v - x * mpmath.expm1(sign * v))
    end = min(100 / max(abs(x - a), a if x < 1 else mpmath.mpf("1e-30")), mpmath.sqrt(250 / x) + 60 / (1 + x) if x > 1 else 250 / a)
    return sign, mpmath.quad(f, [0] + [end * mpmath.mpf(2) ** -k for k in range(8, -1, -1)])


def share_and_slope(a, x):
    front = mpmath.exp(mpmath.mpf(a) * mpmath.log(x) - mpmath.mpf(x) - mpmath.loggamma(a))
    sign, tail = quadrature(a, x, lambda t: 1)
    psi = mpmath.psi(0, a)
    _, moved = quadrature(a, x, lambda t: mpmath.log(t) - psi)
    return (front * tail if sign < 0 else 1 - front * tail), sign * x * moved


pairs = [share_and_slope(float(a), float(x)) for a, x in zip(SHAPES.reshape(-1), POINTS.reshape(-1))]
OUT["special/gammainc"] = tensor(*[float(p) for p, _ in pairs]).reshape(SHAPES.shape)
OUT["special/slope"] = tensor(*[float(s) for _, s in pairs]).reshape(SHAPES.shape)

save_safetensors(recorded_path("distributions.safetensors"), OUT, {"cases": " ".join(NAMES), **METADATA})
print(len(NAMES), "cases")
