//! Normalizing flows: invertible maps of a batch, with their log-determinants and pullbacks.

mod planar;

pub use planar::Planar;
