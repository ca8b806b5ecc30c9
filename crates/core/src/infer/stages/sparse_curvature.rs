//! The curvature of a log density whose terms each contain few latents: a sparse matrix, from few differences of the gradient.
//!
//! Latents that share no row are moved together, so that one pair of gradients yields the columns of them all (Curtis, Powell and Reid,
//! 1974). Latents that share a row with very many, such as the scale of all effects, are moved alone: their columns are rows as well.

use crate::error::Result;
use crate::model::{Gradient, Model};
use hyperprior_math::batch::Batch;
use hyperprior_math::simd::LANES;
use hyperprior_math::sparse::{SparseCholesky, SparsePattern};
use rayon::prelude::*;

/// With more continuous latents than this, a full matrix would be slow.
pub(super) const FULL_MAX: usize = 300;
/// With more than this, of which at most so many describe the others, a nested approximation is better than a full Gaussian.
const DESCRIBED_MIN: usize = 48;
const DESCRIBING_MAX: usize = 8;
/// Gradients that are evaluated together.
const TOGETHER: usize = 16;
/// The numbers of neighbours above which a latent may be moved alone.
const MANY: [usize; 6] = [usize::MAX, 256, 64, 32, 16, 8];
/// The most comparisons when groups are formed.
const COMPARISONS_MAX: usize = 50_000_000;
/// A hub is coupled with more latents than this, and with more than one in so many.
const HUB_MIN: usize = 32;
const HUB_SHARE: usize = 20;
/// With a factor that has more than this share of all entries, the matrix is not sparse.
const DENSE: f64 = 0.3;

/// An entry that a probe yields: its place in the pattern, the row of the difference, and the latent that was moved.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: usize,
    row: usize,
    moved: usize,
}

/// How the curvature of a model is found. Latents are numbered among the continuous ones.
#[derive(Debug)]
pub(in crate::infer) struct SparseCurvature {
    pattern: SparsePattern,
    /// The latents that are moved together, and the entries that follow.
    probes: Vec<(Vec<usize>, Vec<Entry>)>,
}

impl SparseCurvature {
    /// For a model that knows which latents are coupled; `None` if it does not, or if its curvature is not sparse.
    pub(in crate::infer) fn new(model: &dyn Model, continuous: &[usize]) -> Option<Self> {
        let n = continuous.len();
        let pattern = SparsePattern::new(n, &pairs(model.coupled()?, model.latents().len(), continuous))?;
        if pattern.factor_len() as f64 > DENSE * (n * n) as f64 {
            return None;
        }
        Self::with(pattern).filter(|sparse| 2 * sparse.probes.len() <= n)
    }

    /// For any model, whether its curvature is sparse or not: for few latents.
    pub(in crate::infer) fn of_few(model: &dyn Model, continuous: &[usize]) -> Option<Self> {
        let len = model.latents().len();
        let all = || (0..len as u32).flat_map(|i| (0..i).map(move |j| [j, i])).collect::<Vec<_>>();
        let pairs =
            model.coupled().map_or_else(|| pairs(&all(), len, continuous), |coupled| pairs(coupled, len, continuous));
        Self::with(SparsePattern::new(continuous.len(), &pairs)?)
    }

    fn with(pattern: SparsePattern) -> Option<Self> {
        let n = pattern.len();
        let mut near: Vec<Vec<usize>> = vec![Vec::new(); n];
        for j in 0..n {
            for at in pattern.column(j) {
                let i = pattern.rows()[at];
                near[j].push(i);
                if i != j {
                    near[i].push(j);
                }
            }
        }
        let group = MANY.iter().filter_map(|many| groups(&near, *many)).min_by_key(|(_, len)| *len)?.0;
        let len = group.iter().max().map_or(0, |last| last + 1);
        let mut probes = vec![(Vec::new(), Vec::new()); len];
        group.iter().enumerate().for_each(|(i, group)| probes[*group].0.push(i));
        let is_alone = |i: usize| probes[group[i]].0.len() == 1;
        let mut entries = vec![Vec::new(); len];
        for j in 0..n {
            for at in pattern.column(j) {
                let i = pattern.rows()[at];
                // A latent that was moved alone yields its whole row; the others only what no other member of their group touches.
                let (row, moved) = if is_alone(i) { (j, i) } else { (i, j) };
                entries[group[moved]].push(Entry { at, row, moved });
            }
        }
        probes.iter_mut().zip(entries).for_each(|(probe, entries)| probe.1 = entries);
        Some(Self { pattern, probes })
    }

    /// The same if there are so many latents that a full matrix would be slow, or if there are many that a few others describe.
    pub(in crate::infer) fn of_many(model: &dyn Model, continuous: &[usize]) -> Option<Self> {
        match continuous.len() {
            0..=DESCRIBED_MIN => None,
            len => Self::new(model, continuous)
                .filter(|sparse| len > FULL_MAX || (1..=DESCRIBING_MAX).contains(&sparse.hubs().len())),
        }
    }

    /// The mean of −∂²log p over these points, without those where it is not finite; `None` if it is nowhere finite.
    pub(in crate::infer) fn mean(
        &self,
        model: &dyn Model,
        continuous: &[usize],
        points: &Batch,
    ) -> Result<Option<Vec<f64>>> {
        let of_points = self.at(model, continuous, points)?;
        let finite: Vec<&Vec<f64>> = of_points.iter().flatten().collect();
        let mean = |at: usize| finite.iter().map(|x| x[at]).sum::<f64>() / finite.len() as f64;
        Ok((!finite.is_empty()).then(|| (0..self.pattern.entries_len()).map(mean).collect()))
    }

    /// −∂²log p at each of these points; `None` where it is not finite.
    pub(in crate::infer) fn at(
        &self,
        model: &dyn Model,
        continuous: &[usize],
        points: &Batch,
    ) -> Result<Vec<Option<Vec<f64>>>> {
        let mut of_points = vec![vec![0.0; self.pattern.entries_len()]; points.draws_len()];
        let mut is_finite = vec![true; points.draws_len()];
        let all: Vec<(usize, usize)> =
            (0..points.draws_len()).flat_map(|s| (0..self.probes.len()).map(move |p| (s, p))).collect();
        let found: Vec<Vec<Vec<f64>>> = all
            .par_chunks(TOGETHER / 2)
            .map(|jobs| self.differences(model, continuous, points, jobs))
            .collect::<Result<_>>()?;
        for ((s, p), values) in all.into_iter().zip(found.into_iter().flatten()) {
            for (entry, value) in self.probes[p].1.iter().zip(values) {
                of_points[s][entry.at] = value;
                is_finite[s] &= value.is_finite();
            }
        }
        Ok(of_points.into_iter().zip(is_finite).map(|(x, is)| is.then_some(x)).collect())
    }

    /// The entries that some probes yield, each given by its point and its number.
    fn differences(
        &self,
        model: &dyn Model,
        continuous: &[usize],
        points: &Batch,
        jobs: &[(usize, usize)],
    ) -> Result<Vec<Vec<f64>>> {
        let Some(gradient) = model.gradient() else { return Ok(Vec::new()) };
        let step = |s: usize, k: usize| 1e-4 * points.get(continuous[k], s).abs().max(1.0);
        let mut z = Batch::zeros(points.columns_len(), 2 * jobs.len());
        for i in 0..points.columns_len() {
            let (from, to) = (points.column(i), z.column_mut(i));
            jobs.iter().enumerate().for_each(|(job, (s, _))| to[2 * job..2 * job + 2].fill(from[*s]));
        }
        for (job, (s, p)) in jobs.iter().enumerate() {
            for k in &self.probes[*p].0 {
                let (x, h) = (points.get(continuous[*k], *s), step(*s, *k));
                z.set(continuous[*k], 2 * job, x + h);
                z.set(continuous[*k], 2 * job + 1, x - h);
            }
        }
        let (mut log_p, mut d_z) = (vec![0.0; 2 * jobs.len()], Batch::zeros(z.columns_len(), 2 * jobs.len()));
        gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        let of_job = |(job, (s, p)): (usize, &(usize, usize))| {
            let value = |Entry { row, moved, .. }: &Entry| {
                let column = d_z.column(continuous[*row]);
                -(column[2 * job] - column[2 * job + 1]) / (2.0 * step(*s, *moved))
            };
            self.probes[*p].1.iter().map(value).collect()
        };
        Ok(jobs.iter().enumerate().map(of_job).collect())
    }

    /// The same where the log density is quadratic along these latents, with gradients at these points: exact, whatever the steps are. The
    /// entries of eight points are side by side, those of the next eight after them.
    pub(in crate::infer) fn of_quadratic(
        &self,
        gradient: &dyn Gradient,
        continuous: &[usize],
        (points, d_points): (&Batch, &Batch),
        steps: &[f64],
        entries: &mut [f64],
    ) -> Result<()> {
        let (n, len) = (points.columns_len(), points.draws_len());
        let (mut z, mut log_p, mut d_z) = (points.clone(), vec![0.0; len], Batch::zeros(n, len));
        for (moved, of_probe) in &self.probes {
            for k in moved {
                z.column_mut(continuous[*k]).iter_mut().for_each(|x| *x += steps[*k]);
            }
            gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
            for Entry { at, row, moved } in of_probe {
                let (before, after) = (d_points.column(continuous[*row]), d_z.column(continuous[*row]));
                let per_step = 1.0 / steps[*moved];
                let blocks = entries.chunks_exact_mut(self.pattern.entries_len() * LANES);
                for ((block, before), after) in blocks.zip(before.chunks(LANES)).zip(after.chunks(LANES)) {
                    let own = &mut block[at * LANES..][..before.len()];
                    for ((entry, before), after) in own.iter_mut().zip(before).zip(after) {
                        *entry = (before - after) * per_step;
                    }
                }
            }
            for k in moved {
                let column = continuous[*k];
                z.column_mut(column).copy_from_slice(points.column(column));
            }
        }
        Ok(())
    }

    /// The pattern of the matrix.
    pub(in crate::infer) fn pattern(&self) -> &SparsePattern {
        &self.pattern
    }

    /// The groups of latents that are moved together.
    pub(in crate::infer) fn probes_len(&self) -> usize {
        self.probes.len()
    }

    /// The gradients that it takes.
    pub(in crate::infer) fn gradients_len(&self) -> usize {
        2 * self.probes.len()
    }

    /// Whether no two latents are coupled.
    pub(in crate::infer) fn is_diagonal(&self) -> bool {
        self.pattern.entries_len() == self.pattern.len()
    }

    /// The place of the entry of a latent.
    pub(in crate::infer) fn diagonal(&self, latent: usize) -> usize {
        self.pattern.column(latent).start
    }

    /// The places of the entries of two latents, with both.
    pub(in crate::infer) fn links(&self) -> impl Iterator<Item = (usize, [usize; 2])> {
        let of_column =
            move |j: usize| self.pattern.column(j).skip(1).map(move |at| (at, [j, self.pattern.rows()[at]]));
        (0..self.pattern.len()).flat_map(of_column)
    }

    /// The latents that are coupled with a large share of the others: those that describe them all, such as their scale.
    pub(in crate::infer) fn hubs(&self) -> Vec<usize> {
        let n = self.pattern.len();
        let mut near = vec![0_usize; n];
        self.links().flat_map(|(_, ends)| ends).for_each(|i| near[i] += 1);
        (0..n).filter(|i| near[*i] > HUB_MIN.max(n / HUB_SHARE)).collect()
    }

    /// The Cholesky factor of the matrix with these entries, `None` if it is not positive definite.
    pub(in crate::infer) fn cholesky(&self, entries: &[f64]) -> Option<SparseCholesky> {
        self.pattern.cholesky(entries)
    }

    /// The entries with a ridge if the matrix needs one, and their factor; no curvature along a latent counts as less than `flat`.
    pub(in crate::infer) fn definite(&self, mut entries: Vec<f64>, flat: f64) -> Option<(Vec<f64>, SparseCholesky)> {
        let diagonal = (0..self.pattern.len()).map(|j| self.diagonal(j));
        let sizes: Vec<(usize, f64)> = diagonal.map(|at| (at, entries[at].abs().max(flat))).collect();
        let mut ridge = 0.0;
        loop {
            if let Some(factor) = self.cholesky(&entries) {
                return Some((entries, factor));
            }
            let more = if ridge == 0.0 { 1e-3 } else { 4.0 * ridge };
            sizes.iter().for_each(|(at, size)| entries[*at] += (more - ridge) * size);
            ridge = more;
            if ridge > 1e3 {
                return None;
            }
        }
    }
}

/// The pairs of these latents that are coupled, with their numbers among these.
fn pairs(coupled: &[[u32; 2]], len: usize, continuous: &[usize]) -> Vec<[u32; 2]> {
    let mut number = vec![None; len];
    continuous.iter().enumerate().for_each(|(k, i)| number[*i] = Some(k as u32));
    coupled.iter().filter_map(|[i, j]| Some([number[*i as usize]?, number[*j as usize]?])).collect()
}

/// The group of each latent, and how many there are: those with more than `many` neighbours are alone, and no two others of a group share
/// a neighbour that is not alone. `None` if that takes too long to find out.
fn groups(near: &[Vec<usize>], many: usize) -> Option<(Vec<usize>, usize)> {
    let is_alone = |i: usize| near[i].len() > many;
    let comparisons: usize = near.iter().filter(|of| of.len() <= many).map(|of| of.len() * of.len()).sum();
    if comparisons > COMPARISONS_MAX {
        return None;
    }
    let mut group = vec![usize::MAX; near.len()];
    let mut len = 0;
    for i in (0..near.len()).filter(|i| is_alone(*i)) {
        group[i] = len;
        len += 1;
    }
    let first = len;
    let mut taken_by: Vec<usize> = Vec::new();
    for i in (0..near.len()).filter(|i| !is_alone(*i)) {
        for row in near[i].iter().filter(|row| !is_alone(**row)) {
            for other in near[*row].iter().filter(|other| !is_alone(**other) && group[**other] != usize::MAX) {
                taken_by[group[*other] - first] = i;
            }
        }
        let free = (0..taken_by.len()).find(|g| taken_by[*g] != i).unwrap_or(taken_by.len());
        if free == taken_by.len() {
            taken_by.push(usize::MAX);
        }
        group[i] = first + free;
        len = len.max(first + free + 1);
    }
    Some((group, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::curvature::curvature;
    use crate::infer::stages::test_models::Coupled;

    /// Catches latents that are moved together although they share a row, and entries that are read from the wrong place.
    #[test]
    fn the_curvature_is_that_of_a_full_matrix() {
        let walk = Coupled::walk(40);
        let (n, continuous): (usize, Vec<usize>) = (41, (0..41).collect());
        let sparse = SparseCurvature::new(&walk, &continuous).expect("a sparse curvature");
        // The precision alone, and three groups of a chain.
        assert_eq!(sparse.probes.len(), 4);
        let point: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let full = curvature(&walk, &continuous, &point).expect("no fault").expect("a finite curvature");
        let mut points = Batch::zeros(n, 3);
        for (i, x) in point.iter().enumerate() {
            points.column_mut(i).copy_from_slice(&[*x, *x, f64::NAN]);
        }
        let entries = sparse.mean(&walk, &continuous, &points).expect("no fault").expect("a finite curvature");
        let mut from_sparse = vec![0.0; n * n];
        for j in 0..n {
            for at in sparse.pattern.column(j) {
                let i = sparse.pattern.rows()[at];
                (from_sparse[i * n + j], from_sparse[j * n + i]) = (entries[at], entries[at]);
            }
        }
        for (e, (a, b)) in full.iter().zip(&from_sparse).enumerate() {
            assert!((a - b).abs() < 1e-5, "{}, {}: {a} and {b}", e / n, e % n);
        }
    }

    #[test]
    fn an_indefinite_matrix_gets_a_ridge() {
        let walk = Coupled::walk(40);
        let continuous: Vec<usize> = (0..41).collect();
        let sparse = SparseCurvature::new(&walk, &continuous).expect("a sparse curvature");
        let entries = vec![1.0; sparse.pattern.entries_len()];
        assert!(sparse.cholesky(&entries).is_none());
        let (ridged, factor) = sparse.definite(entries, 1e-4).expect("a factor");
        assert_eq!(sparse.cholesky(&ridged), Some(factor));
    }

    #[test]
    fn a_dense_matrix_is_not_sparse() {
        let walk = Coupled::walk(4);
        assert!(SparseCurvature::new(&walk, &(0..5).collect::<Vec<_>>()).is_none());
    }
}
