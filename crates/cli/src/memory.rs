//! Peak memory of a computation: the system's allocator with two counters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes in use, and their maximum since the last meter started.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts the bytes that this process allocates. Use one at a time: a second one resets the peak of the first.
#[derive(Debug)]
pub struct Meter {
    before: usize,
}

impl Meter {
    /// Starts counting.
    pub fn start() -> Self {
        let before = IN_USE.load(Relaxed);
        PEAK.store(before, Relaxed);
        Self { before }
    }

    /// The largest number of bytes in use since the start, minus those in use at the start.
    pub fn peak_bytes(&self) -> usize {
        PEAK.load(Relaxed).saturating_sub(self.before)
    }
}

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

fn grow(bytes: usize) {
    let now = IN_USE.fetch_add(bytes, Relaxed) + bytes;
    // A new maximum is rare, and a load is cheaper than an exchange.
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
}

fn shrink(bytes: usize) {
    IN_USE.fetch_sub(bytes, Relaxed);
}

#[allow(unsafe_code, reason = "a global allocator needs it; every call is passed on unchanged")]
// SAFETY: every method passes its arguments to `System`, which meets the contract; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller guarantees for `layout` what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        grow(new_size);
        shrink(layout.size());
        // SAFETY: `pointer` came from `System` through `alloc` above; the caller guarantees the rest.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes in readable units.
pub fn describe(bytes: usize) -> String {
    match bytes as f64 {
        b if b < 1024.0 => format!("{b} B"),
        b if b < 1024.0 * 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b => format!("{:.1} MiB", b / (1024.0 * 1024.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, describe};

    /// Catches a peak that forgets freed memory, and one that counts memory in use before the start. The margin is for other tests
    /// of this binary that allocate at the same time.
    #[test]
    fn the_peak_includes_freed_memory() {
        const LEN: usize = 64 << 20;
        let held = std::hint::black_box(vec![1_u8; LEN]);
        let meter = Meter::start();
        drop(std::hint::black_box(vec![1_u8; LEN]));
        assert!((LEN..LEN + LEN / 2).contains(&meter.peak_bytes()), "{}", meter.peak_bytes());
        drop(held);
    }

    #[test]
    fn bytes_are_written_in_units() {
        assert_eq!([512, 1536, 3 << 20].map(describe), ["512 B", "1.5 KiB", "3.0 MiB"]);
    }
}
