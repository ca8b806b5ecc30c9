"""Writes the inputs of the flow bench, the same on every machine, as raw little-endian float32 files.

theta and phi are laid out as the product lays them out:
theta = m, l, then per layer of the flow u, w, b;
phi   = per layer of the inverse flow u, w, b, then per latent a, b1, b2, e, f1, f2.
Arrays over draws are [posterior, draw, latent].
"""

import pathlib
import sys

import numpy as np

POSTERIORS, DRAWS, LATENTS, FLOW, INVERSE = 256, 8, 145, 2, 10
SEED = 20160519


def layers(rng, count):
    u = rng.normal(0, 0.15, (POSTERIORS, count, LATENTS))
    w = rng.normal(0, 0.15, (POSTERIORS, count, LATENTS))
    b = rng.normal(0, 0.3, (POSTERIORS, count, 1))
    return np.concatenate([u, w, b], axis=2).reshape(POSTERIORS, -1)


def main(folder):
    rng = np.random.default_rng(SEED)
    per_latent = (POSTERIORS, LATENTS)
    per_draw = (POSTERIORS, DRAWS, LATENTS)
    m, l = rng.normal(-0.5, 0.5, per_latent), rng.normal(-1.0, 0.2, per_latent)
    theta = np.concatenate([m, l, layers(rng, FLOW)], axis=1)
    base = [(0.0, 0.3), (0.3, 0.1), (0.2, 0.1), (-0.3, 0.1), (0.1, 0.05), (0.1, 0.05)]
    base = np.stack([rng.normal(mean, sd, per_latent) for mean, sd in base], axis=2)
    phi = np.concatenate([layers(rng, INVERSE), base.reshape(POSTERIORS, -1)], axis=1)
    arrays = {
        "theta": theta,
        "phi": phi,
        "eps": rng.normal(size=per_draw),
        "z": rng.poisson(0.8, per_draw),
        "g": rng.normal(size=per_draw),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.ascontiguousarray(array, dtype="<f4").tofile(folder / f"{name}.f32")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
