//! One gradient step over 10³, 10⁴ and 10⁵ latents, on one thread and on all, and the exponent with which its time grows.

use criterion::{BenchmarkId, Criterion, Throughput};
use hyperprior_bench_scaling::{Stepper, exponent};
use rayon::ThreadPool;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const GOAL: f64 = 1.15;

fn main() -> ExitCode {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    let mut worst = f64::NEG_INFINITY;
    for (name, threads) in [("one thread", 1), ("default threads", 0)] {
        // 0 asks rayon for its default.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let points = run(&mut criterion, name, &pool);
        if points.len() == SIZES.len() {
            let found = exponent(&points);
            println!("{name}: exponent in d: {found:.2} (goal ≤ {GOAL})");
            worst = worst.max(found);
        }
    }
    criterion.final_summary();
    if worst > GOAL { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Each size that was measured, with the median time of a step.
fn run(criterion: &mut Criterion, name: &str, pool: &ThreadPool) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut group = criterion.benchmark_group(format!("gradient step, {name}"));
    for d in SIZES {
        let mut stepper = Stepper::new(d).expect("a model of at least one latent");
        let mut seconds = Vec::new();
        group.throughput(Throughput::Elements(d as u64));
        group.bench_function(BenchmarkId::from_parameter(d), |bencher| {
            bencher.iter_custom(|steps| {
                let elapsed = pool.install(|| {
                    let start = Instant::now();
                    for _ in 0..steps {
                        black_box(stepper.step().expect("finite draws"));
                    }
                    start.elapsed()
                });
                seconds.push(elapsed.as_secs_f64() / steps as f64);
                elapsed
            });
        });
        // Nothing was measured where a filter left this size out, and one step is a test run.
        if seconds.len() > 1 {
            seconds.sort_by(f64::total_cmp);
            points.push((d as f64, seconds[seconds.len() / 2]));
        }
    }
    group.finish();
    points
}
