//! The product's side of the tape bench: the model that `jax_logistic.py` describes, built as a factor graph.
//!
//! hyperprior-bench-tape FOLDER COLUMNS DRAWS THREADS [REPEATS]
//!
//! FOLDER holds what `jax_logistic.py --write` left. The log density and the gradient are held against JAX's, and then timed:
//! the median, the least and the ninetieth percentile of the milliseconds of a call are printed.

use hyperprior::Batch;
use hyperprior_graph::{Expr, Function, GraphBuilder, GraphModel, Distribution};
use hyperprior::model::Gradient;
use std::path::Path;
use std::time::Instant;

/// The largest relative difference from JAX's float64.
const TOLERANCE: f64 = 1e-12;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, columns, draws, threads, rest @ ..] = &arguments[..] else {
        return Err("usage: hyperprior-bench-tape FOLDER COLUMNS DRAWS THREADS [REPEATS]".into());
    };
    let (columns, draws, threads) = (columns.parse()?, draws.parse()?, threads.parse()?);
    let repeats = rest.first().map_or(Ok(300), |r| r.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let folder = Path::new(folder);
    let (x, y) = (read(&folder.join("x.f64"))?, read(&folder.join("y.f64"))?);
    let before = Instant::now();
    let model = regression(&x, &y, columns)?;
    let (rows, runs) = model.tape_len();
    eprintln!("built in {:.1} ms: {rows} rows in {runs} runs", 1e3 * before.elapsed().as_secs_f64());
    let z = in_columns(&read(&folder.join("draws.f64"))?, 2 * columns + 1, draws);
    let mut log_p = vec![0.0; draws];
    let mut d_z = Batch::zeros(z.columns_len(), draws);
    model.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let gradient = in_columns(&read(&folder.join("gradient.f64"))?, 2 * columns + 1, draws);
    for (what, ours, theirs) in [
        ("log density", &log_p[..], &read(&folder.join("log_p.f64"))?[..]),
        ("gradient", d_z.as_slice(), gradient.as_slice()),
    ] {
        let error = difference(ours, theirs);
        if error.is_nan() || error > TOLERANCE {
            return Err(format!("the {what} differs from JAX's by {error:.1e}").into());
        }
    }
    let mut milliseconds = Vec::with_capacity(repeats);
    for _ in 0..repeats + repeats / 10 {
        let before = Instant::now();
        model.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        milliseconds.push(1e3 * before.elapsed().as_secs_f64());
    }
    let timed = &mut milliseconds[repeats / 10..];
    timed.sort_by(f64::total_cmp);
    let at = |share: f64| timed[((timed.len() - 1) as f64 * share) as usize];
    println!("{:.4} {:.4} {:.4}", at(0.5), at(0.0), at(0.9));
    Ok(())
}

/// Raw little-endian numbers.
fn read(path: &Path) -> Result<Vec<f64>, Failure> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (numbers, _) = bytes.as_chunks::<8>();
    Ok(numbers.iter().map(|b| f64::from_le_bytes(*b)).collect())
}

/// From a row a draw to a column a latent.
fn in_columns(numbers: &[f64], columns_len: usize, draws_len: usize) -> Batch {
    let mut batch = Batch::zeros(columns_len, draws_len);
    for (s, row) in numbers.chunks_exact(columns_len).enumerate() {
        for (i, x) in row.iter().enumerate() {
            batch.set(i, s, *x);
        }
    }
    batch
}

/// The largest difference over the largest number.
fn difference(ours: &[f64], theirs: &[f64]) -> f64 {
    let largest = theirs.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    ours.iter().zip(theirs).fold(0.0, |a: f64, (x, y)| if x == y { a } else { a.max((x - y).abs()) }) / largest
}

/// mu[k] ~ N(0, 10²), sigma ~ Exp(1), beta[k] ~ N(mu[k], sigma²), y[i] ~ Bernoulli(logistic(x[i, ] · beta)).
fn regression(x: &[f64], y: &[f64], columns: usize) -> Result<GraphModel, Failure> {
    let mut g = GraphBuilder::new();
    let (zero, one, weak, two) = (g.constant(0.0), g.constant(1.0), g.constant(0.01), g.constant(2.0));
    let latents = |g: &mut GraphBuilder, name: &str, law: &dyn Fn(usize) -> Distribution| -> Result<Vec<Expr>, Failure> {
        (0..columns).map(|k| Ok(g.stochastic(&format!("{name}[{}]", k + 1), law(k), None, None)?)).collect()
    };
    let mu = latents(&mut g, "mu", &|_| Distribution::Normal { mean: zero, precision: weak })?;
    let sigma = g.stochastic("sigma", Distribution::Exponential { rate: one }, None, None)?;
    let square = g.call(Function::Power, &[sigma, two]);
    let precision = g.call(Function::Divide, &[one, square]);
    let beta = latents(&mut g, "beta", &|k| Distribution::Normal { mean: mu[k], precision })?;
    for (i, (row, y)) in x.chunks_exact(columns).zip(y).enumerate() {
        let row: Vec<Expr> = row.iter().map(|x| g.constant(*x)).collect();
        let eta = g.inner_product(&row, &beta);
        let p = g.call(Function::InverseLogit, &[eta]);
        g.stochastic(&format!("y[{}]", i + 1), Distribution::Bernoulli { p }, None, Some(*y))?;
    }
    Ok(g.build()?.model()?)
}
