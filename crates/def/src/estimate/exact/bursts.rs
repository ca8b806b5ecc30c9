//! Words that come in bursts, against enumeration.

use super::{case, check_case};
use crate::burst::Tokens;
use crate::local::Method;
use crate::shape::Family;
use crate::weights::WeightPosterior;

/// Catches a burst that changes the rates and not the differences, or the other way round.
#[test]
fn words_in_bursts_have_the_exact_gradient() {
    use Family::{Bernoulli, Gamma, Poisson};
    for layers in [&[(Poisson, 2), (Poisson, 2)][..], &[(Bernoulli, 3)], &[(Gamma, 2)]] {
        for method in [Method::MeanField, Method::LowRank(2)] {
            let mut case = case(layers, method, WeightPosterior::Gamma);
            let tokens = Tokens::of(std::iter::once((case.words.0.as_slice(), case.words.1.as_slice())));
            case.bursty = Some((tokens, vec![0.7, 0.2, 0.4, 1.3]));
            check_case(case, method, 12);
        }
    }
}
