"""The models in nutpie, which samples a PyMC model without discrete latents by NUTS."""

import nutpie
import pymc as pm
import with_pymc


def sample(name, data, seed):
    """Draws by name, each of shape (chains, draws, extents...): four chains, as PyMC runs."""
    with pm.Model() as model:
        getattr(with_pymc, name)(data)
    compiled = nutpie.compile_pymc_model(model)
    trace = nutpie.sample(compiled, draws=1000, tune=1000, chains=4, seed=seed, progress_bar=False)
    return {key: values.values for key, values in trace.posterior.items()}
