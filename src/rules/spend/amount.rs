//! Exact amounts: rate × milliseconds in wide integers, divided once, at the edge.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use jiff::{SignedDuration, Timestamp};
use providers::money::Rate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

const MS_PER_HOUR: i128 = 3_600_000;
/// So much is 1e-6 of a currency's unit.
const MICRO: i128 = 1_000_000 * MS_PER_HOUR;
/// Decimal places of a rate's smallest unit.
const PLACES: u32 = 12;

/// An amount of some currency, in 1e-12 of its unit an hour times milliseconds: no rate over no time is
/// ever rounded in it. Holds forty times the wealth of the world in any currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Exact(i128);

impl Exact {
    pub const ZERO: Exact = Exact(0);
    /// So many of the smallest parts are a millionth of the currency's unit.
    pub const MICRO_PARTS: i64 = MICRO as i64;

    /// What a rate comes to from one time to another, in whole milliseconds; nothing when they are reversed.
    pub fn over(rate: Rate, from: Timestamp, to: Timestamp) -> Self {
        let ms = to.as_millisecond() - from.as_millisecond();
        Exact(i128::from(rate.picos()) * i128::from(ms.max(0)))
    }

    /// What a rate of so many units of 1e-12 an hour comes to in so many milliseconds.
    pub fn of_picos(picos: i128, ms: i64) -> Self {
        Exact(picos.saturating_mul(i128::from(ms)))
    }

    /// From an amount of money, rounded to 1e-12 of the unit (half to even). Saturates far beyond any bill.
    pub fn of(amount: Decimal) -> Self {
        let rounded = amount.round_dp(PLACES);
        let scale = 10i128.pow(PLACES - rounded.scale());
        Exact(rounded.mantissa().saturating_mul(scale).saturating_mul(MS_PER_HOUR))
    }

    /// Whole millionths of the currency's unit, and what is left of the next one ([`Exact::MICRO_PARTS`] make
    /// one). Saturates beyond 9 million million units, far beyond any bill in any currency.
    pub fn parts(self) -> (i64, i64) {
        let (micros, rest) = (self.0.div_euclid(MICRO), self.0.rem_euclid(MICRO));
        (i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX }), rest as i64)
    }

    /// Puts [`Exact::parts`] together again.
    pub fn from_parts(micros: i64, rest: i64) -> Self {
        Exact(i128::from(micros) * MICRO + i128::from(rest))
    }

    /// The part of it that falls on the time up to `at`, spread evenly from `from` to `to`. Parts that follow
    /// one another add up to the whole.
    pub fn until(self, at: Timestamp, from: Timestamp, to: Timestamp) -> Self {
        let whole = i128::from(to.as_millisecond() - from.as_millisecond());
        let part = i128::from(at.as_millisecond() - from.as_millisecond());
        match () {
            () if part <= 0 && whole > 0 => Exact::ZERO,
            () if part >= whole => self,
            // Quotient and remainder apart: the product of both could be too large.
            () => Exact(self.0.div_euclid(whole) * part + self.0.rem_euclid(whole) * part / whole),
        }
    }

    /// `part ÷ whole` of it, rounded towards zero; all of it when the part is the whole. Both are positive.
    pub fn portion(self, part: Exact, whole: Exact) -> Self {
        if part >= whole {
            return self;
        }
        if self < Exact::ZERO {
            return -(-self).portion(part, whole);
        }
        // Long division in base 2: the product of two amounts does not fit any integer.
        let (mut quotient, mut rest) = (0i128, 0i128);
        for bit in (0..i128::BITS - 1).rev() {
            rest <<= 1;
            if self.0 >> bit & 1 == 1 {
                rest += part.0;
            }
            quotient <<= 1;
            while rest >= whole.0 {
                rest -= whole.0;
                quotient += 1;
            }
        }
        Exact(quotient)
    }

    /// As money, to 1e-12 of the unit (half to even). An amount beyond what a decimal holds stops there.
    pub fn amount(self) -> Decimal {
        let (picos, rest) = (self.0.div_euclid(MS_PER_HOUR), self.0.rem_euclid(MS_PER_HOUR));
        let up = rest * 2 > MS_PER_HOUR || (rest * 2 == MS_PER_HOUR && picos % 2 != 0);
        let picos = picos + i128::from(up);
        Decimal::try_from_i128_with_scale(picos, PLACES)
            .unwrap_or(if picos < 0 { Decimal::MIN } else { Decimal::MAX })
            .normalize()
    }

    /// How long it lasts at a rate: the first whole millisecond by which it is spent. `None` for ever.
    pub fn lasts(self, rate: Rate) -> Option<SignedDuration> {
        let picos = i128::from(rate.picos());
        let ms = (self.0.max(0) + picos.max(1) - 1) / picos.max(1);
        (picos > 0).then(|| i64::try_from(ms).ok().map(SignedDuration::from_millis))?
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Exact {
    type Output = Exact;
    fn add(self, other: Exact) -> Exact {
        Exact(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Exact {
    fn add_assign(&mut self, other: Exact) {
        *self = *self + other;
    }
}

impl Neg for Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        Exact(self.0.saturating_neg())
    }
}

impl Sub for Exact {
    type Output = Exact;
    fn sub(self, other: Exact) -> Exact {
        Exact(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Exact {
    fn sub_assign(&mut self, other: Exact) {
        *self = *self - other;
    }
}

impl Sum for Exact {
    fn sum<I: Iterator<Item = Exact>>(amounts: I) -> Exact {
        amounts.fold(Exact::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use providers::money::Currency;

    use super::*;

    fn time(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn dec(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    /// COST-16: a hundred thousand small steps do not drift.
    #[test]
    fn small_steps_do_not_drift() {
        let step = Exact::of(dec("0.0001"));
        let sum: Exact = std::iter::repeat_n(step, 100_000).sum();
        assert_eq!(sum.amount(), dec("10"));
    }

    #[test]
    fn a_rate_over_a_reversed_time_is_nothing() {
        let rate = Rate::per_hour(dec("3.6"), Currency::USD).unwrap();
        assert_eq!(Exact::over(rate, time(10), time(5)), Exact::ZERO);
        assert_eq!(Exact::over(rate, time(0), time(1000)).amount(), dec("0.001"));
    }

    #[test]
    fn a_lump_of_one_moment_falls_on_it_wholly() {
        let amount = Exact::of(dec("1.25"));
        assert_eq!(amount.until(time(5), time(5), time(5)), amount);
    }

    proptest! {
        #[test]
        fn splitting_a_time_never_changes_its_sum(picos in 0i64..9_000_000_000_000_000, cuts in prop::collection::vec(0i64..1 << 41, 0..9)) {
            let rate = Rate::from_picos(picos, Currency::USD);
            let mut cuts = cuts;
            cuts.extend([0, 1 << 41]);
            cuts.sort_unstable();
            let parts: Exact = cuts.windows(2).map(|cut| Exact::over(rate, time(cut[0]), time(cut[1]))).sum();
            prop_assert_eq!(parts, Exact::over(rate, time(0), time(1 << 41)));
        }

        #[test]
        fn an_amount_spread_over_a_time_adds_up(mantissa in any::<i64>(), cuts in prop::collection::vec(0i64..1 << 36, 0..9)) {
            let whole = Exact::of(Decimal::new(mantissa, 9));
            let (from, to) = (time(0), time(1 << 36));
            let mut cuts = cuts;
            cuts.extend([0, 1 << 36]);
            cuts.sort_unstable();
            let until = |at: i64| whole.until(time(at), from, to);
            let parts: Exact = cuts.windows(2).map(|cut| until(cut[1]) - until(cut[0])).sum();
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn stored_parts_come_back(micros in any::<i64>(), rest in 0..Exact::MICRO_PARTS) {
            prop_assert_eq!(Exact::from_parts(micros, rest).parts(), (micros, rest));
        }
    }
}
