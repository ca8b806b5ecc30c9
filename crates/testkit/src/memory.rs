//! The bytes in use by the process, with an optional bound.
//!
//! A test binary that measures memory has
//!
//! ```
//! use hyperprior_testkit::memory::{self, Bounded};
//! #[global_allocator]
//! static ALLOCATOR: Bounded = Bounded;
//!
//! let before = memory::in_use();
//! let held = std::hint::black_box(vec![1_u8; 1 << 20]);
//! assert!(memory::in_use() - before >= 1 << 20);
//! drop(held);
//! assert!(memory::in_use() - before < 1 << 20);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

/// How many bytes the process has allocated and not freed.
pub fn in_use() -> usize {
    IN_USE.load(Relaxed)
}

/// From now on allocations beyond this total fail, which usually ends the process.
pub fn bound(bytes: usize) {
    BOUND.store(bytes, Relaxed);
}

/// The system's allocator, counted and bounded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounded;

/// Whether this many more bytes are allowed; if so, counts them.
fn take(bytes: usize) -> bool {
    let before = IN_USE.fetch_add(bytes, Relaxed);
    let is_given = before.checked_add(bytes).is_some_and(|now| now <= BOUND.load(Relaxed));
    if !is_given {
        IN_USE.fetch_sub(bytes, Relaxed);
    }
    is_given
}

/// Takes an allocation out of the count if the system refused it.
fn settle(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        IN_USE.fetch_sub(bytes, Relaxed);
    }
    pointer
}

#[allow(unsafe_code, reason = "a global allocator requires it; every call is forwarded unchanged")]
// SAFETY: every method passes its arguments to `System`, which meets the contract, or returns null, which an allocator may; the
// counters do not allocate.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about `layout` is the one `System` requires.
        settle(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        settle(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !take(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: `pointer` came from `System` through `alloc` above; the rest is the caller's promise.
        let moved = settle(unsafe { System.realloc(pointer, layout, new_size) }, new_size);
        if !moved.is_null() {
            IN_USE.fetch_sub(layout.size(), Relaxed);
        }
        moved
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
