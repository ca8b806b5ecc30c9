//! Moves that exchange components: element j of some arrays with element k.
//!
//! The components of a mixture, the chains of a factorial model and the states of a hidden Markov model have the same likelihood whatever
//! they are called, so that a posterior has a mode for every order of them, or nearly the same one. Other moves hardly ever go from one
//! to another. Latents `mu[1:K]`, `tau[1:K]`, `P[1:K,1:K]`, … with as many elements may be the parameters of components; which of them
//! is not known. A move exchanges two elements in all arrays of a length, or in all but one: the weights, say, which then decide
//! whether it is accepted. It is its own inverse and preserves volume, so the ratio of the densities is the probability with which it is
//! accepted (Metropolis).

use super::hmc::Phase;
use super::whitened::WhitenedModel;
use crate::diagnostics::Exchangeable;
use crate::diagnostics::convergence::moments;
use crate::error::Result;
use crate::model::{Gradient, Latents, Model};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rand::RngExt;
use std::collections::BTreeMap;

/// The most elements of an array whose elements may be components.
const ELEMENTS_MAX: usize = 32;
/// The points at which a symmetry is looked for, first a few, and what counts as the same log density, relative to its size.
const POINTS: [usize; 2] = [4, 32];
const SAME: f64 = 1e-8;
/// Elements within so many standard deviations are close; two independent normal ones are in 14 % of the draws.
const CLOSE: f64 = 0.25;
const CLOSE_MAX: f64 = 0.07;
/// The most arrays of a length of which every two are examined.
const PAIRED_MAX: usize = 12;

/// The columns of a whole array by their index.
type Array = BTreeMap<Vec<usize>, usize>;

/// Arrays whose elements are exchanged together: for each pair of elements, the columns that change places.
#[derive(Debug, PartialEq)]
struct Group(Vec<Vec<[usize; 2]>>);

impl Group {
    fn new(arrays: &[&Array], len: usize) -> Self {
        let pairs = (1..=len).flat_map(|j| (j + 1..=len).map(move |k| (j, k)));
        Self(pairs.map(|pair| arrays.iter().flat_map(|array| swaps(array, len, pair)).collect()).collect())
    }

    /// Whether the two elements of a pair are seldom close to each other: less than half as often as independent normals.
    fn are_apart(&self, latents: &Latents, z: &Batch) -> bool {
        let is_apart = |[a, b]: [usize; 2]| {
            let (x, y) = (z.column(a), z.column(b));
            let limit = CLOSE * moments(x).1.sqrt();
            let close = x.iter().zip(y).filter(|(x, y)| (*x - *y).abs() < limit).count();
            (close as f64) < CLOSE_MAX * x.len() as f64
        };
        self.0.iter().flatten().any(|pair| !latents.support(pair[0]).is_discrete() && is_apart(*pair))
    }

    /// Exchanges two elements, chosen at random, in draw s.
    fn exchange(&self, z: &mut Batch, s: usize, rng: &mut Stream) {
        for [a, b] in &self.0[rng.random_range(0..self.0.len())] {
            let (x, y) = (z.get(*a, s), z.get(*b, s));
            z.set(*a, s, y);
            z.set(*b, s, x);
        }
    }
}

/// The columns of an array that change places when j and k do, in all its dimensions of a length.
fn swaps(array: &Array, len: usize, (j, k): (usize, usize)) -> Vec<[usize; 2]> {
    let lens = lens(array);
    let swapped = |(index, of): (&usize, usize)| match *index {
        index if of != len => index,
        index if index == j => k,
        index if index == k => j,
        index => index,
    };
    let other = |index: &Vec<usize>| index.iter().zip(lens.iter().copied()).map(swapped).collect::<Vec<usize>>();
    let is_first = |(index, _): &(&Vec<usize>, &usize)| other(index) > **index;
    array.iter().filter(is_first).map(|(index, i)| [*i, array[&other(index)]]).collect()
}

/// The length of each dimension.
fn lens(array: &Array) -> Vec<usize> {
    array.last_key_value().map_or_else(Vec::new, |(last, _)| last.clone())
}

/// The arrays of which all elements from the first on are latents.
fn arrays(latents: &Latents) -> Vec<Array> {
    let mut arrays: BTreeMap<String, Array> = BTreeMap::new();
    for i in 0..latents.len() {
        let name = latents.name(i);
        let split = name.split_once('[').and_then(|(array, rest)| Some((array, rest.strip_suffix(']')?)));
        if let Some((array, index)) = split
            && let Some(index) = index.split(',').map(|one| one.trim().parse().ok()).collect::<Option<Vec<usize>>>()
        {
            arrays.entry(array.to_owned()).or_default().insert(index, i);
        }
    }
    let is_whole = |array: &Array| {
        let lens = lens(array);
        let is_inside = |index: &Vec<usize>| {
            index.len() == lens.len() && index.iter().zip(&lens).all(|(index, len)| (1..=*len).contains(index))
        };
        array.len() > 1 && array.len() == lens.iter().product::<usize>() && array.keys().all(is_inside)
    };
    arrays.into_values().filter(is_whole).collect()
}

/// Arrays that may be parameters of components, for every length.
#[derive(Debug)]
pub(super) struct Components(Vec<Vec<Group>>);

impl Components {
    /// All arrays of a length, and all but one. One alone has an order that its prior or the data give it.
    pub(super) fn of(latents: &Latents) -> Self {
        let of_len = |(len, arrays): (usize, Vec<Array>)| {
            let all: Vec<&Array> = arrays.iter().collect();
            let without = |left: usize| all.iter().enumerate().filter(move |(a, _)| *a != left).map(|(_, one)| *one);
            let groups = (0..=all.len()).map(|left| Group::new(&without(left).collect::<Vec<_>>(), len));
            (all.len() > 1).then(|| groups.collect())
        };
        Self(by_len(latents).into_iter().filter_map(of_len).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each draw proposes to exchange two elements, for every length of arrays; returns the share accepted. `log_p` has the log densities
    /// of the draws, in the model's coordinates.
    pub(super) fn exchange(
        &self,
        z: &mut Batch,
        log_p: &mut [f64],
        rng: &mut Stream,
        log_density: &dyn Fn(&Batch, &mut [f64]) -> Result<()>,
    ) -> Result<f64> {
        let (len, mut accepted) = (z.draws_len(), 0);
        for groups in &self.0 {
            let mut proposed = z.clone();
            (0..len).for_each(|s| groups[rng.random_range(0..groups.len())].exchange(&mut proposed, s, rng));
            let mut log_proposed = vec![0.0; len];
            log_density(&proposed, &mut log_proposed)?;
            for s in 0..len {
                let uniform: f64 = rng.random();
                if uniform.ln() < log_proposed[s] - log_p[s] {
                    (0..z.columns_len()).for_each(|i| z.set(i, s, proposed.get(i, s)));
                    log_p[s] = log_proposed[s];
                    accepted += 1;
                }
            }
        }
        Ok(f64::from(accepted) / (len * self.0.len().max(1)) as f64)
    }
}

/// The arrays with a dimension of a length, continuous ones among them.
fn by_len(latents: &Latents) -> Vec<(usize, Vec<Array>)> {
    let arrays = arrays(latents);
    let is_continuous = |array: &Array| array.values().any(|i| !latents.support(*i).is_discrete());
    let of_len = |len: usize| {
        let own: Vec<Array> = arrays.iter().filter(|array| lens(array).contains(&len)).cloned().collect();
        own.iter().any(is_continuous).then_some((len, own))
    };
    (2..=ELEMENTS_MAX).filter_map(of_len).collect()
}

/// Exchanges that leave the density of a model as it is.
#[derive(Debug, Default)]
pub(super) struct Symmetry(Vec<Group>);

impl Symmetry {
    /// Those that leave the density as it is at these draws, in whitened coordinates: of one array of a length, of two, of all but one, or
    /// of all. A move by them is accepted or refused as any other, so that nothing rests on what was not looked at.
    pub(super) fn of<M: Model + ?Sized>(whitened: &WhitenedModel<M>, u: &Batch, mut rng: Stream) -> Result<Self> {
        let mut found = Vec::new();
        for (len, arrays) in by_len(whitened.latents()) {
            let n = arrays.len();
            let mut chosen: Vec<Vec<usize>> = (0..n).map(|a| vec![a]).collect();
            if n <= PAIRED_MAX {
                chosen.extend((0..n).flat_map(|a| (a + 1..n).map(move |b| vec![a, b])));
            }
            chosen.extend((0..n).map(|left| (0..n).filter(|a| *a != left).collect()));
            chosen.push((0..n).collect());
            chosen.sort();
            chosen.dedup();
            for own in chosen.iter().filter(|own| !own.is_empty()) {
                let group = Group::new(&own.iter().map(|a| &arrays[*a]).collect::<Vec<_>>(), len);
                if has_symmetry(whitened, u, &group, &mut rng)? {
                    found.push(group);
                }
            }
        }
        Ok(Self(found))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each draw proposes to exchange two elements of every group. `state` holds the density and the gradient of the draws.
    pub(super) fn exchange<M: Model + ?Sized>(
        &self,
        whitened: &WhitenedModel<M>,
        gradient: &dyn Gradient,
        state: Phase,
    ) -> Result<()> {
        let Phase { u, log_p, d_u, streams } = state;
        let mut z = whitened.restored(u);
        for (s, rng) in streams.iter_mut().enumerate() {
            for group in &self.0 {
                // Half of the draws stay, so that a pair of elements does not change places with every move.
                if rng.random() {
                    group.exchange(&mut z, s, rng);
                }
            }
        }
        let proposed = whitened.whiten(&z);
        let (mut log_proposed, mut d_proposed) = (vec![0.0; log_p.len()], Batch::zeros(u.columns_len(), log_p.len()));
        gradient.log_joint_gradient(&proposed, &mut log_proposed, &mut d_proposed)?;
        for (s, rng) in streams.iter_mut().enumerate() {
            let uniform: f64 = rng.random();
            if uniform.ln() < log_proposed[s] - log_p[s] {
                for i in 0..u.columns_len() {
                    u.set(i, s, proposed.get(i, s));
                    d_u.set(i, s, d_proposed.get(i, s));
                }
                log_p[s] = log_proposed[s];
            }
        }
        Ok(())
    }
}

/// The components whose order means nothing, if they are apart in the draws: others would hide that the order does.
pub(in crate::infer) fn exchangeable<M: Model + ?Sized>(
    whitened: &WhitenedModel<M>,
    u: &Batch,
    seed: u64,
) -> Result<Vec<Exchangeable>> {
    let mut groups = Symmetry::of(whitened, u, stream(seed, Purpose::Symmetry.step(), 2, 0))?.0;
    groups.sort_by_key(|group| group.0[0].len());
    let (latents, mut found) = (whitened.latents(), Vec::<Exchangeable>::new());
    let z = whitened.restored(u);
    for group in groups.into_iter().filter(|group| group.are_apart(latents, &z)) {
        let name = |[i, _]: &[usize; 2]| latents.name(*i).split('[').next().unwrap_or_default().to_owned();
        let mut arrays: Vec<String> = group.0[0].iter().map(name).collect();
        arrays.sort();
        arrays.dedup();
        // All that a smaller group has, and arrays that are exchangeable on their own.
        if !found.iter().any(|other| other.arrays.iter().all(|array| arrays.contains(array))) {
            let elements = (1..).find(|k| k * (k - 1) / 2 >= group.0.len()).unwrap_or(0);
            found.push(Exchangeable::new(arrays, elements));
        }
    }
    Ok(found)
}

/// Whether exchanges change draws but not their density.
fn has_symmetry<M: Model + ?Sized>(
    whitened: &WhitenedModel<M>,
    u: &Batch,
    group: &Group,
    rng: &mut Stream,
) -> Result<bool> {
    for points in POINTS {
        let points = points.min(u.draws_len());
        let mut z = Batch::zeros(u.columns_len(), 2 * points);
        let at = |s: usize| s * u.draws_len() / points;
        let mut of_u = Batch::zeros(u.columns_len(), points);
        for i in 0..u.columns_len() {
            (0..points).for_each(|s| of_u.set(i, s, u.get(i, at(s))));
        }
        let restored = whitened.restored(&of_u);
        for i in 0..u.columns_len() {
            (0..2 * points).for_each(|s| z.set(i, s, restored.get(i, s % points)));
        }
        (points..2 * points).for_each(|s| group.exchange(&mut z, s, rng));
        let mut log_p = vec![0.0; 2 * points];
        whitened.model().log_joint(&z, &mut log_p)?;
        let is_changed = (0..z.columns_len()).any(|i| (0..points).any(|s| z.get(i, s) != z.get(i, points + s)));
        let is_same = |s: usize| (log_p[s] - log_p[points + s]).abs() <= SAME * (1.0 + log_p[s].abs());
        let is_possible = |s: &usize| log_p[*s].is_finite() || log_p[points + *s].is_finite();
        let possible: Vec<usize> = (0..points).filter(is_possible).collect();
        if possible.len() < POINTS[0].min(points) || !is_changed || !possible.into_iter().all(is_same) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::whitening::Whitening;
    use super::*;
    use crate::model::Support;
    use rand_distr::{Distribution, StandardNormal};

    fn components(names: &[&str]) -> Components {
        Components::of(
            &Latents::scalars(names.iter().map(|name| ((*name).to_owned(), Support::Real))).expect("latents"),
        )
    }

    #[test]
    fn arrays_of_a_length_are_components() {
        let found =
            components(&["w[1]", "w[2]", "w[3]", "sd", "mu[1]", "mu[2]", "mu[3]", "x[2]", "x[3]", "y[1]", "y[2]"]);
        let group = |columns: &[usize]| {
            Group([(0, 1), (0, 2), (1, 2)].map(|(j, k)| columns.iter().map(|i| [i + j, i + k]).collect()).to_vec())
        };
        assert_eq!(found.0, [[group(&[0]), group(&[4]), group(&[4, 0])]]);
        assert!(components(&["theta[1]", "theta[2]", "theta[3]", "mu"]).is_empty());
    }

    #[test]
    fn all_dimensions_of_a_length_are_exchanged() {
        // P[1:2,1:2] row by row, then mu[1:3,1:2].
        let names =
            ["P[1,1]", "P[1,2]", "P[2,1]", "P[2,2]", "mu[1,1]", "mu[1,2]", "mu[2,1]", "mu[2,2]", "mu[3,1]", "mu[3,2]"];
        let found = components(&names);
        let [groups] = &found.0[..] else { panic!("{found:?}") };
        assert_eq!(groups[2], Group(vec![vec![[0, 3], [1, 2], [4, 5], [6, 7], [8, 9]]]));
    }

    /// Catches moves that are accepted too often or too seldom: independent normals of different means keep these.
    #[test]
    fn exchanges_leave_the_density_invariant() {
        let names = ["a[1]", "a[2]", "a[3]", "b[1]", "b[2]", "b[3]"];
        let means = [0.0, 1.0, -0.5, 0.4, 0.0, 0.8];
        let found = components(&names);
        let log_density = |z: &Batch, out: &mut [f64]| {
            let one = |s: usize| (0..6).map(|i| -0.5 * (z.get(i, s) - means[i]).powi(2)).sum::<f64>();
            out.iter_mut().enumerate().for_each(|(s, out)| *out = one(s));
            Ok(())
        };
        let len = 40_000;
        let (mut z, mut log_p, mut rng) = (Batch::zeros(6, len), vec![0.0; len], stream(3, 0, 0, 0));
        for s in 0..len {
            (0..6).for_each(|i| z.set(i, s, means[i] + Distribution::<f64>::sample(&StandardNormal, &mut rng)));
        }
        log_density(&z, &mut log_p).expect("no fault");
        let start = z.clone();
        for _ in 0..10 {
            let share = found.exchange(&mut z, &mut log_p, &mut rng, &log_density).expect("no fault");
            assert!(share > 0.3 && share < 0.9, "{share}");
        }
        let moved = (0..len).filter(|s| z.get(0, *s) != start.get(0, *s)).count();
        assert!(moved > len / 3, "{moved}");
        for i in 0..6 {
            let column = z.column(i);
            let mean = column.iter().sum::<f64>() / len as f64;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / len as f64;
            assert!((mean - means[i]).abs() < 5.0 / (len as f64).sqrt(), "{i}: {mean}");
            assert!((variance - 1.0).abs() < 5.0 * (2.0 / len as f64).sqrt(), "{i}: {variance}");
        }
    }

    /// The sum over exchangeable components of a mixture of normals, and a latent that is no component.
    struct TwoOrders {
        latents: Latents,
        /// How much the first component differs from the second.
        difference: f64,
    }

    impl TwoOrders {
        fn new(difference: f64) -> Self {
            let names = ["mu[1]", "mu[2]", "x[1]", "x[2]", "sd"].map(|name| (name.to_owned(), Support::Real));
            Self { latents: Latents::scalars(names).expect("latents"), difference }
        }

        fn means(&self) -> [[f64; 4]; 2] {
            [[2.0, -1.0 + self.difference, 1.0, 0.0], [-1.0, 2.0, 0.0, 1.0 - self.difference]]
        }

        /// log of the sum of two normals, one with the means of the components in each order, and the share of the first.
        fn density(&self, z: &Batch, s: usize) -> (f64, f64) {
            let [a, b] = self
                .means()
                .map(|mean| mean.iter().enumerate().map(|(i, mean)| -2.0 * (z.get(i, s) - mean).powi(2)).sum::<f64>());
            let most = a.max(b);
            let log = most + ((a - most).exp() + (b - most).exp()).ln();
            (log - 0.5 * z.get(4, s).powi(2), (a - log).exp())
        }
    }

    impl Model for TwoOrders {
        fn latents(&self) -> &Latents {
            &self.latents
        }

        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            out.iter_mut().enumerate().for_each(|(s, out)| *out = self.density(z, s).0);
            Ok(())
        }

        fn gradient(&self) -> Option<&dyn Gradient> {
            Some(self)
        }
    }

    impl Gradient for TwoOrders {
        fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
            self.log_joint(z, out)?;
            let means = self.means();
            for s in 0..out.len() {
                let (_, share) = self.density(z, s);
                for i in 0..4 {
                    let of = |k: usize| -4.0 * (z.get(i, s) - means[k][i]);
                    d_z.set(i, s, share * of(0) + (1.0 - share) * of(1));
                }
                d_z.set(4, s, -z.get(4, s));
            }
            Ok(())
        }
    }

    /// Draws of the normal in the first order.
    fn of_first_order(model: &TwoOrders, len: usize) -> Batch {
        let (mut z, mut rng) = (Batch::zeros(5, len), stream(4, 0, 0, 0));
        for s in 0..len {
            for i in 0..5 {
                let x: f64 = StandardNormal.sample(&mut rng);
                z.set(i, s, if i < 4 { model.means()[0][i] + 0.5 * x } else { x });
            }
        }
        z
    }

    fn whitened(model: &TwoOrders) -> WhitenedModel<'_, TwoOrders> {
        WhitenedModel::new(model, vec![0.3; 5], Whitening::Diagonal(vec![1.0, 2.0, 0.5, 0.8, 1.1]))
    }

    #[test]
    fn exchangeable_components_are_found() {
        for (difference, groups) in [(0.0, 1), (0.1, 0)] {
            let model = TwoOrders::new(difference);
            let whitened = whitened(&model);
            let u = whitened.whiten(&of_first_order(&model, 100));
            let found = Symmetry::of(&whitened, &u, stream(1, 0, 0, 0)).expect("no fault");
            assert_eq!(found.0.len(), groups);
            let both = Group(vec![vec![[0, 1], [2, 3]]]);
            assert!(found.0.iter().all(|group| *group == both), "{found:?}");
            let reported = exchangeable(&whitened, &u, 1).expect("no fault");
            let expected = Exchangeable::new(vec!["mu".to_owned(), "x".to_owned()], 2);
            assert_eq!(reported, vec![expected; groups]);
        }
    }

    /// Catches densities and gradients that belong to other draws, and exchanges that are accepted regardless.
    #[test]
    fn exchanges_reach_the_other_order_and_are_judged() {
        for difference in [0.0, 0.4] {
            let model = TwoOrders::new(difference);
            let whitened = whitened(&model);
            let len = 20_000;
            let mut u = whitened.whiten(&of_first_order(&model, len));
            let mut streams: Vec<Stream> = (0..len).map(|s| stream(5, 0, 0, s as u64)).collect();
            let (mut log_p, mut d_u) = (vec![0.0; len], Batch::zeros(5, len));
            whitened.log_joint_gradient(&u, &mut log_p, &mut d_u).expect("no fault");
            let symmetry = Symmetry(vec![Group(vec![vec![[0, 1], [2, 3]]])]);
            for _ in 0..30 {
                let state = Phase { u: &mut u, log_p: &mut log_p, d_u: &mut d_u, streams: &mut streams };
                symmetry.exchange(&whitened, &whitened, state).expect("no fault");
            }
            let (mut log_again, mut d_again) = (vec![0.0; len], Batch::zeros(5, len));
            whitened.log_joint_gradient(&u, &mut log_again, &mut d_again).expect("no fault");
            assert_eq!((log_again, d_again), (log_p, d_u));
            // An exchange is a walk between a draw and its mirror image; it ends at either in proportion to their densities.
            let (z, start) = (whitened.restored(&u), of_first_order(&model, len));
            let moved = (0..len).filter(|s| z.get(0, *s) < 0.5).count() as f64 / len as f64;
            let mirrored = |s: usize| {
                let mut mirror = start.clone();
                [[0, 1], [2, 3]].iter().for_each(|[a, b]| {
                    mirror.set(*a, s, start.get(*b, s));
                    mirror.set(*b, s, start.get(*a, s));
                });
                let is_moved = |z: &Batch| f64::from(z.get(0, s) < 0.5);
                let [own, other] = [&start, &mirror].map(|z| model.density(z, s).0.exp());
                (is_moved(&start) * own + is_moved(&mirror) * other) / (own + other)
            };
            let expected = (0..1000).map(|s| mirrored(s * len / 1000)).sum::<f64>() / 1000.0;
            assert!((moved - expected).abs() < 0.05, "{difference}: {moved} {expected}");
            assert!(expected > 0.1 && (difference > 0.0 || (expected - 0.5).abs() < 0.02), "{expected}");
        }
    }
}
