//! Coupled spins: binary latents s_i = ±1 with p̃(s) = exp(Σ_edges J_ij s_i s_j + Σ_i h_i s_i).

use crate::error::{Error, Result};
use crate::model::{Conditionals, Latents, Locals, Model, Support};
use hyperprior_math::batch::Batch;

/// Two spins and their coupling; if it is positive they tend to agree, if negative to differ. See [`Ising::with_fields`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coupling {
    /// The spins, counted from 0.
    pub spins: (usize, usize),
    /// J.
    pub strength: f64,
}

/// An Ising model on any graph; latent i is 1 for spin up, 0 for spin down.
///
/// ```
/// use hyperprior::targets::Ising;
/// let model = Ising::grid(4, 4, 0.4, false)?;
/// hyperprior::check(&model, 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ising {
    latents: Latents,
    couplings: Vec<Coupling>,
    fields: Vec<f64>,
    /// For each spin its neighbours with their couplings.
    neighbours: Vec<Vec<(usize, f64)>>,
}

fn bad(reason: String) -> Error {
    Error::BadLatent { name: "spin".to_owned(), reason }
}

impl Ising {
    /// Spins on any graph, with one coupling strength and no field.
    ///
    /// # Errors
    /// As [`with_fields`](Self::with_fields).
    pub fn new(spins_len: usize, edges: Vec<(usize, usize)>, coupling: f64) -> Result<Self> {
        let couplings = edges.into_iter().map(|spins| Coupling { spins, strength: coupling }).collect();
        Self::with_fields(couplings, vec![0.0; spins_len])
    }

    /// Spins on any graph, each pair with its own coupling, each spin with its own field h_i; a positive field prefers up.
    ///
    /// ```
    /// use hyperprior::targets::{Coupling, Ising};
    /// let model = Ising::with_fields(vec![Coupling { spins: (0, 1), strength: -0.3 }], vec![0.1, 0.0])?;
    /// assert_eq!(model.couplings().len(), 1);
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyModel`] for no spins, [`Error::BadLatent`] for a coupling that does not join two of them, and for a
    /// number that is not finite.
    pub fn with_fields(couplings: Vec<Coupling>, fields: Vec<f64>) -> Result<Self> {
        let spins_len = fields.len();
        if spins_len == 0 {
            return Err(Error::EmptyModel);
        }
        if let Some(i) = fields.iter().position(|field| !field.is_finite()) {
            return Err(bad(format!("the field of spin {i} is {}; it must be finite", fields[i])));
        }
        let mut neighbours = vec![Vec::new(); spins_len];
        for &Coupling { spins: (a, b), strength } in &couplings {
            if a >= spins_len || b >= spins_len || a == b {
                return Err(bad(format!("the edge {a}–{b} does not join two of its {spins_len} spins")));
            }
            if !strength.is_finite() {
                return Err(bad(format!("the coupling of {a} and {b} is {strength}; it must be finite")));
            }
            neighbours[a].push((b, strength));
            neighbours[b].push((a, strength));
        }
        Ok(Self { latents: Latents::new().vector("spin", spins_len, Support::BINARY)?, couplings, fields, neighbours })
    }

    /// Spins on a ring.
    ///
    /// # Errors
    /// As [`with_fields`](Self::with_fields); a ring needs at least three spins.
    pub fn ring(spins_len: usize, coupling: f64) -> Result<Self> {
        if spins_len < 3 {
            return Err(bad(format!("a ring needs at least 3 spins, not {spins_len}")));
        }
        Self::new(spins_len, (0..spins_len).map(|i| (i, (i + 1) % spins_len)).collect(), coupling)
    }

    /// Spins on a grid, row by row, each coupled to its four neighbours; in a periodic grid the opposite edges are neighbours
    /// too.
    ///
    /// # Errors
    /// As [`with_fields`](Self::with_fields); a periodic grid needs at least three rows and three columns, so that no two
    /// spins are neighbours twice.
    pub fn grid(rows_len: usize, columns_len: usize, coupling: f64, periodic: bool) -> Result<Self> {
        if periodic && rows_len.min(columns_len) < 3 {
            let reason = format!("a periodic grid needs at least 3 rows and 3 columns, not {rows_len} × {columns_len}");
            return Err(bad(reason));
        }
        let Some(spins_len) = rows_len.checked_mul(columns_len) else {
            return Err(bad(format!("a grid of {rows_len} × {columns_len} spins is too large to count")));
        };
        let at = |row: usize, column: usize| row % rows_len * columns_len + column % columns_len;
        let places = (0..spins_len).map(|i| (i / columns_len, i % columns_len));
        let edges = places.flat_map(|(row, column)| {
            let right = (periodic || column + 1 < columns_len).then(|| (at(row, column), at(row, column + 1)));
            let down = (periodic || row + 1 < rows_len).then(|| (at(row, column), at(row + 1, column)));
            right.into_iter().chain(down)
        });
        Self::new(spins_len, edges.collect(), coupling)
    }

    /// Which spins are coupled, and how.
    pub fn couplings(&self) -> &[Coupling] {
        &self.couplings
    }

    /// The field at each spin.
    pub fn fields(&self) -> &[f64] {
        &self.fields
    }

    /// The field on spin i in draw s: its own and that of its neighbours.
    fn pull(&self, i: usize, z: &Batch, s: usize) -> f64 {
        let neighbours = self.neighbours[i].iter().map(|&(j, strength)| strength * spin(z.get(j, s)));
        self.fields[i] + neighbours.sum::<f64>()
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
        for &Coupling { spins: (a, b), strength } in &self.couplings {
            for ((o, a), b) in out.iter_mut().zip(z.column(a)).zip(z.column(b)) {
                *o += strength * spin(*a) * spin(*b);
            }
        }
        for (i, field) in self.fields.iter().enumerate().filter(|(_, field)| **field != 0.0) {
            for (o, z) in out.iter_mut().zip(z.column(i)) {
                *o += field * spin(*z);
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
        for i in 0..self.fields.len() {
            for (s, o) in out.column_mut(i).iter_mut().enumerate() {
                *o = spin(z.get(i, s)) * self.pull(i, z, s);
            }
        }
        Ok(())
    }
}

impl Conditionals for Ising {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        for (v, value) in values.iter().enumerate() {
            for (s, o) in out.column_mut(v).iter_mut().enumerate() {
                *o = spin(*value) * self.pull(i, z, s);
            }
        }
        Ok(())
    }
}
