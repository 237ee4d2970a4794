//! A share of 0.0 to 1.0 in two bytes, or not known.

use serde::{Deserialize, Serialize};

/// In steps of a ten-thousandth.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u16>", into = "Option<u16>")]
pub struct Share(u16);

const STEPS: f64 = 10_000.0;
const UNKNOWN: u16 = u16::MAX;

impl Share {
    pub const UNKNOWN: Share = Share(UNKNOWN);

    /// What lies outside of 0.0 to 1.0 is taken for the nearer end; no number is not known.
    pub fn of(share: f64) -> Self {
        if share.is_nan() { Share::UNKNOWN } else { Share((share.clamp(0.0, 1.0) * STEPS).round() as u16) }
    }

    pub fn known(self) -> Option<f64> {
        (self.0 != UNKNOWN).then(|| f64::from(self.0) / STEPS)
    }

    pub fn is_known(self) -> bool {
        self.0 != UNKNOWN
    }

    /// The greater one of those that are known.
    pub fn highest(self, other: Self) -> Self {
        match (self.is_known(), other.is_known()) {
            (true, true) => Share(self.0.max(other.0)),
            (true, false) => self,
            _ => other,
        }
    }

    /// The smaller one of those that are known.
    pub fn lowest(self, other: Self) -> Self {
        // What is not known is the greatest number of all.
        Share(self.0.min(other.0))
    }

    /// As it is written in the ledger.
    pub fn bits(self) -> u16 {
        self.0
    }

    pub fn from_bits(bits: u16) -> Self {
        if f64::from(bits) <= STEPS { Share(bits) } else { Share::UNKNOWN }
    }
}

impl Default for Share {
    fn default() -> Self {
        Share::UNKNOWN
    }
}

impl From<Option<f64>> for Share {
    fn from(share: Option<f64>) -> Self {
        share.map_or(Share::UNKNOWN, Share::of)
    }
}

impl From<Option<u16>> for Share {
    fn from(bits: Option<u16>) -> Self {
        bits.map_or(Share::UNKNOWN, Share::from_bits)
    }
}

impl From<Share> for Option<u16> {
    fn from(share: Share) -> Self {
        share.is_known().then_some(share.0)
    }
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some(share) => write!(f, "{share}"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_no_number_and_never_wins() {
        let half = Share::of(0.5);
        assert_eq!(Share::of(f64::NAN), Share::UNKNOWN);
        assert_eq!(Share::UNKNOWN.known(), None);
        assert_eq!((half.highest(Share::UNKNOWN), Share::UNKNOWN.highest(half)), (half, half));
        assert_eq!((half.lowest(Share::UNKNOWN), Share::UNKNOWN.lowest(half)), (half, half));
        assert_eq!((half.highest(Share::of(0.2)), half.lowest(Share::of(0.2))), (half, Share::of(0.2)));
        assert_eq!((Share::of(7.0).known(), Share::of(-1.0).known()), (Some(1.0), Some(0.0)));
        assert_eq!(Share::from_bits(10_001), Share::UNKNOWN);
        for share in [half, Share::UNKNOWN] {
            assert_eq!(Share::from_bits(share.bits()), share);
        }
    }
}
