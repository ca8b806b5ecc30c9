//! Processor time, which other programs on the machine hardly change.

use std::time::Instant;

/// Ticks of the clock in a second in what Linux says of a process.
const TICKS: f64 = 100.0;

/// Measures what a piece of code takes.
#[derive(Debug)]
pub struct Clock {
    began: Instant,
    processor: Option<f64>,
}

impl Clock {
    /// Begins.
    pub fn start() -> Self {
        Self { began: Instant::now(), processor: processor_seconds() }
    }

    /// The seconds that all threads of this process have computed since, in steps of a hundredth; where the system does not say that, the
    /// seconds that have passed.
    pub fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(before), Some(now)) => now - before,
            _ => self.began.elapsed().as_secs_f64(),
        }
    }
}

/// User and system time of this process.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let clock = Clock::start();
        let mut sum = 0.0_f64;
        while clock.began.elapsed().as_secs_f64() < 0.2 {
            sum += clock.began.elapsed().as_secs_f64().sqrt();
        }
        let took = clock.seconds();
        assert!(sum > 0.0 && took > 0.0, "{took}");
    }
}
