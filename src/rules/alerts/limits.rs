//! From when on something is worth an alert.

use jiff::SignedDuration;
use jiff::civil::Time;
use providers::money::Rate;

/// What the config says about alerts. A time of `None` switches that alert off.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The whole fleet's burn, above which it is told.
    pub burn: Option<Rate>,
    /// A balance that lasts no longer is told.
    pub runway: Option<SignedDuration>,
    /// When somebody is there to act.
    pub awake: Option<Awake>,
    /// An instance that does nothing for so long.
    pub idle: Option<SignedDuration>,
    /// An instance that is stopped and charged for so long.
    pub stopped: Option<SignedDuration>,
    /// A storage item that nothing uses for so long.
    pub unattached: Option<SignedDuration>,
    /// A term or a resource that ends within so long.
    pub ending: Option<SignedDuration>,
    /// An account that does not answer for so long.
    pub unreachable: Option<SignedDuration>,
    /// The terminal's bell with each popup.
    pub bell: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let hours = |hours| Some(SignedDuration::from_hours(hours));
        Limits {
            burn: None,
            runway: hours(12),
            awake: None,
            idle: hours(1),
            stopped: hours(24),
            unattached: hours(24),
            ending: hours(24),
            unreachable: Some(SignedDuration::from_mins(10)),
            bell: false,
        }
    }
}

/// The time of day at which somebody is awake; the end may lie after midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awake {
    pub from: Time,
    pub to: Time,
}
