//! One step of planar flow 2 and inverse flow 10 over many posteriors, through the product's public API.
//!
//! For each of 256 posteriors over 145 counts, with 8 draws: mean_s \[log r(λ | z) − log q(λ) + g·λ\] and its gradient along
//! every θ and φ. Reads what `inputs.py` wrote; writes the value, the gradients and the time of each step beside it.
//!
//! `flow single|double FOLDER STEPS THREADS`

mod double;
mod files;
mod job;
mod single;

use job::{Job, Shape};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const SHAPE: Shape = Shape { posteriors_len: 256, draws_len: 8, latents_len: 145, flow_len: 2, inverse_len: 10 };

/// Steps taken before the clock counts: the first round allocates.
const WARM_UP: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [precision, folder, steps, threads] = &arguments[..] else {
        return Err("usage: flow single|double FOLDER STEPS THREADS".into());
    };
    let (folder, steps, threads) = (Path::new(folder), steps.parse::<usize>()?.max(1), threads.parse()?);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut job: Box<dyn Job> = match precision.as_str() {
        "single" => Box::new(single::Single::read(folder, SHAPE, threads)?),
        "double" => Box::new(double::Double::read(folder, SHAPE, threads)?),
        other => return Err(format!("{other} is neither single nor double").into()),
    };
    pool.install(|| (0..WARM_UP).for_each(|_| job.step()));
    files::write(&folder.join("hyperprior_value.f64"), &[job.value()])?;
    let [d_theta, d_phi] = job.gradients();
    files::write(&folder.join("hyperprior_theta.f64"), &d_theta)?;
    files::write(&folder.join("hyperprior_phi.f64"), &d_phi)?;
    let mut milliseconds = Vec::with_capacity(steps);
    pool.install(|| {
        for _ in 0..steps {
            let start = Instant::now();
            job.step();
            milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        }
    });
    files::write(&folder.join("hyperprior_ms.f64"), &milliseconds)?;
    milliseconds.sort_by(f64::total_cmp);
    let quantile = |p: f64| milliseconds[((steps - 1) as f64 * p).round() as usize];
    println!(
        "hyperprior in {precision} precision, {threads} threads: median {:.3} ms, min {:.3}, p90 {:.3} over {steps} steps",
        quantile(0.5),
        quantile(0.0),
        quantile(0.9)
    );
    Ok(())
}
