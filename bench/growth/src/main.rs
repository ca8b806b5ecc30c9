//! One gradient step over 10² to 10⁵ latents for each method of the paper's first table: time, peak memory, and the exponents
//! with which they grow.

mod method;
// The command's own counters: what is compared there is counted here.
#[path = "../../../crates/cli/src/memory.rs"]
mod memory;

use hyperprior_bench_scaling::{Stepper, exponent};
use memory::Meter;
use method::Method;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// Steps are timed until there are this many and they have taken this long.
const STEPS_MIN: usize = 7;
const TIME_MIN: Duration = Duration::from_millis(700);
/// The exponents are fitted to the largest sizes: below, what does not grow outweighs what does.
const FITTED: usize = 3;

/// One method at one size.
struct Measured {
    d: f64,
    seconds: f64,
    bytes: f64,
}

fn main() -> ExitCode {
    println!("| method | the paper's O(·) | d | ms a step | peak memory | exponent of time | of memory |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for method in Method::ALL {
        let mut points = Vec::new();
        for d in SIZES.into_iter().filter(|d| *d <= method.largest()) {
            match measure(method, d) {
                Ok(point) => points.push(point),
                Err(error) => {
                    eprintln!("{} at d = {d}: {error}", method.name());
                    return ExitCode::FAILURE;
                }
            }
        }
        let fitted = &points[points.len().saturating_sub(FITTED)..];
        let time: Vec<(f64, f64)> = fitted.iter().map(|p| (p.d, p.seconds)).collect();
        let memory: Vec<(f64, f64)> = fitted.iter().map(|p| (p.d, p.bytes)).collect();
        for (row, point) in points.iter().enumerate() {
            let is_last = row + 1 == points.len();
            let slope = |of: &[(f64, f64)]| if is_last { format!("{:.2}", exponent(of)) } else { String::new() };
            let (name, cost) = if row == 0 { (method.name(), method.cost()) } else { ("", "") };
            let (ms, bytes) = (1e3 * point.seconds, memory::describe(point.bytes as usize));
            println!("| {name} | {cost} | {} | {ms:.3} | {bytes} | {} | {} |", point.d, slope(&time), slope(&memory));
        }
    }
    ExitCode::SUCCESS
}

/// The median time of a step, and the most memory that the parameters, their gradients and the working memory took.
fn measure(method: Method, d: usize) -> hyperprior::Result<Measured> {
    let meter = Meter::start();
    let mut stepper: Stepper = method.stepper(d)?;
    // The first step makes the working memory, the second shows that it is enough.
    for _ in 0..2 {
        black_box(stepper.step()?);
    }
    let bytes = meter.peak_bytes() as f64;
    let mut seconds = Vec::new();
    let began = Instant::now();
    while seconds.len() < STEPS_MIN || began.elapsed() < TIME_MIN {
        let start = Instant::now();
        black_box(stepper.step()?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(Measured { d: d as f64, seconds: seconds[seconds.len() / 2], bytes })
}
