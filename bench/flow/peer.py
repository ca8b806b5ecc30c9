"""The flow bench's job in JAX, in two forms: as one writes it, and arranged by hand for XLA on a CPU.

Per posterior, over its draws: mean_s [log r(lambda | z) - log q(lambda) + g . lambda], summed over posteriors, with the
gradient along every parameter.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softplus

from inputs import DRAWS, FLOW, INVERSE, LATENTS, POSTERIORS

HALF_LN_2_PI = 0.5 * np.log(2 * np.pi)


def read(folder, name, shape):
    return np.fromfile(folder / f"{name}.f32", "<f4").reshape(shape)


def unpack(theta, phi):
    """The product's flat theta and phi as named arrays."""

    def layers(flat, count, name):
        flat = flat.reshape(POSTERIORS, count, 2 * LATENTS + 1)
        u, w, b = flat[..., :LATENTS], flat[..., LATENTS:-1], flat[..., -1]
        return {f"{name}_u": u, f"{name}_w": w, f"{name}_b": b}

    flow_at, base_at = 2 * LATENTS, INVERSE * (2 * LATENTS + 1)
    base = phi[:, base_at:].reshape(POSTERIORS, LATENTS, 6)
    names = ("a", "b1", "b2", "e", "f1", "f2")
    return {
        "m": theta[:, :LATENTS],
        "l": theta[:, LATENTS:flow_at],
        **layers(theta[:, flow_at:], FLOW, "q"),
        **layers(phi[:, :base_at], INVERSE, "r"),
        **{name: base[..., i] for i, name in enumerate(names)},
    }


def pack(p):
    """Named arrays as the product's flat theta and phi."""

    def layers(name):
        parts = [p[f"{name}_u"], p[f"{name}_w"], p[f"{name}_b"][..., None]]
        return np.concatenate(parts, axis=2).reshape(POSTERIORS, -1)

    base = np.stack([p[name] for name in ("a", "b1", "b2", "e", "f1", "f2")], axis=2).reshape(POSTERIORS, -1)
    return np.concatenate([p["m"], p["l"], layers("q")], axis=1), np.concatenate([layers("r"), base], axis=1)


def inputs(folder):
    theta_len = 2 * LATENTS + FLOW * (2 * LATENTS + 1)
    phi_len = INVERSE * (2 * LATENTS + 1) + 6 * LATENTS
    theta, phi = read(folder, "theta", (POSTERIORS, theta_len)), read(folder, "phi", (POSTERIORS, phi_len))
    draws = [read(folder, name, (POSTERIORS, DRAWS, LATENTS)) for name in ("eps", "z", "g")]
    parameters = {name: np.ascontiguousarray(array) for name, array in unpack(theta, phi).items()}
    return jax.tree.map(jnp.asarray, (parameters, *draws))


# As one writes it: one draw of one posterior, vmapped twice.


def one_draw(p, eps, z, g):
    def layer(x, u, w, b):
        wu = w @ u
        wu_hat = softplus(wu) - 1
        u_hat = u + (wu_hat - wu) * w / (w @ w)
        h = jnp.tanh(w @ x + b)
        return x + u_hat * h, jnp.log(1 + (1 - h * h) * wu_hat)

    x = p["m"] + jnp.exp(p["l"]) * eps
    log_q = -(0.5 * eps * eps + p["l"] + HALF_LN_2_PI).sum()
    for k in range(FLOW):
        x, log_det = layer(x, p["q_u"][k], p["q_w"][k], p["q_b"][k])
        log_q -= log_det
    linear, log_r = g @ x, 0.0
    for k in range(INVERSE):
        x, log_det = layer(x, p["r_u"][k], p["r_w"][k], p["r_b"][k])
        log_r += log_det
    t1, t2 = jnp.log1p(z), z / 8
    log_sd = p["e"] + p["f1"] * t1 + p["f2"] * t2
    miss = (x - p["a"] - p["b1"] * t1 - p["b2"] * t2) * jnp.exp(-log_sd)
    log_r -= (0.5 * miss * miss + log_sd + HALF_LN_2_PI).sum()
    return log_r - log_q + linear


def vmap_value(p, eps, z, g):
    one_posterior = jax.vmap(one_draw, in_axes=(None, 0, 0, 0))
    return jax.vmap(one_posterior)(p, eps, z, g).mean(axis=1).sum()


# Arranged by hand: explicit batch dimensions, products and sums in place of batched matrix products, which XLA runs
# one small matrix at a time on a CPU.


def batched_value(p, eps, z, g):
    def dot(x, y):
        return (x * y).sum(-1)

    def layer(x, u, w, b):
        wu = dot(w, u)
        wu_hat = softplus(wu) - 1
        u_hat = u + ((wu_hat - wu) / dot(w, w))[:, None] * w
        h = jnp.tanh(dot(x, w[:, None]) + b[:, None])
        return x + u_hat[:, None] * h[..., None], jnp.log(1 + (1 - h * h) * wu_hat[:, None])

    x = p["m"][:, None] + jnp.exp(p["l"])[:, None] * eps
    value = 0.5 * dot(eps, eps) + (p["l"].sum(-1) + LATENTS * HALF_LN_2_PI)[:, None]
    for k in range(FLOW):
        x, log_det = layer(x, p["q_u"][:, k], p["q_w"][:, k], p["q_b"][:, k])
        value += log_det
    value += dot(g, x)
    for k in range(INVERSE):
        x, log_det = layer(x, p["r_u"][:, k], p["r_w"][:, k], p["r_b"][:, k])
        value += log_det
    t1, t2 = jnp.log1p(z), z / 8
    log_sd = p["e"][:, None] + p["f1"][:, None] * t1 + p["f2"][:, None] * t2
    miss = (x - p["a"][:, None] - p["b1"][:, None] * t1 - p["b2"][:, None] * t2) * jnp.exp(-log_sd)
    value -= (0.5 * miss * miss + log_sd + HALF_LN_2_PI).sum(-1)
    return value.sum() / DRAWS


FORMS = {"vmap": jax.jit(jax.value_and_grad(vmap_value)), "batched": jax.jit(jax.value_and_grad(batched_value))}
