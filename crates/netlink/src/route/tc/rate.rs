//! Rates and bucket sizes, in the units of `linux/pkt_sched.h`.

use crate::attribute::{Attributes, read_u32};
use crate::error::Malformed;
use crate::message::Body;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
/// `TC_LINKLAYER_ETHERNET`: the kernel computes transmission times itself and
/// wants no table of them.
const ETHERNET: u8 = 1;
/// `sizeof(struct tc_ratespec)`.
const RATESPEC: usize = 12;

/// How long `bytes` take at a rate, in the scheduler's ticks of 64 ns (as
/// `/proc/net/psched` says on every kernel since 2.6.31), at most 2^32 - 1.
///
/// ```
/// use podwire_netlink::route::tc::ticks;
///
/// // 1 MB at 1 MB/s: a second.
/// assert_eq!(ticks(1_000_000, 1_000_000), 15_625_000);
/// ```
#[must_use]
pub fn ticks(bytes: u64, bytes_per_second: u64) -> u32 {
    let nanoseconds =
        u128::from(bytes).saturating_mul(1_000_000_000) / u128::from(bytes_per_second.max(1));
    u32::try_from(nanoseconds / 64).unwrap_or(u32::MAX)
}

/// `struct tc_ratespec`.
pub(crate) fn ratespec(bytes_per_second: u64) -> [u8; RATESPEC] {
    let mut spec = [0; RATESPEC];
    spec[1] = ETHERNET;
    // Higher rates go into an attribute of 64 bits.
    let rate = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    spec[8..].copy_from_slice(&rate.to_ne_bytes());
    spec
}

/// Settings of a token bucket filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Rate, in bytes a second.
    pub rate: u64,
    /// Bytes that may wait.
    pub limit: u32,
    /// Depth of the bucket, as the time it takes to fill, in ticks of 64 ns:
    /// see [`ticks`]. The kernel cuts it at 4.29 s.
    pub buffer: u32,
}

impl Tbf {
    /// A bucket of `burst` bytes that is filled at `rate` bytes a second;
    /// packets wait up to `latency` microseconds more than the bucket takes.
    #[must_use]
    pub fn new(rate: u64, burst: u32, latency: u32) -> Self {
        let waiting = u128::from(rate) * u128::from(latency) / 1_000_000;
        let limit = u32::try_from(waiting.saturating_add(u128::from(burst))).unwrap_or(u32::MAX);
        Self { rate, limit, buffer: ticks(u64::from(burst), rate) }
    }

    pub(crate) fn encode(&self, options: &mut Body<'_>) {
        // struct tc_tbf_qopt: rate, peak rate, limit, buffer, mtu.
        let mut parameters = [0; 2 * RATESPEC + 12];
        parameters[..RATESPEC].copy_from_slice(&ratespec(self.rate));
        parameters[24..28].copy_from_slice(&self.limit.to_ne_bytes());
        parameters[28..32].copy_from_slice(&self.buffer.to_ne_bytes());
        if self.rate == 0 {
            options.fail("a rate of 0");
        }
        options.attribute(TCA_TBF_PARMS, &parameters);
        if self.rate > u64::from(u32::MAX) {
            options.u64(TCA_TBF_RATE64, self.rate);
        }
    }

    pub(crate) fn decode(options: Attributes<'_>) -> Result<Self, Malformed> {
        let (mut settings, mut rate64) = (None, None);
        for attribute in options {
            let attribute = attribute?;
            match attribute.kind {
                TCA_TBF_PARMS => {
                    let parameters = attribute.array::<36>()?;
                    let field = |offset| read_u32(&parameters, offset).unwrap_or(0);
                    let rate = u64::from(field(8));
                    settings = Some(Self { rate, limit: field(24), buffer: field(28) });
                }
                TCA_TBF_RATE64 => rate64 = Some(attribute.u64()?),
                _ => {}
            }
        }
        let mut settings = settings.ok_or(Malformed("a tbf without parameters"))?;
        settings.rate = rate64.unwrap_or(settings.rate);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_neither_overflow_nor_divide_by_zero() {
        assert_eq!(ticks(u64::MAX, 1), u32::MAX);
        assert_eq!(ticks(1, 0), 15_625_000);
        assert_eq!(ticks(0, u64::MAX), 0);
    }

    #[test]
    fn the_limit_is_the_burst_and_what_the_latency_allows() {
        let tbf = Tbf::new(1_000_000, 5_000, 25_000);
        assert_eq!((tbf.limit, tbf.buffer), (30_000, 78_125));
        assert_eq!(Tbf::new(u64::MAX, u32::MAX, u32::MAX).limit, u32::MAX);
    }
}
