//! Draws of an approximation with their importance weights, and the draws from which the moves start.
use super::missed_modes::missed_mode;
use super::mixture_importance::{Adapted, at_modes, at_places, mixture_importance, suits};
use super::nested_laplace::{Nested, nested_laplace};
use super::overdispersed::Delivered;
use super::pathfinder::Mode;
use super::resample::{OVERSAMPLED, draw, heaviest, resampled, taken, thinned};
use super::superchains::SuperchainRun;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::diagnostics::psis::{Psis, VARIANCE_KHAT_MAX, psis as smooth};
use crate::error::Result;
use crate::fit::Fitted;
use crate::infer::method::Method;
use crate::infer::settings::{Correction, InferSettings};
use crate::model::Model;
use crate::objective::{BoundSettings, Bounds, Estimate};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::special::log_sum_exp;
use rayon::prelude::*;

/// How many draws with large importance weights superchains may start from.
const HEAVY: usize = 8;
/// How many standard errors an evidence must be above another to be larger.
const BEYOND: f64 = 2.0;

/// What draws are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::infer) enum Source {
    /// The fitted approximation.
    Fitted,
    /// A nested Laplace approximation.
    Nested,
    /// A mixture of this many components that was learnt from weighted draws.
    Mixture(usize),
}

impl Source {
    /// The components of a mixture that was learnt from weighted draws.
    pub(in crate::infer) fn components(self) -> Option<usize> {
        if let Self::Mixture(components) = self { Some(components) } else { None }
    }
}

/// Draws with importance weights.
pub(in crate::infer) struct Weighed {
    /// The draws that are kept, in whitened coordinates.
    pub(in crate::infer) u: Batch,
    /// Draws with large weights.
    pub(in crate::infer) heavy: Batch,
    pub(in crate::infer) psis: Psis,
    /// The log weights of draws of q; empty if there are none.
    pub(in crate::infer) of_q: Vec<f64>,
    pub(in crate::infer) source: Source,
    /// The bounds of q, and the log evidence of the draws.
    pub(in crate::infer) bounds: Bounds,
}

impl Weighed {
    /// The draws, as superchains are compared with them.
    pub(in crate::infer) fn delivered<'a>(&'a self, ends: &'a Batch) -> Delivered<'a> {
        Delivered { u: &self.u, ends, heavy: &self.heavy, moves: 0, log_evidence: self.bounds.log_evidence.value }
    }
}

/// Draws from a fitted approximation, and resamples them as the settings say; or from a better one that may replace it and
/// knows these modes.
pub(in crate::infer) fn weigh(
    whitened: &WhitenedModel<dyn Model + '_>,
    q: &Variational,
    fitted: &Fitted,
    (known, may_replace): (&[Mode], bool),
    settings: &InferSettings,
) -> Result<Weighed> {
    let bounds = fitted.bounds(whitened, q, &BoundSettings { seed: settings.seed, ..BoundSettings::default() })?;
    let len = settings.draws * OVERSAMPLED;
    if settings.method == Method::Auto
        && let Some(nested) = nested_laplace(whitened.model(), whitened.place(), len, settings.seed)?
    {
        let heavy = whitened.whiten(&heaviest(&nested.z, &nested.log_weights, HEAVY));
        let kept = KeptDraws::of(&nested, settings);
        let bounds = Bounds { log_evidence: kept.log_evidence, ..bounds };
        let (u, source) = (whitened.whiten(&kept.z), Source::Nested);
        return Ok(Weighed { u, heavy, psis: kept.psis(), of_q: Vec::new(), source, bounds });
    }
    let (drawn, mut log_weights) = draw(whitened, q, fitted, len, settings.seed)?;
    let heavy = heaviest(&drawn, &log_weights, HEAVY);
    let of_q = log_weights.clone();
    let psis = smooth(&mut log_weights);
    // Moves do not carry draws between the components of a mixture.
    let is_uneven = !psis.is_good() || psis.khat > VARIANCE_KHAT_MAX && q.prior().components_len() > 1;
    // Weights tell nothing of a mode without draws.
    let misses_mode = || {
        let z = whitened.restored(&resampled(&drawn, &log_weights, settings.draws));
        missed_mode(&z, bounds.log_evidence.value, known).is_some()
    };
    if may_replace
        && suits(whitened)
        && (is_uneven || misses_mode())
        && let Some(adapted) =
            mixture_importance(whitened, (&drawn, &of_q), at_modes(whitened, known), len, settings.seed)?
        && let Some(found) = of_mixture(&adapted, &of_q, &bounds, settings)
        && found.psis.is_good()
        && (found.psis.khat < psis.khat || !is_uneven)
    {
        return Ok(found);
    }
    // Of very many latents hardly any draw has a weight that counts, however good the approximation is.
    let is_hopeless = matches!(whitened.place().1, Whitening::Sparse(_)) && !psis.is_good();
    let u = match settings.correct {
        Correction::None => thinned(&drawn, settings.draws),
        Correction::ResampleMove if is_hopeless => thinned(&drawn, settings.draws),
        Correction::Resample | Correction::ResampleMove => resampled(&drawn, &log_weights, settings.draws),
    };
    Ok(Weighed { u, heavy, psis, of_q, source: Source::Fitted, bounds })
}

/// Draws of a mixture that is learnt again, from the draws of the first and from where superchains are. `None` if these found nothing that
/// the first has left out, and the evidence is no larger.
pub(in crate::infer) fn learnt_again(
    whitened: &WhitenedModel<dyn Model + '_>,
    weighed: &Weighed,
    run: &SuperchainRun,
    settings: &InferSettings,
) -> Result<Option<Weighed>> {
    let Weighed { u, .. } = weighed;
    let (len, equal) = (settings.draws * OVERSAMPLED, vec![0.0; u.draws_len()]);
    let further = at_places(&run.places());
    let Some(adapted) = mixture_importance(whitened, (u, &equal), further, len, settings.seed.wrapping_add(1))? else {
        return Ok(None);
    };
    let Some(again) = of_mixture(&adapted, &weighed.of_q, &weighed.bounds, settings) else { return Ok(None) };
    let (before, after) = (weighed.bounds.log_evidence, again.bounds.log_evidence);
    let error = before.standard_error.hypot(after.standard_error);
    let has_more = run.found.missed.is_some() || after.value > before.value + BEYOND * error;
    Ok(has_more.then_some(again))
}

/// Draws of a learnt mixture; `None` if it may leave tails out.
fn of_mixture(adapted: &Adapted, of_q: &[f64], bounds: &Bounds, settings: &InferSettings) -> Option<Weighed> {
    let Adapted { u, log_weights, components } = adapted;
    let mut smoothed = log_weights.clone();
    let psis = smooth(&mut smoothed);
    let kept = resampled(u, &smoothed, settings.draws);
    let log_evidence = log_mean(log_weights, 1, log_weights.len());
    has_known_variances(&kept).then(|| Weighed {
        u: kept,
        heavy: heaviest(u, log_weights, HEAVY),
        psis,
        of_q: of_q.to_vec(),
        source: Source::Mixture(*components),
        bounds: Bounds { log_evidence, ..bounds.clone() },
    })
}

/// Whether the squares of each latent have a variance, by their k̂: of tails that are longer than its own a mixture shows the near part,
/// and its weights do not tell what it leaves out.
fn has_known_variances(u: &Batch) -> bool {
    (0..u.columns_len()).into_par_iter().all(|i| {
        let column = u.column(i);
        let mean = moments(column).0;
        let mut log_squares: Vec<f64> = column.iter().map(|x| 2.0 * (x - mean).abs().ln()).collect();
        smooth(&mut log_squares).khat <= VARIANCE_KHAT_MAX
    })
}

/// The draws of a nested approximation that are kept.
pub(in crate::infer) struct KeptDraws {
    pub(in crate::infer) z: Batch,
    pub(in crate::infer) log_evidence: Estimate,
    /// The importance weights of all latents, and those of θ: draws with the same θ are not independent.
    of_draws: Psis,
    pub(in crate::infer) of_theta: Psis,
}

impl KeptDraws {
    /// By the weights of θ alone if those of all latents are of no use.
    pub(in crate::infer) fn of(nested: &Nested, settings: &InferSettings) -> Self {
        let log_evidence = log_mean(&nested.log_weights, nested.each, nested.proposed);
        let mut log_weights = nested.log_weights.clone();
        let of_draws = smooth(&mut log_weights);
        let of_theta = smooth(&mut group_means(&nested.log_weights, nested.each));
        let is_good = of_draws.is_good() && of_theta.is_good();
        let z = match settings.correct {
            Correction::Resample | Correction::ResampleMove if is_good => {
                resampled(&nested.z, &log_weights, settings.draws)
            }
            _ => taken(&nested.z, &nested.by_marginal(settings.draws)),
        };
        Self { z, log_evidence, of_draws, of_theta }
    }

    /// The worse of both.
    fn psis(&self) -> Psis {
        let [a, b] = [&self.of_draws, &self.of_theta];
        Psis { khat: a.khat.max(b.khat), ess: a.ess.min(b.ess), limit: b.limit }
    }
}

/// The names of the parts of the approximation that the draws are from.
pub(in crate::infer) fn part_names(q: &Variational, whitening: &Whitening, source: Source) -> [String; 3] {
    let [likelihood, prior, recursive] = q.part_names();
    let prior = match (whitening, source) {
        (_, Source::Mixture(components)) => format!("mixture of {components} Student t, by importance sampling"),
        (Whitening::Sparse(_), Source::Nested) => "nested Laplace".to_owned(),
        (Whitening::Sparse(_), _) => "gaussian (sparse precision)".to_owned(),
        _ => prior,
    };
    [likelihood, prior, recursive]
}

/// The logs of the means of weights in groups of this size.
fn group_means(log_weights: &[f64], each: usize) -> Vec<f64> {
    log_weights.chunks(each).map(|group| log_sum_exp(group) - (group.len() as f64).ln()).collect()
}

/// The log of the mean of weights, with a standard error from the means of groups of this size; those that are missing among the number
/// proposed are zero.
pub(super) fn log_mean(log_weights: &[f64], each: usize, proposed: usize) -> Estimate {
    let value = log_sum_exp(log_weights) - (proposed as f64).ln();
    let mut means: Vec<f64> = group_means(log_weights, each).into_iter().map(|w| (w - value).exp()).collect();
    means.resize(proposed / each, 0.0);
    let standard_error = (moments(&means).1 / means.len() as f64).sqrt();
    Estimate { value, standard_error }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StudentT};

    /// Catches tails that are taken for known: draws of Student t distributions, of which the squares of the first have a variance.
    #[test]
    fn squares_of_long_tails_have_no_variance() {
        for seed in 1..4 {
            let draws = |df: f64| {
                let (t, mut rng) = (StudentT::new(df).unwrap(), stream(seed, 0, 0, 0));
                Batch::from_columns((0..4000).map(|_| t.sample(&mut rng)).collect(), 4000)
            };
            assert!(has_known_variances(&draws(30.0)));
            assert!(!has_known_variances(&draws(2.0)));
        }
    }

    #[test]
    fn the_error_of_a_mean_is_that_of_its_groups() {
        // Groups whose members are equal are as good as single weights.
        let single: Vec<f64> = (0..100).map(|k| f64::from(k % 7).ln_1p()).collect();
        let repeated: Vec<f64> = single.iter().flat_map(|w| [*w; 4]).collect();
        let (one, other) = (log_mean(&single, 1, 100), log_mean(&repeated, 4, 400));
        assert!((one.value - other.value).abs() < 1e-12);
        assert!((one.standard_error - other.standard_error).abs() < 1e-12);
        assert!((one.value - 3.96_f64.ln()).abs() < 0.01, "{one:?}");
    }
}
