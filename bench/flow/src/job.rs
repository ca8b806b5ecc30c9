//! The job: independent posteriors, shared out among threads, each thread with working memory of its own.

/// Posteriors that a thread takes at a time.
pub const SHARE: usize = 8;

/// How large the job is.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many posteriors there are.
    pub posteriors_len: usize,
    /// Draws of each posterior.
    pub draws_len: usize,
    /// Latents of each posterior.
    pub latents_len: usize,
    /// Layers of the prior's flow.
    pub flow_len: usize,
    /// Layers of the recursive approximation's inverse flow.
    pub inverse_len: usize,
}

/// All posteriors with their parameters, gradients and values.
pub trait Job: Send {
    /// The value and the gradients of every posterior; called from within a pool of as many threads as there are workers.
    fn step(&mut self);

    /// The sum over posteriors.
    fn value(&self) -> f64;

    /// The gradients along every θ and every φ, posterior by posterior.
    fn gradients(&self) -> [Vec<f64>; 2];
}
