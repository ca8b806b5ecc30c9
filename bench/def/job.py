"""The job of the step bench, as every peer has it: the documents, the settings and what a step does beside its documents.

One layer of counts: x_dv ~ Poisson(b_v + sum_k W_vk z_dk), z_dk ~ Poisson(softplus(c_k)), q(z_dk) = Poisson(softplus(lambda_dk)),
q(W_vk) = Gamma(A_vk, B_k). A step has, from 8 draws of z for each of 256 documents,
  the value     sum_v x_v ln R_v - sum_k m_k sum_v E W_vk - KL(q(z) || p(z)),
  the signal    E[f(z + e_k) - f(z)] of every latent: sum_v x_v ln(1 + W_vk / R_v) over the draws, and what does not depend on them,
  the statistic sum_d x_v z_k / R_v of every weight,
and then takes ln m a share of the signal further, the less the more words the latent brings, c along its gradient with Adam, and A
and B a part of the way to their conjugate values.
"""

import collections
import math

import numpy as np

LATENTS, DRAWS = 100, 8
RATE_MIN = 1e-4
PRIOR_SHAPE, PRIOR_RATE = 0.1, 0.3
LOCAL_SIZE, STIFF, STEP_MAX, LEAST, BETWEEN_SIZE = 0.5, 1 / 3, 0.5, 6.2e-6, 0.02
FIRST, SECOND, TINY = 0.9, 0.99, 1e-7
DELAY, FORGETTING, SHARP = 4.0, 0.6, 0.7

State = collections.namedtuple(
    "State", "lam shape rate intercept intercept_first intercept_second seen sums"
)
# What a step depends on beside the state: its number, how far the statistics move, the share of the first step size, and how far
# what documents see of the weights has gone from E W to exp E ln W.
Schedule = collections.namedtuple("Schedule", "number forgetting falling sharpness")


class Documents:
    """Counts as they are read, document after document."""

    def __init__(self, folder):
        lines = (folder / "docs.ldac").read_text().splitlines()
        pairs = [[pair.split(":") for pair in line.split()[1:]] for line in lines]
        self.terms = [np.array([int(term) for term, _ in own], np.int32) for own in pairs]
        self.counts = [np.array([float(count) for _, count in own], np.float32) for own in pairs]
        self.terms_len = len((folder / "vocab.txt").read_text().splitlines())
        self.len = len(lines)

    def dense(self):
        x = np.zeros((self.len, self.terms_len), np.float32)
        for d in range(self.len):
            x[d, self.terms[d]] = self.counts[d]
        return x

    def padded(self, groups):
        """Documents of about the same length together, each group padded to its longest: [(places, terms, counts)]. A word that
        only fills up has count 0."""
        order = np.argsort([len(own) for own in self.terms], kind="stable")
        return [self.pad(places) for places in np.array_split(order, groups)]

    def pad(self, places):
        longest = max(len(self.terms[d]) for d in places)
        terms, counts = np.zeros((len(places), longest), np.int32), np.zeros((len(places), longest), np.float32)
        for i, d in enumerate(places):
            terms[i, : len(self.terms[d])] = self.terms[d]
            counts[i, : len(self.terms[d])] = self.counts[d]
        return places.astype(np.int32), terms, counts


def schedule(step, steps):
    done = step / steps
    falling = 1.0 if done < 0.5 else max(0.5 * (1 + math.cos(math.pi * min(2 * done - 1, 1))), 0.02)
    return Schedule(step + 1.0, (step + DELAY) ** -FORGETTING, falling, min(done / SHARP, 1.0))


def read(folder, name, *shape):
    return np.fromfile(folder / f"{name}.f64").reshape(shape)


def start(folder, documents):
    """The product's start, in double precision, and b."""
    mean = read(folder, "start_mean", documents.terms_len, LATENTS)
    activity = read(folder, "start_activity", documents.len, LATENTS) - RATE_MIN
    intercept = read(folder, "start_intercept", LATENTS)
    rate = np.full(LATENTS, PRIOR_RATE + documents.len)
    lam = np.log(np.expm1(activity))
    state = State(lam, mean * rate, rate, intercept, 0 * intercept, 0 * intercept, mean, mean.sum(axis=0))
    return state, read(folder, "background", documents.terms_len)


def finish(xp, sigmoid, softplus, state, at, log_rates, signal, explained):
    """A step once its documents are done, in numpy, JAX or PyTorch. `log_rates` is sum_v x_v ln R_v of each document, `signal`
    sum_v x_v ln(1 + W_vk / R_v), both averaged over the draws, and `explained` sum_d x_v z_k / R_v over documents and draws."""
    rate = state.rate
    mean, above = softplus(state.lam) + RATE_MIN, softplus(state.intercept) + RATE_MIN
    log_ratio = xp.log(above) - xp.log(mean)
    value = log_rates + (mean * (log_ratio + 1 - state.sums) - above).sum(-1)
    share = LOCAL_SIZE * at.falling / (STIFF * (1 + state.sums))
    step = xp.clip(share * (signal - state.sums + log_ratio), -STEP_MAX, STEP_MAX)
    soft = xp.clip(mean * xp.exp(step) - RATE_MIN, LEAST, None)
    lam = soft + xp.log(-xp.expm1(-soft))
    d_intercept = sigmoid(state.intercept) * (mean / above - 1).sum(0)
    intercept, *intercept_moments = ascend(
        xp, state.intercept, d_intercept, state.intercept_first, state.intercept_second, at, BETWEEN_SIZE
    )
    goal = PRIOR_SHAPE + state.seen * explained / DRAWS
    shape = state.shape + at.forgetting * (goal - state.shape)
    rate = rate + at.forgetting * (PRIOR_RATE + mean.sum(0) - rate)
    seen, sums = look(xp, shape, rate, at.sharpness)
    return State(lam, shape, rate, intercept, *intercept_moments, seen, sums), value


def look(xp, shape, rate, sharpness):
    """What documents see of the weights: E W to exp E ln W, and the sums of E W."""
    # exp psi(a): six steps up, then the asymptotic series.
    lost = sum(1 / (shape + i) for i in range(6))
    y = 1 / (shape + 6)
    top = shape + 5.5 + y * (1 / 24 + y * (1 / 48 - y * (23 / 5760)))
    # E W (exp E ln W / E W)^sharpness, by the logarithm of the ratio.
    return shape / rate * xp.exp(sharpness * (xp.log(top / shape) - lost)), shape.sum(0) / rate


def ascend(xp, at_value, gradient, first, second, at, size):
    first = first + (1 - FIRST) * (gradient - first)
    second = second + (1 - SECOND) * (gradient * gradient - second)
    step = first / (1 - FIRST**at.number)
    return at_value + size * at.falling * step / (xp.sqrt(second / (1 - SECOND**at.number)) + TINY), first, second
