"""The tape bench's job in JAX: a hierarchical logistic regression, log density and gradient at many draws, jit-compiled.

jax_logistic.py [--rows 2000] [--columns 10] [--draws 64] [--threads 1] [--repeats 300] [--write FOLDER]

The model, for i in rows and k in columns, with latents (mu[k], log sigma, beta[k]) on the unconstrained scale:

    mu[k] ~ dnorm(0, 0.01)    sigma ~ dexp(1)    beta[k] ~ dnorm(mu[k], 1 / sigma^2)    y[i] ~ dbern(ilogit(x[i, ] . beta))

with log sigma's Jacobian. Data and draws are drawn with a fixed seed. Prints milliseconds a call: the median and the least.
Two forms: one draw under vmap(value_and_grad), and all draws at once with the product arranged by hand. --write leaves the
inputs and the answers as raw little-endian float64, row-major, for another program to do the same job: x, y, draws, log_p and
gradient.
"""

import argparse
import os
import pathlib
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--draws", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--write", metavar="FOLDER", type=pathlib.Path)
    return parser.parse_args()


def pin(threads):
    """XLA has no dependable option for its number of threads on a CPU; it takes as many as the process may run on."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        sys.exit(f"{threads} threads asked for, {len(allowed)} cores allowed")
    os.sched_setaffinity(0, set(allowed[:threads]))
    os.environ["JAX_PLATFORMS"] = "cpu"


def main():
    chosen = arguments()
    pin(chosen.threads)

    # Only now: XLA counts the cores when it starts.
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(1)
    k = chosen.columns
    x = rng.standard_normal((chosen.rows, k))
    y = (rng.random(chosen.rows) < 1 / (1 + np.exp(-x @ rng.standard_normal(k)))).astype(float)
    draws = 0.3 * rng.standard_normal((chosen.draws, 2 * k + 1))

    def prior(z):
        """Of one draw, or of each along the last axis."""
        mu, log_sigma, beta = z[..., :k], z[..., k], z[..., k + 1 :]
        half_ln_2_pi = 0.5 * np.log(2 * np.pi)
        log_p = jnp.sum(-0.5 * 0.01 * mu**2 + 0.5 * np.log(0.01) - half_ln_2_pi, -1)
        log_p += log_sigma - jnp.exp(log_sigma)
        scaled = (beta - mu) * jnp.exp(-log_sigma)[..., None]
        return log_p + jnp.sum(-0.5 * scaled**2 - half_ln_2_pi, -1) - k * log_sigma

    def one(z, x, y):
        eta = x @ z[k + 1 :]
        return prior(z) + jnp.sum(y * eta - jax.nn.softplus(eta))

    def together(z, x, y):
        eta = x @ z[:, k + 1 :].T
        log_p = prior(z) + jnp.sum(y[:, None] * eta - jax.nn.softplus(eta), 0)
        # Draws do not meet, so that the gradient of the sum holds each draw's gradient.
        return jnp.sum(log_p), log_p

    vmapped = jax.jit(jax.vmap(jax.value_and_grad(one), in_axes=(0, None, None)))
    batched = jax.jit(jax.value_and_grad(together, has_aux=True))

    def hand(z, x, y):
        (_, log_p), gradient = batched(z, x, y)
        return log_p, gradient

    print(f"{chosen.rows} x {k}, {chosen.draws} draws, {chosen.threads} threads, jax {jax.__version__}")
    print(f"{'milliseconds a call':24} {'median':>9} {'min':>9} {'p90':>9} {'cores busy':>11}")
    values = {}
    for numbers in ("float64", "float32"):
        given = [jax.device_put(a.astype(numbers)) for a in (draws, x, y)]
        for label, call in (("vmap", vmapped), ("batched", hand)):
            for _ in range(10):
                found = jax.block_until_ready(call(*given))
            values[label, numbers] = found
            times = []
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(chosen.repeats):
                start = time.perf_counter()
                jax.block_until_ready(call(*given))
                times.append(1e3 * (time.perf_counter() - start))
            busy = (time.process_time() - cpu) / (time.perf_counter() - wall)
            times = np.array(times)
            least, p90 = times.min(), np.quantile(times, 0.9)
            print(f"JAX {label:8} {numbers:11} {np.median(times):9.3f} {least:9.3f} {p90:9.3f} {busy:11.1f}")
    exact = [np.asarray(part) for part in values["vmap", "float64"]]
    for key, found in values.items():
        errors = [np.abs(np.asarray(ours) - part).max() / np.abs(part).max() for ours, part in zip(found, exact)]
        bound = 1e-12 if key[1] == "float64" else 1e-4
        if max(errors) > bound:
            sys.exit(f"{key} differs from vmap in float64 by {max(errors):.1e}")
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        for name, numbers in {"x": x, "y": y, "draws": draws, "log_p": exact[0], "gradient": exact[1]}.items():
            numbers.astype("<f8").tofile(chosen.write / f"{name}.f64")
    # For the other side of the bench to agree with.
    print(f"log density of the first draw {exact[0][0]:.12g}, mean of all {exact[0].mean():.12g}")


if __name__ == "__main__":
    main()
