"""The step in JAX, float32 as is its default, compiled as one: dense over all terms, and over the words that occur.

A form is a function of (state, z, schedule) that returns the next state and the documents' values.
"""

import functools

import jax
import jax.numpy as jnp
from jax.nn import sigmoid, softplus

import job

finish = functools.partial(job.finish, jnp, sigmoid, softplus)


def drawn(key, state):
    """8 draws of every latent by JAX's own sampler."""
    mean = softplus(state.lam) + job.RATE_MIN
    shape = (mean.shape[0], job.DRAWS, mean.shape[1])
    return jax.random.poisson(key, mean[:, None], shape).astype(jnp.float32)


def inverted(key, state):
    """The same by going up the distribution function, all latents together until the last has arrived."""
    mean = (softplus(state.lam) + job.RATE_MIN)[:, None]
    u = jax.random.uniform(key, (mean.shape[0], job.DRAWS, mean.shape[2]))

    def up(at):
        z, p, reached, count = at
        z = z + (u > reached)
        p = p * mean / count
        return z, p, reached + p, count + 1

    # In single precision the function may stop short of 1.
    def is_short(at):
        return jnp.any(u > at[2]) & (at[3] < 100)

    none = jnp.exp(-mean)
    return jax.lax.while_loop(is_short, up, (jnp.zeros_like(u), none, none, 1.0))[0]


DRAWS = {"poisson": jax.jit(drawn), "inversion": jax.jit(inverted)}


def dense(documents, background):
    x, b = jnp.asarray(documents.dense()), jnp.asarray(background, jnp.float32)

    def step(state, z, at):
        rates = jnp.einsum("dsk,vk->dsv", z, state.seen) + b
        inverse = 1 / rates
        log_rates = jnp.einsum("dv,dsv->d", x, jnp.log(rates)) / job.DRAWS
        explained = jnp.einsum("dsv,dsk->vk", x[:, None] * inverse, z)

        # All documents at once would be 13 GB; one at a time, the terms are summed over without being kept.
        def one(own):
            x, inverse = own
            logs = jnp.log(1 + state.seen[:, None] * inverse.T[:, :, None]).sum(1)
            return x @ logs

        signal = jax.lax.map(one, (x, inverse)) / job.DRAWS
        return finish(state, at, log_rates, signal, explained)

    return jax.jit(step)


def logs_apart(w, inverse):
    """sum_s ln(1 + W / R) of every word and latent, a logarithm for each draw."""
    return jnp.log(1 + w[:, :, None] * inverse[..., None]).sum(2)


def logs_together(w, inverse):
    """The same with one logarithm for four draws: a product of four is a number as long as no factor is beyond 1e9."""
    factors = [1 + w * inverse[:, :, s, None] for s in range(job.DRAWS)]
    return sum(jnp.log(functools.reduce(jnp.multiply, factors[first : first + 4])) for first in range(0, job.DRAWS, 4))


def sparse(documents, background, groups, logs, scatter):
    """The rows of W of the words that occur, padded to the longest document of each group. `scatter` says how their statistics come
    together by term: one by one, or sorted by term."""
    padded = [tuple(map(jnp.asarray, group)) for group in documents.padded(groups)]
    all_terms = jnp.concatenate([terms.reshape(-1) for _, terms, _ in padded])
    order = jnp.argsort(all_terms)
    b = jnp.asarray(background, jnp.float32)
    places = jnp.argsort(jnp.concatenate([places for places, _, _ in padded]))

    def step(state, z, at):
        log_rates, signal, rows = [], [], []
        for own, terms, x in padded:
            w, z_own = state.seen[terms], z[own]
            rates = jnp.einsum("npk,nsk->nps", w, z_own) + b[terms][:, :, None]
            inverse = 1 / rates
            log_rates.append(jnp.einsum("np,nps->n", x, jnp.log(rates)) / job.DRAWS)
            signal.append(jnp.einsum("np,npk->nk", x, logs(w, inverse)) / job.DRAWS)
            rows.append(jnp.einsum("nps,nsk->npk", x[..., None] * inverse, z_own).reshape(-1, job.LATENTS))
        rows = jnp.concatenate(rows)
        if scatter == "sorted":
            explained = jax.ops.segment_sum(rows[order], all_terms[order], documents.terms_len, indices_are_sorted=True)
        else:
            explained = jnp.zeros_like(state.seen).at[all_terms].add(rows)
        return finish(state, at, jnp.concatenate(log_rates)[places], jnp.concatenate(signal)[places], explained)

    return jax.jit(step)


def forms(documents, background):
    def made(groups, logs, scatter):
        return sparse(documents, background, groups, logs, scatter)

    return {
        "dense": dense(documents, background),
        "sparse, 1 group": made(1, logs_apart, "one by one"),
        "sparse, 8 groups": made(8, logs_apart, "sorted"),
        "sparse, 32 groups": made(32, logs_apart, "sorted"),
        "sparse, 32 groups, four draws a logarithm": made(32, logs_together, "sorted"),
        "sparse, 64 groups, four draws a logarithm": made(64, logs_together, "sorted"),
        "sparse, 32 groups, four draws, unsorted": made(32, logs_together, "one by one"),
    }
