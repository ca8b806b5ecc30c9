//! The latent variables of a model: their names, shapes and supports.

use crate::error::{Error, Result};
use hyperprior_math::family::Support;

/// A named array of latent variables that share a support. See [`Latents`].
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// The name given by the user.
    pub name: String,
    /// Its shape; empty for a single number.
    pub shape: Vec<usize>,
    /// The values each element can take.
    pub support: Support,
}

/// All latent variables of a model, in order; the scalars are numbered from 0 across all of them.
///
/// ```
/// use hyperprior::model::{Latents, Support};
/// let latents = Latents::new().vector("z", 3, Support::Counts)?.scalar("mu", Support::Real)?;
/// assert_eq!(latents.len(), 4);
/// assert_eq!(latents.name(1), "z[2]");
/// assert_eq!(latents.name(3), "mu");
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latents {
    entries: Vec<Latent>,
    /// For each scalar, its array and its position in it.
    scalars: Vec<(usize, usize)>,
}

impl Latents {
    /// No latents yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an array.
    ///
    /// # Errors
    /// [`Error::BadLatent`] for a name already in use, a shape with a zero in it, or an empty support.
    pub fn array(mut self, name: &str, shape: &[usize], support: Support) -> Result<Self> {
        let bad = |reason: &str| Error::BadLatent { name: name.to_owned(), reason: reason.to_owned() };
        if self.entries.iter().any(|e| e.name == name) {
            return Err(bad("the name is already in use; give each latent its own"));
        }
        if shape.contains(&0) {
            return Err(bad("its shape has a zero, so it is empty; leave it out"));
        }
        if let Support::Integers { lower, upper } = support
            && !(lower <= upper && lower.fract() == 0.0 && upper.fract() == 0.0)
        {
            return Err(bad("a range of whole numbers needs lower ≤ upper, both whole"));
        }
        let entry = self.entries.len();
        self.scalars.extend((0..shape.iter().product()).map(|at| (entry, at)));
        self.entries.push(Latent { name: name.to_owned(), shape: shape.to_vec(), support });
        Ok(self)
    }

    /// Adds a vector.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn vector(self, name: &str, len: usize, support: Support) -> Result<Self> {
        self.array(name, &[len], support)
    }

    /// Many scalars at once.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn scalars(of: impl IntoIterator<Item = (String, Support)>) -> Result<Self> {
        let mut latents = Self::new();
        let mut taken = std::collections::HashSet::new();
        for (name, support) in of {
            // Each is checked on its own, and its name in a hash set: comparing every pair of names would take quadratic time.
            let one = Self::new().scalar(&name, support)?;
            if !taken.insert(name.clone()) {
                let reason = "the name is already in use; give each latent its own".to_owned();
                return Err(Error::BadLatent { name, reason });
            }
            latents.scalars.push((latents.entries.len(), 0));
            latents.entries.extend(one.entries);
        }
        Ok(latents)
    }

    /// Adds a scalar.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn scalar(self, name: &str, support: Support) -> Result<Self> {
        self.array(name, &[], support)
    }

    /// How many scalar latents there are.
    pub fn len(&self) -> usize {
        self.scalars.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scalars.is_empty()
    }

    /// The arrays, as declared.
    pub fn entries(&self) -> &[Latent] {
        &self.entries
    }

    /// The support of scalar `i`.
    pub fn support(&self, i: usize) -> Support {
        self.entries[self.scalars[i].0].support
    }

    /// The name of scalar `i` with its indices counted from one, as `z[2,1]`.
    pub fn name(&self, i: usize) -> String {
        let (entry, mut at) = self.scalars[i];
        let latent = &self.entries[entry];
        if latent.shape.is_empty() {
            return latent.name.clone();
        }
        let mut index = vec![0; latent.shape.len()];
        for (place, size) in index.iter_mut().zip(&latent.shape).rev() {
            *place = at % size + 1;
            at /= size;
        }
        let index: Vec<String> = index.iter().map(ToString::to_string).collect();
        format!("{}[{}]", latent.name, index.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_the_last_index_fastest() {
        let latents = Latents::new().array("a", &[2, 3], Support::Real).unwrap();
        let names: Vec<String> = (0..6).map(|i| latents.name(i)).collect();
        assert_eq!(names, ["a[1,1]", "a[1,2]", "a[1,3]", "a[2,1]", "a[2,2]", "a[2,3]"]);
    }

    #[test]
    fn bad_declarations_say_why() {
        let taken = Latents::new().scalar("a", Support::Real).unwrap().scalar("a", Support::Real);
        assert!(taken.unwrap_err().to_string().contains("already in use"));
        let empty = Latents::new().vector("b", 0, Support::Real);
        assert!(empty.unwrap_err().to_string().contains("it is empty"));
        let range = Latents::new().scalar("c", Support::Integers { lower: 2.0, upper: 1.0 });
        assert!(range.unwrap_err().to_string().contains("lower ≤ upper"));
    }
}
