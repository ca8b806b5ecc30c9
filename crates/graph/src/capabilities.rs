//! What a graph can do as a [`Model`]: log joint, gradient, local terms and conditionals.

use super::distribution::Distribution;
use super::model::{Blanket, GraphModel};
use super::node::AnyDistribution;
use super::tape::TILE;
use super::truncated_sum::{known, short};
use super::unconstrained::Coordinate;
use hyperprior::model::{Conditionals, Fault, Gradient, Latents, Locals, Model, Quadratic, Support};
use hyperprior::{Error, Result};
use hyperprior_math::batch::Batch;

/// Draws that need a higher level than this are unusually expensive.
const ORDINARY_LEVELS: usize = 3;

impl Model for GraphModel {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        let total = |first| self.evaluate(z, first, |level, w, short| known(level.joint.tape.total(w), short));
        Self::tiles(z, total, |first, total| {
            let len = TILE.min(out.len() - first);
            out[first..first + len].copy_from_slice(&total[..len]);
        });
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        Some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn is_ordinary(&self, z: &Batch, out: &mut [bool]) {
        if self.levels.len() <= 1 {
            return out.fill(true);
        }
        let levels_len = ORDINARY_LEVELS.min(self.levels.len());
        let short = |first| self.evaluate_within(levels_len, z, first, |_, _, short| short);
        Self::tiles(z, short, |first, short| {
            out[first..].iter_mut().zip(short).for_each(|(out, short)| *out = !short);
        });
    }

    fn flat_priors(&self) -> Vec<usize> {
        let coordinates = self.unconstrained.coordinates.iter().zip(&self.columns);
        let is_flat = |c: &Coordinate| {
            let node = &self.graph.random[self.graph.leaves[c.leaf].random as usize];
            matches!(node.distribution, AnyDistribution::Scalar(Distribution::Flat | Distribution::HalfFlat))
        };
        coordinates.filter(|(c, _)| is_flat(c)).filter_map(|(_, column)| column.map(|column| column as usize)).collect()
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        self.coupled_columns()
    }

    fn gaussian_given_others(&self, others_max: usize) -> Option<Vec<usize>> {
        self.quadratic_columns(others_max)
    }

    fn quadratic(&self, gaussian: &[usize]) -> Option<Box<dyn Quadratic>> {
        Some(Box::new(self.gaussian_form(gaussian)?))
    }

    fn fault(&self, z: &Batch, s: usize) -> Option<Fault> {
        self.fault_at(z, s)
    }

    fn work(&self) -> usize {
        let level = self.level(0);
        let values = |latent: u32| match self.unconstrained.coordinates[latent as usize].support {
            Support::Integers { lower, upper } => (upper - lower) as usize + 1,
            _ => 32,
        };
        let tables = self.kept.iter().zip(&level.blankets);
        self.joint_work()
            + tables.map(|(latent, blanket)| blanket.pooled.tape.work(true) * values(*latent)).sum::<usize>()
    }

    fn joint_work(&self) -> usize {
        self.level(0).joint.tape.work(false)
    }
}

impl Gradient for GraphModel {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        // The derivative of a latent in no term is zero.
        d_z.as_mut_slice().fill(0.0);
        if z.draws_len() <= TILE {
            // The usual size of a block of draws; this path does not allocate.
            let d_z = std::cell::RefCell::new(d_z);
            let total = self.evaluate(z, 0, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = tape.backward(workspace);
                tape.store(workspace, 0, &mut d_z.borrow_mut());
                known(total, short)
            });
            out.copy_from_slice(&total[..out.len()]);
            return Ok(());
        }
        let columns_len = z.columns_len();
        let run = |first| {
            self.evaluate(z, first, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = tape.backward(workspace);
                let mut own = Batch::zeros(columns_len, TILE.min(z.draws_len() - first));
                tape.store(workspace, 0, &mut own);
                (known(total, short), own)
            })
        };
        Self::tiles(z, run, |first, (total, own)| {
            let len = own.draws_len();
            out[first..first + len].copy_from_slice(&total[..len]);
            for i in 0..columns_len {
                d_z.column_mut(i)[first..first + len].copy_from_slice(own.column(i));
            }
        });
        Ok(())
    }
}

impl Locals for GraphModel {
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()> {
        let run = |first| {
            self.evaluate(z, first, |level, workspace, short| {
                let tape = &level.joint.tape;
                let total = known(tape.total(workspace), short);
                let roots = tape.roots();
                let locals: Vec<[f64; TILE]> = level
                    .blankets
                    .iter()
                    .map(|blanket| {
                        let mut sum = [0.0; TILE];
                        for place in &blanket.places {
                            let (row, weight) = roots[*place as usize];
                            let row = tape.row(row, workspace);
                            for i in 0..TILE {
                                sum[i] += weight * row[i];
                            }
                        }
                        sum
                    })
                    .collect();
                (total, locals)
            })
        };
        let discrete = &self.discrete;
        Self::tiles(z, run, |first, (total, locals)| {
            let len = TILE.min(z.draws_len() - first);
            for i in 0..out.columns_len() {
                // A continuous latent gets the full log joint: its gradient does not use local terms.
                let from = discrete[i].map_or(&total, |k| &locals[k]);
                out.column_mut(i)[first..first + len].copy_from_slice(&from[..len]);
            }
        });
        Ok(())
    }
}

impl Conditionals for GraphModel {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let Some(k) = self.discrete[i] else {
            return Err(Error::Model(format!("`{}` is continuous and has no conditional table", self.latents.name(i))));
        };
        let mut open = Vec::with_capacity(values.len());
        for first in (0..z.draws_len()).step_by(TILE) {
            // Each value at the lowest level that is accurate enough for it; the latent's current value does not matter.
            open.clear();
            open.extend(0..values.len());
            for number in 0..self.levels.len() {
                let Blanket { pooled, tails_len, .. } = &self.level(number).blankets[k];
                let mut workspace = pooled.take();
                pooled.tape.load(z, first, &mut workspace);
                pooled.tape.forward_fixed(&mut workspace);
                let len = TILE.min(z.draws_len() - first);
                open.retain(|&v| {
                    pooled.tape.set(i as u32, values[v], &mut workspace);
                    pooled.tape.forward_varying(&mut workspace);
                    let short = short(&pooled.tape, &workspace, *tails_len);
                    let total = known(pooled.tape.total(&workspace), short);
                    out.column_mut(v)[first..first + len].copy_from_slice(&total[..len]);
                    short.contains(&true)
                });
                pooled.give(workspace);
                if open.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}
