//! Draws from an approximate posterior: one named column per scalar, on the model's own scale.

use super::monitor::{Monitor, MonitorError};
use super::name::ElementName;
use super::weights::Weights;
use hyperprior_math::batch::Batch;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Which values a column holds. See [`Column`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Discrete,
    /// Real numbers.
    Continuous,
}

/// The name and kind of a scalar. See [`Draws`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in BUGS notation: `beta[1]`, `z[3,2]`.
    pub name: String,
    /// Which values it takes.
    pub kind: Kind,
}

impl Column {
    /// A column of real numbers.
    pub fn continuous(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Continuous }
    }

    /// A column of whole numbers.
    pub fn discrete(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Discrete }
    }
}

/// Why draws cannot be stored or used. See [`Draws`].
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DrawsError {
    /// The numbers of names and columns differ.
    #[error("there are {names} names for {columns} columns of draws")]
    Lengths {
        /// The number of names.
        names: usize,
        /// The number of columns.
        columns: usize,
    },
    /// There are no draws.
    #[error("there are no draws; at least one is needed")]
    Empty,
    /// Two columns have the same name.
    #[error("two columns of draws are named `{name}`; give each its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A discrete column holds a value that is not a whole number.
    #[error(
        "draw {draw} of the discrete variable `{name}` is {value}, which is not a whole number that can be stored exactly"
    )]
    NotWhole {
        /// The column.
        name: String,
        /// The draw, counted from one.
        draw: usize,
        /// Its value.
        value: f64,
    },
    /// The numbers of weights and draws differ.
    #[error("there are {weights} importance weights for {draws} draws")]
    WeightsLength {
        /// The number of weights.
        weights: usize,
        /// The number of draws.
        draws: usize,
    },
    /// A weight is infinite or undefined, or all are zero.
    #[error("the importance weights cannot be normalised: {reason}")]
    BadWeights {
        /// What is wrong.
        reason: String,
    },
    /// The column must be discrete.
    #[error("`{name}` is continuous; only discrete variables have probabilities of values")]
    NotDiscrete {
        /// The column.
        name: String,
    },
    /// A monitor selects nothing.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
}

/// Draws of named scalars from their joint distribution, optionally with importance weights.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::{Column, Draws, Monitor, summarise};
/// let columns = vec![Column::continuous("mu"), Column::discrete("z[1]"), Column::discrete("z[2]")];
/// let values = Batch::from_columns(vec![0.5, 1.5, 1.0, 2.0, 2.0, 2.0], 2);
/// let draws = Draws::new(columns, values)?;
/// assert_eq!(summarise(&draws)[0].mean, 1.0);
/// let z = draws.select(&[Monitor::parse("z")?])?;
/// assert_eq!(z.names(), ["z[1]", "z[2]"]);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    columns: Vec<Column>,
    values: Batch,
    log_weights: Option<Vec<f64>>,
}

/// Above this, doubles cannot represent every whole number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

impl Draws {
    /// Draws with equal weights.
    ///
    /// # Errors
    /// [`DrawsError`] if names and columns do not match, two names are equal, there are no draws, or a discrete column holds a
    /// number that is not whole.
    pub fn new(columns: Vec<Column>, values: Batch) -> Result<Self, DrawsError> {
        if columns.len() != values.columns_len() {
            return Err(DrawsError::Lengths { names: columns.len(), columns: values.columns_len() });
        }
        if values.draws_len() == 0 {
            return Err(DrawsError::Empty);
        }
        let mut seen = HashSet::new();
        if let Some(column) = columns.iter().find(|column| !seen.insert(column.name.as_str())) {
            return Err(DrawsError::Duplicate { name: column.name.clone() });
        }
        let whole = |x: &f64| x.fract() == 0.0 && x.abs() <= WHOLE_MAX;
        for (i, column) in columns.iter().enumerate().filter(|(_, column)| column.kind == Kind::Discrete) {
            if let Some(draw) = values.column(i).iter().position(|x| !whole(x)) {
                let (name, value) = (column.name.clone(), values.get(i, draw));
                return Err(DrawsError::NotWhole { name, draw: draw + 1, value });
            }
        }
        Ok(Self { columns, values, log_weights: None })
    }

    /// The same draws with log importance weights, which need not be normalised; −∞ means no weight.
    ///
    /// # Errors
    /// [`DrawsError::WeightsLength`] and [`DrawsError::BadWeights`].
    pub fn weighted(mut self, log_weights: Vec<f64>) -> Result<Self, DrawsError> {
        if log_weights.len() != self.len() {
            return Err(DrawsError::WeightsLength { weights: log_weights.len(), draws: self.len() });
        }
        let bad = |reason| Err(DrawsError::BadWeights { reason });
        if let Some(draw) = log_weights.iter().position(|log| log.is_nan() || *log == f64::INFINITY) {
            return bad(format!("the log weight of draw {} is {}", draw + 1, log_weights[draw]));
        }
        if log_weights.iter().all(|log| *log == f64::NEG_INFINITY) {
            return bad("all of them are zero".to_owned());
        }
        self.log_weights = Some(log_weights);
        Ok(self)
    }

    /// The number of draws.
    #[expect(clippy::len_without_is_empty, reason = "there is always a draw")]
    pub fn len(&self) -> usize {
        self.values.draws_len()
    }

    /// The columns' names and kinds.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns' names.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// Every draw of column `i`.
    pub fn column(&self, i: usize) -> &[f64] {
        self.values.column(i)
    }

    /// All draws, a column per scalar.
    pub fn values(&self) -> &Batch {
        &self.values
    }

    /// All draws, by value.
    pub fn into_values(self) -> Batch {
        self.values
    }

    /// The log importance weights, as given.
    pub fn log_weights(&self) -> Option<&[f64]> {
        self.log_weights.as_deref()
    }

    /// The weight of each draw.
    pub fn weights(&self) -> Weights {
        self.log_weights.as_deref().map_or_else(|| Weights::equal(self.len()), Weights::from_logs)
    }

    /// The discrete columns, in order.
    pub fn discrete(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|i| self.columns[*i].kind == Kind::Discrete).collect()
    }

    /// The arrays with their columns, both in order; a scalar is an array with one column.
    pub fn arrays(&self) -> Vec<(&str, Vec<usize>)> {
        let mut arrays: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut known = HashMap::new();
        for (i, column) in self.columns.iter().enumerate() {
            let name = ElementName::parse(&column.name).array;
            let array = *known.entry(name).or_insert_with(|| {
                arrays.push((name, Vec::new()));
                arrays.len() - 1
            });
            arrays[array].1.push(i);
        }
        arrays
    }

    /// The indices of the columns that monitors select, in the monitors' order, each once.
    ///
    /// # Errors
    /// [`MonitorError`] for a monitor that selects nothing.
    pub fn places(&self, monitors: &[Monitor]) -> Result<Vec<usize>, MonitorError> {
        let names = self.names();
        let mut seen = HashSet::new();
        let mut places = Vec::new();
        for monitor in monitors {
            places.extend(monitor.places(&names)?.into_iter().filter(|i| seen.insert(*i)));
        }
        Ok(places)
    }

    /// The draws of the columns that monitors select, with the weights.
    ///
    /// # Errors
    /// As [`places`](Self::places).
    pub fn select(&self, monitors: &[Monitor]) -> Result<Self, DrawsError> {
        let places = self.places(monitors)?;
        let mut values = Batch::zeros(places.len(), self.len());
        for (to, from) in places.iter().enumerate() {
            values.column_mut(to).copy_from_slice(self.column(*from));
        }
        let columns = places.iter().map(|i| self.columns[*i].clone()).collect();
        Ok(Self { columns, values, log_weights: self.log_weights.clone() })
    }

    /// The same number of draws with equal weights, by systematic resampling: the number of copies of a draw differs from its
    /// expectation by less than one.
    ///
    /// The result is not random: draw k is the one at which the cumulative weight reaches (k + ½)/n.
    pub fn resampled(&self) -> Self {
        let weights = self.weights();
        let share = weights.total() / self.len() as f64;
        let (mut s, mut reached) = (0, weights.relative()[0]);
        let from: Vec<usize> = (0..self.len())
            .map(|k| {
                while reached <= (k as f64 + 0.5) * share && s + 1 < self.len() {
                    s += 1;
                    reached += weights.relative()[s];
                }
                s
            })
            .collect();
        let mut values = Batch::zeros(self.columns.len(), self.len());
        for i in 0..self.columns.len() {
            let column = self.column(i);
            values.column_mut(i).iter_mut().zip(&from).for_each(|(x, s)| *x = column[*s]);
        }
        Self { columns: self.columns.clone(), values, log_weights: None }
    }

    /// Checks that every one of `columns` is discrete.
    pub(crate) fn require_discrete(&self, columns: &[usize]) -> Result<(), DrawsError> {
        match columns.iter().map(|i| &self.columns[*i]).find(|column| column.kind != Kind::Discrete) {
            Some(column) => Err(DrawsError::NotDiscrete { name: column.name.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<Column> {
        vec![Column::continuous("mu"), Column::discrete("z")]
    }

    fn draws() -> Draws {
        Draws::new(two(), Batch::from_columns(vec![0.5, -0.5, 3.0, 1.0], 2)).unwrap()
    }

    #[test]
    fn invalid_draws_are_refused() {
        let said = |columns, values| Draws::new(columns, values).unwrap_err().to_string();
        assert_eq!(said(two(), Batch::zeros(3, 2)), "there are 2 names for 3 columns of draws");
        assert!(said(two(), Batch::zeros(2, 0)).contains("there are no draws"));
        let twice = vec![Column::continuous("mu"), Column::discrete("mu")];
        assert!(said(twice, Batch::zeros(2, 1)).contains("are named `mu`"));
        for bad in [1.5, f64::NAN, f64::INFINITY, 1e17] {
            let values = Batch::from_columns(vec![0.0, 0.0, 1.0, bad], 2);
            assert!(said(two(), values).starts_with("draw 2 of the discrete variable `z` is"), "{bad}");
        }
    }

    #[test]
    fn weights_that_cannot_be_normalised_are_refused() {
        let said = |logs: &[f64]| draws().weighted(logs.to_vec()).unwrap_err().to_string();
        assert_eq!(said(&[0.0]), "there are 1 importance weights for 2 draws");
        assert!(said(&[0.0, f64::NAN]).contains("the log weight of draw 2 is NaN"));
        assert!(said(&[f64::NEG_INFINITY; 2]).contains("all of them are zero"));
        let weighted = draws().weighted(vec![f64::NEG_INFINITY, -800.0]).unwrap();
        assert_eq!(weighted.weights().relative(), [0.0, 1.0]);
    }

    #[test]
    fn an_array_need_not_be_contiguous() {
        let columns = ["z[1]", "y[1]", "z[2]", "mu"].map(Column::continuous).to_vec();
        let draws = Draws::new(columns, Batch::zeros(4, 1)).unwrap();
        assert_eq!(draws.arrays(), [("z", vec![0, 2]), ("y", vec![1]), ("mu", vec![3])]);
    }

    #[test]
    fn resampling_repeats_draws_by_weight() {
        let values = Batch::from_columns(vec![1.0, 2.0, 3.0, 4.0], 4);
        let draws = Draws::new(vec![Column::discrete("z")], values).unwrap();
        assert_eq!(draws.resampled(), draws);
        let logs = [0.0_f64, 2.0, 0.0, 2.0].map(f64::ln).to_vec();
        let resampled = draws.clone().weighted(logs).unwrap().resampled();
        assert_eq!((resampled.column(0), resampled.log_weights()), (&[2.0, 2.0, 4.0, 4.0][..], None));
        let logs = [6.0_f64, 1.0, 1.0, 2.0].map(f64::ln).to_vec();
        assert_eq!(draws.weighted(logs).unwrap().resampled().column(0), [1.0, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn a_selection_has_the_requested_order_and_keeps_the_weights() {
        let monitors = Monitor::parse_list("z mu z").unwrap();
        let selected = draws().weighted(vec![0.0, 1.0]).unwrap().select(&monitors).unwrap();
        assert_eq!(selected.names(), ["z", "mu"]);
        assert_eq!(selected.column(0), [3.0, 1.0]);
        assert_eq!(selected.columns()[0].kind, Kind::Discrete);
        assert_eq!(selected.log_weights(), Some(&[0.0, 1.0][..]));
        let nothing = draws().select(&Monitor::parse_list("q").unwrap());
        assert!(nothing.unwrap_err().to_string().contains("no variable `q`"));
    }
}
