//! Chance that can be repeated: a test prints its seed and takes it again.

/// A small generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A seed: from the environment variable if it is set, or a new one.
    #[track_caller]
    pub fn seed(variable: &str) -> u64 {
        match std::env::var(variable) {
            Ok(seed) => seed.parse().expect("a number"),
            Err(_) => u64::from_ne_bytes(podwire_sys::random::bytes().unwrap()),
        }
    }

    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of 0 to `limit`, which is left out.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// That many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number().to_le_bytes()[0]).collect()
    }
}
