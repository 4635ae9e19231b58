//! Memory for programs that end in milliseconds.
//!
//! A general allocator asks the kernel for memory in small pieces and gives it
//! back: a quarter of the system calls of a plugin were that. Here blocks are cut
//! one after the other from a fixed region, whose untouched pages cost nothing,
//! and only the newest block is taken back. What doesn't fit any more, in a long
//! listing, comes from the general allocator.
//!
//! ```
//! use podwire_sys::arena::Arena;
//!
//! #[global_allocator]
//! static MEMORY: Arena = Arena::new();
//!
//! assert_eq!(vec![1; 10_000_000].len(), 10_000_000);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the region unless another size is said: several times what an ADD takes.
const USUAL: usize = 1 << 20;

/// A global allocator with a region of `SIZE` bytes. Make it a `static`: its memory is
/// a part of it, in pages that the kernel gives when they are first touched.
pub struct Arena<const SIZE: usize = USUAL> {
    region: UnsafeCell<MaybeUninit<[u8; SIZE]>>,
    /// Where the next block begins at the earliest.
    next: AtomicUsize,
    /// The end of what was ever handed out; behind it all bytes are zero.
    touched: AtomicUsize,
}

// SAFETY: blocks never overlap, since each is cut off by one atomic exchange of
// `next`; the region is reached only through blocks that were handed out.
unsafe impl<const SIZE: usize> Sync for Arena<SIZE> {}

impl<const SIZE: usize> Arena<SIZE> {
    /// An arena of which nothing is used.
    #[must_use]
    pub const fn new() -> Self {
        // Zeroes, not unset bytes, so that it lies where it takes no space in
        // the program's file, and so that `touched` is right.
        Self {
            region: UnsafeCell::new(MaybeUninit::zeroed()),
            next: AtomicUsize::new(0),
            touched: AtomicUsize::new(0),
        }
    }

    fn base(&self) -> *mut u8 {
        self.region.get().cast()
    }

    /// The offset of a block of ours; `None` for one of the general allocator.
    fn offset(&self, block: *mut u8) -> Option<usize> {
        block.addr().checked_sub(self.base().addr()).filter(|offset| *offset < SIZE)
    }

    /// Cuts a block off: its offset, and whether all of it is still zero.
    fn cut(&self, layout: Layout) -> Option<(usize, bool)> {
        let base = self.base().addr();
        let mut next = self.next.load(Ordering::Acquire);
        loop {
            let start = (base + next).checked_next_multiple_of(layout.align())? - base;
            let end = start.checked_add(layout.size()).filter(|end| *end <= SIZE)?;
            match self.next.compare_exchange_weak(next, end, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let touched = self.touched.fetch_max(end, Ordering::AcqRel);
                    return Some((start, touched <= start));
                }
                Err(found) => next = found,
            }
        }
    }

    /// Moves the end of the newest block; `false` if it isn't the newest.
    fn resize(&self, start: usize, old: usize, new: usize) -> bool {
        let Some(end) = start.checked_add(new).filter(|end| *end <= SIZE) else { return false };
        let moved =
            self.next.compare_exchange(start + old, end, Ordering::AcqRel, Ordering::Acquire);
        if moved.is_ok() {
            self.touched.fetch_max(end, Ordering::AcqRel);
        }
        moved.is_ok()
    }
}

impl<const SIZE: usize> Default for Arena<SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SIZE: usize> std::fmt::Debug for Arena<SIZE> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let used = self.next.load(Ordering::Relaxed);
        formatter.debug_struct("Arena").field("used", &used).finish_non_exhaustive()
    }
}

// Never inlined: there are thousands of callers, and pages of code cost more than
// calls.
//
// SAFETY: a block is either the general allocator's, which keeps the contract, or a
// part of the region of the size and alignment asked for that no other block has.
unsafe impl<const SIZE: usize> GlobalAlloc for Arena<SIZE> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.cut(layout) {
            // SAFETY: `cut` returns offsets within the region.
            Some((start, _)) => unsafe { self.base().add(start) },
            // SAFETY: the caller keeps the contract of `alloc`.
            None => unsafe { System.alloc(layout) },
        }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((start, is_zero)) = self.cut(layout) else {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: the block lies within the region and is nobody else's.
        unsafe {
            let block = self.base().add(start);
            if !is_zero {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.offset(block) {
            Some(start) => {
                // One that isn't the newest stays until the program ends.
                self.resize(start, layout.size(), 0);
            }
            // SAFETY: blocks from outside the region are the general allocator's.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(start) = self.offset(block) else {
            // SAFETY: blocks from outside the region are the general allocator's, and
            // the caller keeps the contract of `realloc`.
            return unsafe { System.realloc(block, layout, size) };
        };
        if self.resize(start, layout.size(), size) || size <= layout.size() {
            return block;
        }
        // SAFETY: the caller keeps the contract: `size` is not zero and doesn't overflow
        // when rounded up; both blocks are live and at least `layout.size()` long.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size());
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_are_aligned_and_apart() {
        static MEMORY: Arena = Arena::new();
        let arena = &MEMORY;
        let mut ends = Vec::new();
        for (size, align) in [(1, 1), (8, 8), (3, 1), (64, 64), (4096, 4096), (16, 2)] {
            // SAFETY: no size is zero.
            let block = unsafe { arena.alloc(layout(size, align)) }.addr();
            assert_eq!(block % align, 0);
            assert!(ends.iter().all(|end| block >= *end), "{ends:?} {block}");
            ends.push(block + size);
        }
    }

    #[test]
    fn the_newest_block_grows_in_place_and_comes_back() {
        static MEMORY: Arena = Arena::new();
        let arena = &MEMORY;
        // SAFETY: no size is zero; each block is used with its layout, and not after.
        unsafe {
            let first = arena.alloc(layout(8, 8));
            let second = arena.alloc(layout(8, 8));
            second.write_bytes(7, 8);
            assert_eq!(arena.realloc(second, layout(8, 8), 800), second);
            let moved = arena.realloc(first, layout(8, 8), 16);
            assert_ne!(moved, first);
            arena.dealloc(moved, layout(16, 8));
            arena.dealloc(second, layout(800, 8));
            assert_eq!(arena.alloc(layout(8, 8)), second);
        }
    }

    #[test]
    fn zeroed_memory_is_zero_though_it_was_used() {
        static MEMORY: Arena = Arena::new();
        let arena = &MEMORY;
        // SAFETY: no size is zero; the blocks are live while they are read.
        unsafe {
            let used = arena.alloc(layout(100, 1));
            used.write_bytes(9, 100);
            arena.dealloc(used, layout(100, 1));
            let block = arena.alloc_zeroed(layout(200, 1));
            assert_eq!(block, used);
            assert_eq!(std::slice::from_raw_parts(block, 200), [0; 200]);
        }
    }

    #[test]
    fn what_does_not_fit_comes_from_elsewhere() {
        static MEMORY: Arena = Arena::new();
        let arena = &MEMORY;
        let (half, whole) = (layout(USUAL / 2 + 1, 16), layout(USUAL * 2, 16));
        // SAFETY: no size is zero; each block is used with its layout, and not after.
        unsafe {
            let inside = arena.alloc(half);
            let outside = arena.alloc_zeroed(half);
            assert!(arena.offset(inside).is_some() && arena.offset(outside).is_none());
            inside.write_bytes(3, half.size());
            let grown = arena.realloc(inside, half, whole.size());
            assert_eq!((grown.read(), arena.offset(grown)), (3, None));
            arena.dealloc(grown, whole);
            arena.dealloc(outside, half);
        }
    }

    #[test]
    fn threads_get_blocks_of_their_own() {
        static MEMORY: Arena = Arena::new();
        let arena = &MEMORY;
        let work = |number: u8| {
            for size in 1..200 {
                // SAFETY: the size is not zero; the block is this thread's until freed.
                unsafe {
                    let block = arena.alloc(layout(size, 1));
                    block.write_bytes(number, size);
                    let all = std::slice::from_raw_parts(block, size);
                    assert!(all.iter().all(|byte| *byte == number));
                    arena.dealloc(block, layout(size, 1));
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || work(number));
            }
        });
    }
}
