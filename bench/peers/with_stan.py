"""The models in Stan, which has no discrete parameters: they are summed out by hand in stan/."""

import pathlib

import numpy as np
import stan

HERE = pathlib.Path(__file__).resolve().parent


def sample(name, data, seed, **options):
    """Draws by name, each of shape (chains, draws, extents...): NUTS, four chains, the program's defaults but for the options."""
    posterior = stan.build((HERE / "stan" / f"{name}.stan").read_text(), data=data, random_seed=seed)
    fit = posterior.sample(num_chains=4, **options)
    # In pystan's arrays a chain's draw is beside the other chains'; underscores stand for BUGS's dots.
    return {
        key.replace("_", "."): np.moveaxis(fit[key].reshape(*extents, -1, 4), (-1, -2), (0, 1))
        for key, extents in zip(fit.param_names, fit.dims)
    }
