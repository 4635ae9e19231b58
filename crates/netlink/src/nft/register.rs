//! The registers that expressions hand data through.

/// One of the 16 registers of four bytes that a rule works with.
///
/// Longer values take as many registers as they need, from the given one on. The kernel numbers
/// them twice: `NFT_REG32_00`.. in units of four bytes, `NFT_REG_1`.. in units of sixteen; this
/// is the first numbering, and the second is understood when reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u8);

/// `NFT_REG32_00`
const FIRST: u32 = 8;
/// `NFT_REG_1`; `NFT_REG_VERDICT` is 0.
const FIRST_WIDE: u32 = 1;
/// Small registers in one of the wide ones.
const SMALL_PER_WIDE: u32 = 4;

impl Register {
    /// How many there are.
    pub const COUNT: u8 = 16;
    /// The first one.
    pub const R0: Self = Self(0);

    /// The register with this number, 0 to 15.
    pub fn new(index: u8) -> Option<Self> {
        (index < Self::COUNT).then_some(Self(index))
    }

    /// Its number, 0 to 15.
    pub fn index(self) -> u8 {
        self.0
    }

    /// The register behind a value of so many bytes that starts in this one, or `None` when the
    /// value reaches the end of the registers.
    pub fn after(self, bytes: u32) -> Option<Self> {
        let used = u8::try_from(bytes.div_ceil(4)).ok()?;
        Self::new(self.0.checked_add(used)?)
    }

    pub(super) fn number(self) -> u32 {
        FIRST + u32::from(self.0)
    }

    pub(super) fn from_number(number: u32) -> Option<Self> {
        let index = match number {
            FIRST_WIDE..=4 => (number - FIRST_WIDE) * SMALL_PER_WIDE,
            FIRST..=23 => number - FIRST,
            _ => return None,
        };
        Self::new(u8::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numberings_name_the_same_registers() {
        assert_eq!(Register::from_number(1), Some(Register::R0));
        assert_eq!(Register::from_number(2), Register::new(4));
        assert_eq!(Register::from_number(9), Register::new(1));
        assert_eq!(Register::from_number(0), None);
        assert_eq!(Register::from_number(24), None);
        for index in 0..Register::COUNT {
            let register = Register::new(index).unwrap();
            assert_eq!(Register::from_number(register.number()), Some(register));
        }
    }

    #[test]
    fn values_end_where_the_registers_end() {
        assert_eq!(Register::R0.after(2), Register::new(1));
        assert_eq!(Register::R0.after(16), Register::new(4));
        assert_eq!(Register::R0.after(64), None);
        assert_eq!(Register::R0.after(u32::MAX), None);
    }
}
