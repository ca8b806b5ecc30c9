//! Where the parameters of a datum's q come from: a row of a table, or an inference network.

use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::network::Mlp;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;

/// How (θ_n, φ_n) of datum n are obtained. See [`PlateModel`](super::PlateModel).
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// A row for every datum. Exact, but not applicable to new data.
    Table,
    /// Amortised: the output of a network with hidden layers of these sizes for the datum's features, added to parameters that
    /// all data share.
    Network(Vec<usize>),
}

/// A guide for a given plate: how many parameters there are, and how a datum's follow from them.
#[derive(Clone, Debug)]
pub(super) enum Rows {
    Table { data_len: usize, row_len: usize },
    Network { network: Mlp, row_len: usize },
}

impl Rows {
    pub(super) fn new(guide: &Guide, data_len: usize, features_len: usize, row_len: usize) -> Self {
        match guide {
            Guide::Table => Self::Table { data_len, row_len },
            Guide::Network(hidden) => {
                let sizes = [&[features_len], &hidden[..], &[row_len]].concat();
                Self::Network { network: Mlp::new(sizes), row_len }
            }
        }
    }

    pub(super) fn row_len(&self) -> usize {
        match self {
            Self::Table { row_len, .. } | Self::Network { row_len, .. } => *row_len,
        }
    }

    /// The total number of parameters: the rows, or the shared row and the network's.
    pub(super) fn parameters_len(&self) -> usize {
        match self {
            Self::Table { data_len, row_len } => data_len * row_len,
            Self::Network { network, row_len } => row_len + network.parameters_len(),
        }
    }

    /// The length of a batch's gradient: a row per datum of the batch, or the number of parameters.
    pub(super) fn gradient_len(&self, batch_len: usize) -> usize {
        match self {
            Self::Table { row_len, .. } => batch_len * row_len,
            Self::Network { .. } => self.parameters_len(),
        }
    }

    /// Every datum has the same start; the network's output starts at zero.
    pub(super) fn initialize(&self, q: &Variational, start: &Start, rng: &mut Stream, parameters: &mut [f64]) {
        let mut row = vec![0.0; self.row_len()];
        let (theta, phi) = row.split_at_mut(q.theta_len());
        q.prior().initialize(start, rng, theta);
        q.recursive().initialize(start, rng, phi);
        match self {
            Self::Table { row_len, .. } => {
                parameters.chunks_exact_mut((*row_len).max(1)).for_each(|own| own.copy_from_slice(&row));
            }
            Self::Network { network, row_len } => {
                parameters[..*row_len].copy_from_slice(&row);
                network.initialize(0.0, rng, &mut parameters[*row_len..]);
            }
        }
    }

    /// row ← (θ_n, φ_n); `hidden` stores what [`pullback`](Self::pullback) needs.
    pub(super) fn read(&self, parameters: &[f64], n: usize, features: &[f64], hidden: &mut Vec<f64>, row: &mut [f64]) {
        match self {
            Self::Table { row_len, .. } => row.copy_from_slice(&parameters[n * row_len..(n + 1) * row_len]),
            Self::Network { network, row_len } => {
                hidden.resize(network.hidden_len(), 0.0);
                network.forward(&parameters[*row_len..], 1, features, hidden, row);
                add_scaled(1.0, &parameters[..*row_len], row);
            }
        }
    }

    /// Adds a datum's gradient `d_row` to that of its batch, at position `place`.
    pub(super) fn pullback(
        &self,
        parameters: &[f64],
        place: usize,
        features: &[f64],
        hidden: &[f64],
        d_row: &[f64],
        d_parameters: &mut [f64],
        scratch: &mut Scratch,
    ) {
        match self {
            Self::Table { row_len, .. } => {
                add_scaled(1.0, d_row, &mut d_parameters[place * row_len..(place + 1) * row_len]);
            }
            Self::Network { network, row_len } => {
                let (d_shared, d_network) = d_parameters.split_at_mut(*row_len);
                add_scaled(1.0, d_row, d_shared);
                let mut unused = scratch.take(features.len());
                let of_network = &parameters[*row_len..];
                network.pullback(of_network, 1, features, hidden, d_row, d_network, &mut unused, scratch);
                scratch.give(unused);
            }
        }
    }
}
