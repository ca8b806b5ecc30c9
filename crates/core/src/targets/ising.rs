//! Coupled spins: binary latents s_i = ±1 with p̃(s) = exp(J Σ_edges s_i s_j).

use crate::error::{Error, Result};
use crate::model::{Conditionals, Latents, Locals, Model, Support};
use hyperprior_math::batch::Batch;

/// An Ising model without a field; latent i is 1 for spin up, 0 for spin down.
///
/// ```
/// use hyperprior::targets::Ising;
/// let model = Ising::ring(8, 0.5)?;
/// hyperprior::check(&model, 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ising {
    latents: Latents,
    coupling: f64,
    edges: Vec<(usize, usize)>,
    neighbours: Vec<Vec<usize>>,
}

impl Ising {
    /// Spins on any graph.
    ///
    /// # Errors
    /// [`Error::EmptyModel`] for no spins, [`Error::BadLatent`] for an edge that leads nowhere.
    pub fn new(spins_len: usize, edges: Vec<(usize, usize)>, coupling: f64) -> Result<Self> {
        if spins_len == 0 {
            return Err(Error::EmptyModel);
        }
        let mut neighbours = vec![Vec::new(); spins_len];
        for &(a, b) in &edges {
            if a >= spins_len || b >= spins_len || a == b {
                let reason = format!("the edge {a}–{b} does not join two of its {spins_len} spins");
                return Err(Error::BadLatent { name: "spin".to_owned(), reason });
            }
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        Ok(Self { latents: Latents::new().vector("spin", spins_len, Support::BINARY)?, coupling, edges, neighbours })
    }

    /// Spins on a ring.
    ///
    /// # Errors
    /// As [`new`](Self::new); a ring needs at least three spins.
    pub fn ring(spins_len: usize, coupling: f64) -> Result<Self> {
        if spins_len < 3 {
            let reason = format!("a ring needs at least 3 spins, not {spins_len}");
            return Err(Error::BadLatent { name: "spin".to_owned(), reason });
        }
        Self::new(spins_len, (0..spins_len).map(|i| (i, (i + 1) % spins_len)).collect(), coupling)
    }
}

fn spin(z: f64) -> f64 {
    2.0 * z - 1.0
}

impl Model for Ising {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        out.fill(0.0);
        for &(a, b) in &self.edges {
            for ((o, a), b) in out.iter_mut().zip(z.column(a)).zip(z.column(b)) {
                *o += self.coupling * spin(*a) * spin(*b);
            }
        }
        Ok(())
    }

    fn locals(&self) -> Option<&dyn Locals> {
        Some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }
}

impl Locals for Ising {
    fn log_local(&self, z: &Batch, out: &mut Batch) -> Result<()> {
        for (i, neighbours) in self.neighbours.iter().enumerate() {
            for (s, o) in out.column_mut(i).iter_mut().enumerate() {
                let field: f64 = neighbours.iter().map(|&j| spin(z.get(j, s))).sum();
                *o = self.coupling * spin(z.get(i, s)) * field;
            }
        }
        Ok(())
    }
}

impl Conditionals for Ising {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        for (v, value) in values.iter().enumerate() {
            for (s, o) in out.column_mut(v).iter_mut().enumerate() {
                let field: f64 = self.neighbours[i].iter().map(|&j| spin(z.get(j, s))).sum();
                *o = self.coupling * spin(*value) * field;
            }
        }
        Ok(())
    }
}
