"""The step in numpy and double precision, document by document and over all terms: what the peers are held to."""

import numpy as np
from scipy.special import expit

import job


def softplus(x):
    return np.logaddexp(0, x)


def step(documents, background, state, z, at):
    x = documents.dense().astype(float)
    log_rates, signal = np.zeros(documents.len), np.zeros((documents.len, job.LATENTS))
    explained = np.zeros_like(state.seen)
    for d in range(documents.len):
        for s in range(job.DRAWS):
            rates = background + state.seen @ z[d, s]
            log_rates[d] += x[d] @ np.log(rates) / job.DRAWS
            signal[d] += x[d] @ np.log1p(state.seen / rates[:, None]) / job.DRAWS
            explained += np.outer(x[d] / rates, z[d, s])
    return job.finish(np, expit, softplus, state, at, log_rates, signal, explained)
