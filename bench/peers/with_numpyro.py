"""The models in NumPyro: finite discrete latents summed out as it does where asked to, the rest by NUTS."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpyro

numpyro.set_host_device_count(4)

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.contrib.control_flow import scan
from numpyro.ops.indexing import Vindex
from numpyro.infer import MCMC, NUTS


def summed():
    """What asks for a sum; NumPyro writes into it, so each site has one of its own."""
    return {"enumerate": "parallel"}


def coal(data):
    rate = numpyro.sample("lambda", dist.Gamma(1, 1).expand([2]).to_event(1))
    k = numpyro.sample("k", dist.Categorical(jnp.ones(data["n"]) / data["n"]), infer=summed())
    with numpyro.plate("years", data["n"]):
        late = (jnp.arange(data["n"]) > k).astype(int)
        numpyro.sample("y", dist.Poisson(rate[late]), obs=jnp.array(data["y"]))


def spike_hald(data):
    X = jnp.array(data["X"])
    tau = numpyro.sample("tau", dist.Gamma(2, data["b0"]))
    b = numpyro.sample("b", dist.Normal(0, 2 / jnp.sqrt(tau)).expand([data["p"]]).to_event(1))
    g = [numpyro.sample(f"g{j}", dist.Bernoulli(0.5), infer=summed()) for j in range(data["p"])]
    # The summed values lie along dimensions of their own, before that of the rows.
    mean = sum(g[j][..., None] * b[j] * X[:, j] for j in range(data["p"]))
    numpyro.sample("y", dist.Normal(mean, 1 / jnp.sqrt(tau)).to_event(1), obs=jnp.array(data["y"]))


def hmm_quakes(data):
    first = numpyro.sample("first", dist.Gamma(2, 0.1))
    d = numpyro.sample("d", dist.Gamma(2, 0.2).expand([data["K"] - 1]).to_event(1))
    rate = numpyro.deterministic("lambda", jnp.concatenate([first[None], first + jnp.cumsum(d)]))
    A = numpyro.sample("A", dist.Dirichlet(jnp.array(data["alpha"], dtype=float)).to_event(1))
    y = jnp.array(data["y"])
    z = numpyro.sample("z1", dist.Categorical(jnp.ones(data["K"]) / data["K"]), infer=summed())
    numpyro.sample("y1", dist.Poisson(rate[z]), obs=y[0])

    def step(z, value):
        z = numpyro.sample("z", dist.Categorical(Vindex(A)[z]), infer=summed())
        numpyro.sample("y", dist.Poisson(Vindex(rate)[z]), obs=value)
        return z, None

    scan(step, z, y[1:])


def dawid_skene(data):
    # Ratings as a table of items by raters, each rater's repeats along the last axis, with a mask: `theta` is then indexed
    # by the summed class alone.
    items, raters, classes = data["I"], data["J"], data["K"]
    repeats = max(
        sum(1 for i, r in zip(data["item"], data["rater"]) if (i, r) == cell)
        for cell in set(zip(data["item"], data["rater"]))
    )
    table, known = np.zeros((items, raters, repeats), dtype=int), np.zeros((items, raters, repeats), dtype=bool)
    for i, r, value in zip(data["item"], data["rater"], data["y"]):
        at = known[i - 1, r - 1].sum()
        table[i - 1, r - 1, at], known[i - 1, r - 1, at] = value - 1, True
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(classes)))
    prior = jnp.broadcast_to(jnp.array(data["beta"], dtype=float), (raters, classes, classes))
    theta = numpyro.sample("theta", dist.Dirichlet(prior).to_event(2))
    with numpyro.plate("items", items):
        c = numpyro.sample("c", dist.Categorical(pi), infer=summed())
        rows = jnp.moveaxis(theta, 1, 0)[c][..., None, :]
        numpyro.sample("y", dist.Categorical(rows).mask(known).to_event(2), obs=jnp.array(table))


def n_mixture(data):
    # Counts have no upper end: summed up to a bound, by hand.
    y, N = jnp.array(data["y"]), jnp.arange(101)
    a = numpyro.sample("a", dist.Normal(0, np.sqrt(10)))
    b = numpyro.sample("b", dist.Normal(0, np.sqrt(10)))
    p = numpyro.sample("p", dist.Beta(1, 1))
    prior = dist.Poisson(jnp.exp(a + b * jnp.array(data["forest"]))[:, None]).log_prob(N)
    least = y.max(axis=1)[:, None]
    seen = dist.Binomial(jnp.maximum(N, least)[:, None, :], p).log_prob(y[:, :, None]).sum(axis=1)
    numpyro.factor("y", logsumexp(jnp.where(N >= least, prior + seen, -jnp.inf), axis=1).sum())


def level(data):
    scale = numpyro.sample("level", dist.Uniform(0, 10))
    noise = numpyro.sample("noise", dist.Uniform(0, 10))
    first = numpyro.sample("first", dist.Normal(0, 1000**0.5))
    step = numpyro.sample("step", dist.Normal(0, 1).expand([data["n"] - 1]).to_event(1))
    x = jnp.concatenate([first[None], first + scale * jnp.cumsum(step)])
    numpyro.sample("y", dist.Normal(x, noise).to_event(1), obs=jnp.array(data["y"]))


def effects(data):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    sd = numpyro.sample("sd", dist.Uniform(0, 10))
    with numpyro.plate("groups", data["n"]):
        x = numpyro.sample("x", dist.Normal(mu, sd))
        numpyro.sample("y", dist.Binomial(10, logits=x), obs=jnp.array(data["y"]))


def volatility(data):
    mu = numpyro.sample("mu", dist.Normal(0, 10**0.5))
    phi = numpyro.deterministic("phi", 2 * numpyro.sample("half", dist.Beta(20, 1.5)) - 1)
    sd = numpyro.sample("sd", dist.Uniform(0, 2))
    e = numpyro.sample("e", dist.Normal(0, 1).expand([data["n"]]).to_event(1))
    first = sd * e[0] / jnp.sqrt(1 - phi**2)
    _, rest = jax.lax.scan(lambda h, e: (phi * h + sd * e,) * 2, first, e[1:])
    h = mu + jnp.concatenate([first[None], rest])
    numpyro.sample("y", dist.Normal(0, jnp.exp(h / 2)).to_event(1), obs=jnp.array(data["y"]))


def rats(data):
    mu_a = numpyro.sample("mu.a", dist.Normal(250, 100))
    mu_b = numpyro.sample("mu.b", dist.Normal(0, 10))
    sigma = numpyro.sample("sigma", dist.Uniform(0, 50))
    sigma_a = numpyro.sample("sigma.a", dist.Uniform(0, 100))
    sigma_b = numpyro.sample("sigma.b", dist.Uniform(0, 10))
    with numpyro.plate("rats", data["rats"]):
        a = numpyro.sample("a", dist.Normal(mu_a, sigma_a))
        b = numpyro.sample("b", dist.Normal(mu_b, sigma_b))
    mean = a[:, None] + b[:, None] * (jnp.array(data["day"]) - 22)
    numpyro.sample("weight", dist.Normal(mean, sigma).to_event(2), obs=jnp.array(data["weight"], dtype=float))
    numpyro.deterministic("at.birth", mu_a - 22 * mu_b)


def sample(name, data, seed):
    """Draws by name, each of shape (chains, draws, extents...): NUTS, four chains of 1000 after 1000."""
    mcmc = MCMC(NUTS(globals()[name]), num_warmup=1000, num_samples=1000, num_chains=4, progress_bar=False)
    mcmc.run(jax.random.key(seed), data)
    draws = {key: np.asarray(values) for key, values in mcmc.get_samples(group_by_chain=True).items()}
    if name == "spike_hald":
        draws["beta"] = draws["b"] * included(draws, data, np.random.default_rng(seed))
    return draws


def included(draws, data, random):
    """Draws of g given the others: the sum over g leaves them out of the samples."""
    X, y, p = np.array(data["X"]), np.array(data["y"]), data["p"]
    patterns = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    mean = np.einsum("cdj,mj,nj->cdmn", draws["b"], patterns, X)
    weight = -0.5 * draws["tau"][..., None] * ((y - mean) ** 2).sum(axis=-1)
    chosen = (weight + random.gumbel(size=weight.shape)).argmax(axis=-1)
    return patterns[chosen]
