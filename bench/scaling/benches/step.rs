//! One gradient step over 10³, 10⁴ and 10⁵ latents, on one thread and on all, and the exponent with which its time grows; then
//! over flows of 10, 40 and 160 layers.

use criterion::{BenchmarkId, Criterion, Throughput};
use hyperprior_bench_scaling::{Stepper, exponent};
use rayon::ThreadPool;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LENGTHS: [usize; 3] = [10, 40, 160];
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
        worst = worst.max(run(&mut criterion, &format!("{name}, d"), &pool, SIZES, Stepper::new));
        if threads == 1 {
            let flows = |length| Stepper::with_lengths(SIZES[0], length, length);
            worst = worst.max(run(&mut criterion, &format!("{name}, flow length"), &pool, LENGTHS, flows));
        }
    }
    criterion.final_summary();
    if worst > GOAL { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Measures a step at each size and prints the exponent with which its median time grows; −∞ where a filter left sizes out.
fn run(
    criterion: &mut Criterion,
    name: &str,
    pool: &ThreadPool,
    sizes: [usize; 3],
    stepper: impl Fn(usize) -> hyperprior::Result<Stepper>,
) -> f64 {
    let mut points = Vec::new();
    let mut group = criterion.benchmark_group(format!("gradient step, {name}"));
    for size in sizes {
        let mut stepper = stepper(size).expect("a model of at least one latent");
        let mut seconds = Vec::new();
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
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
            points.push((size as f64, seconds[seconds.len() / 2]));
        }
    }
    group.finish();
    if points.len() < sizes.len() {
        return f64::NEG_INFINITY;
    }
    let found = exponent(&points);
    println!("{name}: exponent {found:.2} (goal ≤ {GOAL})");
    found
}
