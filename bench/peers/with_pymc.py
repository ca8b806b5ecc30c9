"""The models in PyMC, discrete latents as they stand: it gives them Metropolis or Gibbs steps beside NUTS."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def coal(data):
    k = pm.DiscreteUniform("k", 1, data["n"])
    rate = pm.Gamma("lambda", 1, 1, shape=2)
    pm.Poisson("y", rate[(np.arange(1, data["n"] + 1) > k).astype(int)], observed=data["y"])


def spike_hald(data):
    tau = pm.Gamma("tau", 2, data["b0"])
    g = pm.Bernoulli("g", 0.5, shape=data["p"])
    b = pm.Normal("b", 0, tau=tau / 4, shape=data["p"])
    beta = pm.Deterministic("beta", g * b)
    pm.Normal("y", np.array(data["X"]) @ beta, tau=tau, observed=data["y"])


def hmm_quakes(data):
    first = pm.Gamma("first", 2, 0.1)
    d = pm.Gamma("d", 2, 0.2, shape=data["K"] - 1)
    rate = pm.Deterministic("lambda", pt.concatenate([first[None], first + pt.cumsum(d)]))
    A = pm.Dirichlet("A", np.array(data["alpha"], dtype=float))
    z = pm.Categorical("z", np.ones(data["K"]) / data["K"], shape=data["n"])
    # z[1] is even; the others follow A, so the even law that z was declared with is constant and drops out.
    pm.Potential("chain", pt.log(A)[z[:-1], z[1:]].sum())
    pm.Poisson("y", rate[z], observed=data["y"])


def dawid_skene(data):
    pi = pm.Dirichlet("pi", np.ones(data["K"]))
    theta = pm.Dirichlet("theta", np.broadcast_to(np.array(data["beta"], dtype=float), (data["J"], data["K"], data["K"])))
    c = pm.Categorical("c", pi, shape=data["I"])
    rater, item = np.array(data["rater"]) - 1, np.array(data["item"]) - 1
    pm.Categorical("y", theta[rater, c[item]], observed=np.array(data["y"]) - 1)


def n_mixture(data):
    y = np.array(data["y"])
    a = pm.Normal("a", 0, tau=0.1)
    b = pm.Normal("b", 0, tau=0.1)
    p = pm.Beta("p", 1, 1)
    # A start from which every count is possible, as JAGS and we find by ourselves.
    N = pm.Poisson("N", pt.exp(a + b * np.array(data["forest"])), shape=data["sites"], initval=y.max(axis=1) + 1)
    pm.Binomial("y", N[:, None], p, observed=y)


def rats(data):
    mu_a = pm.Normal("mu.a", 250, 100)
    mu_b = pm.Normal("mu.b", 0, 10)
    sigma = pm.Uniform("sigma", 0, 50)
    sigma_a = pm.Uniform("sigma.a", 0, 100)
    sigma_b = pm.Uniform("sigma.b", 0, 10)
    a = pm.Normal("a", mu_a, sigma_a, shape=data["rats"])
    b = pm.Normal("b", mu_b, sigma_b, shape=data["rats"])
    pm.Normal("weight", a[:, None] + b[:, None] * (np.array(data["day"]) - 22), sigma, observed=data["weight"])
    pm.Deterministic("at.birth", mu_a - 22 * mu_b)


def level(data):
    scale = pm.Uniform("level", 0, 10)
    noise = pm.Uniform("noise", 0, 10)
    first = pm.Normal("first", 0, tau=0.001)
    step = pm.Normal("step", 0, 1, shape=data["n"] - 1)
    x = pt.concatenate([first[None], first + scale * pt.cumsum(step)])
    pm.Normal("y", x, noise, observed=data["y"])


def effects(data):
    mu = pm.Normal("mu", 0, 10)
    sd = pm.Uniform("sd", 0, 10)
    x = pm.Normal("x", mu, sd, shape=data["n"])
    pm.Binomial("y", 10, logit_p=x, observed=data["y"])


def volatility(data):
    mu = pm.Normal("mu", 0, tau=0.1)
    half = pm.Beta("half", 20, 1.5)
    phi = pm.Deterministic("phi", 2 * half - 1)
    sd = pm.Uniform("sd", 0, 2)
    start = pm.Normal.dist(0, sd / pt.sqrt(1 - phi**2))
    h = mu + pm.AR("h", rho=phi[None], sigma=sd, init_dist=start, steps=data["n"] - 1)
    pm.Normal("y", 0, pt.exp(h / 2), observed=data["y"])


def responses(data):
    a = pm.LogNormal("a", 0, 0.5, shape=20)
    b = pm.Normal("b", 0, 2, shape=20)
    x = pm.Normal("x", 0, 1, shape=data["n"])
    pm.Bernoulli("y", logit_p=a * (x[:, None] - b), observed=data["y"])


def sample(name, data, seed):
    """Draws by name, each of shape (chains, draws, extents...): four chains, the program's defaults."""
    with pm.Model():
        globals()[name](data)
        trace = pm.sample(chains=4, random_seed=seed, progressbar=False)
    return {key: values.values for key, values in trace.posterior.items()}
