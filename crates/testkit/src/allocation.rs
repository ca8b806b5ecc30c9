//! A count of heap allocations, by group of threads, so that concurrent tests do not count each other's.
//!
//! A test binary that counts has
//!
//! ```
//! use hyperprior_testkit::allocation::{self, Counting};
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! allocation::join(3);
//! let before = allocation::count(3);
//! drop(std::hint::black_box(vec![1.0; 8]));
//! assert_eq!(allocation::count(3) - before, 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of groups: more than a test binary creates thread pools, so that no two share one.
pub const GROUPS: usize = 1024;

static COUNTS: [AtomicU64; GROUPS] = [const { AtomicU64::new(0) }; GROUPS];

thread_local! {
    /// No destructor and a constant initial value, so that reading it never allocates.
    static GROUP: Cell<Option<usize>> = const { Cell::new(None) };
}

/// From now on this thread's allocations count for `group`.
///
/// # Panics
/// If there is no such group.
pub fn join(group: usize) {
    assert!(group < GROUPS, "groups are numbered 0 to {}", GROUPS - 1);
    GROUP.set(Some(group));
}

/// How many times the threads of `group` have allocated or reallocated memory.
pub fn count(group: usize) -> u64 {
    COUNTS[group].load(Ordering::SeqCst)
}

fn note() {
    // A thread that is being torn down belongs to no group.
    if let Ok(Some(group)) = GROUP.try_with(Cell::get) {
        COUNTS[group].fetch_add(1, Ordering::SeqCst);
    }
}

/// The system's allocator with a counter in front.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

#[allow(unsafe_code, reason = "a global allocator requires it; every call is forwarded unchanged")]
// SAFETY: every method passes its arguments to `System`, which meets the contract; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise about `layout` is the one `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: `pointer` came from `System` through `alloc` above; the rest is the caller's promise.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
