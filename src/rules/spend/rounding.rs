//! Rounding at the edge: parts are rounded so that they add up to the rounded whole.

use rust_decimal::{Decimal, RoundingStrategy};

use super::Exact;

/// Decimal places of `--json`.
pub const PLACES: u32 = 6;

/// Rounds parts of a whole that is rounded already: each down, and the largest remainders up, until they add
/// up to it. With parts that add up to the whole before rounding no part is off by a full unit.
pub fn share(parts: &[Exact], whole: Decimal, places: u32) -> Vec<Decimal> {
    let unit = Decimal::new(1, places);
    let exact: Vec<Decimal> = parts.iter().map(|part| part.amount()).collect();
    let mut rounded: Vec<Decimal> =
        exact.iter().map(|part| (part / unit).floor() * unit).map(|part| part.round_dp(places)).collect();
    let missing = whole - rounded.iter().sum::<Decimal>();
    let steps = (missing / unit).round();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(exact[at] - rounded[at]), at));
    let mut left = steps;
    for at in order.into_iter().cycle().take(parts.len() * 2) {
        if left <= Decimal::ZERO {
            break;
        }
        rounded[at] += unit;
        left -= Decimal::ONE;
    }
    rounded
}

/// Whether parts that are rounded each for itself, as people do, come to their rounded sum.
pub fn adds_up(parts: &[Exact], places: u32) -> bool {
    let rounded = |amount: Decimal| amount.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero);
    let whole = rounded(parts.iter().copied().sum::<Exact>().amount());
    parts.iter().map(|part| rounded(part.amount())).sum::<Decimal>() == whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Exact {
        Exact::of(text.parse().unwrap())
    }

    /// COST-16: 0.333 three times is 0.999, and 1.00 to the cent.
    #[test]
    fn rounded_parts_add_up_to_the_rounded_whole() {
        let parts = [exact("0.333"), exact("0.333"), exact("0.333")];
        let whole = parts.iter().copied().sum::<Exact>().amount().round_dp(2);
        let shares: Vec<String> = share(&parts, whole, 2).iter().map(ToString::to_string).collect();
        assert_eq!((whole.to_string().as_str(), shares), ("1.00", vec!["0.34".into(), "0.33".into(), "0.33".into()]));
    }

    /// COST-16: three rows of 0.33 under a total of 1.00.
    #[test]
    fn rows_that_do_not_come_to_their_total_are_known() {
        let rows = |amounts: &[&str]| amounts.iter().map(|text| exact(text)).collect::<Vec<_>>();
        assert!(!adds_up(&rows(&["0.333", "0.333", "0.333"]), 2));
        assert!(adds_up(&rows(&["0.33", "0.33", "0.34"]), 2));
        assert!(adds_up(&[], 2));
    }

    proptest! {
        #[test]
        fn parts_always_add_up_and_none_is_off_by_a_unit(picos in prop::collection::vec(-9_000_000_000_000_000i64..9_000_000_000_000_000, 0..30)) {
            let parts: Vec<Exact> = picos.iter().map(|picos| Exact::of(Decimal::new(*picos, 12)) + Exact::from_parts(0, 17)).collect();
            let whole = parts.iter().copied().sum::<Exact>().amount().round_dp(PLACES);
            let shares = share(&parts, whole, PLACES);
            prop_assert_eq!(shares.iter().sum::<Decimal>(), whole);
            for (part, share) in parts.iter().zip(&shares) {
                prop_assert!((part.amount() - share).abs() < Decimal::new(11, PLACES + 1), "{} {}", part.amount(), share);
            }
        }
    }
}
