"""The step in PyTorch on a CPU, float32: over the words that occur, as it runs line by line and compiled.

A form is a function of (state, z, schedule) that returns the next state and the documents' values.
"""

import functools

import torch

import job

finish = functools.partial(job.finish, torch, torch.sigmoid, torch.nn.functional.softplus)


def tensors(tree):
    return [torch.from_numpy(array) for array in tree]


def drawn(state):
    """8 draws of every latent by PyTorch's own sampler."""
    mean = torch.nn.functional.softplus(state.lam) + job.RATE_MIN
    return torch.poisson(mean[:, None].expand(-1, job.DRAWS, -1).contiguous())


def inverted(state):
    """The same by going up the distribution function, all latents together until the last has arrived."""
    mean = (torch.nn.functional.softplus(state.lam) + job.RATE_MIN)[:, None]
    u = torch.rand(mean.shape[0], job.DRAWS, mean.shape[2])
    z, p = torch.zeros_like(u), torch.exp(-mean)
    reached = p.clone()
    for count in range(1, 100):
        above = u > reached
        if not above.any():
            break
        z += above
        p *= mean / count
        reached += p
    return z


DRAWS = {"poisson": drawn, "inversion": inverted}


def logs_apart(w, inverse):
    """sum_s ln(1 + W / R) of every word and latent, a logarithm for each draw."""
    return torch.log1p(w[:, None] * inverse[..., None]).sum(1)


def logs_together(w, inverse):
    """The same with one logarithm for four draws: a product of four is a number as long as no factor is beyond 1e9."""
    total = None
    for first in range(0, job.DRAWS, 4):
        product = torch.addcmul(ONE, w, inverse[:, first, :, None])
        for s in range(first + 1, first + 4):
            # product (1 + W / R), in place.
            product.addcmul_(product, w * inverse[:, s, :, None])
        total = product.log_() if total is None else total.add_(product.log_())
    return total


ONE = torch.ones(1)


def sparse(documents, background, groups, logs=logs_together):
    """The rows of W of the words that occur, padded to the longest document of each group."""
    padded = [tensors(group) for group in documents.padded(groups)]
    padded = [(places.long(), terms.long(), counts) for places, terms, counts in padded]
    b = torch.as_tensor(background, dtype=torch.float32)
    places = torch.argsort(torch.cat([places for places, _, _ in padded]))
    terms_all = torch.cat([terms.reshape(-1) for _, terms, _ in padded])
    background_of = [b[terms][:, None] for _, terms, _ in padded]

    def step(state, z, at):
        log_rates, signal, rows = [], [], []
        for (own, terms, x), b in zip(padded, background_of):
            w, z_own = state.seen[terms], z[own]
            rates = torch.baddbmm(b, z_own, w.transpose(1, 2))
            inverse = 1 / rates
            log_rates.append(torch.einsum("np,nsp->n", x, torch.log(rates)) / job.DRAWS)
            signal.append(torch.einsum("np,npk->nk", x, logs(w, inverse)) / job.DRAWS)
            rows.append(torch.bmm((x[:, None] * inverse).transpose(1, 2), z_own).reshape(-1, job.LATENTS))
        explained = torch.zeros_like(state.seen).index_add_(0, terms_all, torch.cat(rows))
        return finish(state, at, torch.cat(log_rates)[places], torch.cat(signal)[places], explained)

    return step


def forms(documents, background):
    made = {"sparse, 1 group": sparse(documents, background, 1, logs_apart)}
    made |= {f"sparse, {groups} groups": sparse(documents, background, groups) for groups in (32, 64, 128)}
    made["sparse, 8 groups, compiled"] = torch.compile(sparse(documents, background, 8), dynamic=False)
    return made
