//! Samples of one figure, and its line in the table.

use std::fmt;
use std::time::Duration;

/// Which of the samples is held against the limit.
#[derive(Clone, Copy)]
pub enum Judged {
    Median,
    P99,
    Worst,
}

/// Samples of one figure beside what it should stay under.
pub struct Measured {
    what: String,
    unit: &'static str,
    judged: Judged,
    limit: f64,
    /// False where no promise names this limit.
    promised: bool,
    samples: Vec<f64>,
}

impl Measured {
    pub fn new(what: impl Into<String>, unit: &'static str, judged: Judged, limit: f64, samples: Vec<f64>) -> Self {
        let mut samples = samples;
        samples.sort_by(f64::total_cmp);
        Measured { what: what.into(), unit, judged, limit, promised: true, samples }
    }

    /// Times against a limit in milliseconds.
    pub fn times(what: impl Into<String>, judged: Judged, limit: f64, samples: &[Duration]) -> Self {
        let samples = samples.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        Self::new(what, "ms", judged, limit, samples)
    }

    /// The limit is none of those that are promised.
    pub fn beside(self) -> Self {
        Measured { promised: false, ..self }
    }

    pub fn head() -> String {
        format!(
            "{:<52} {:>20} {:>9} {:>9} {:>9} {:>7}\n{}",
            "what",
            "limit",
            "median",
            "p99",
            "worst",
            "",
            "-".repeat(111)
        )
    }

    /// The sample below which a share of them lies, 0.0 to 1.0.
    fn quantile(&self, share: f64) -> f64 {
        let rank = (self.samples.len() as f64 * share).ceil() as usize;
        self.samples[rank.clamp(1, self.samples.len()) - 1]
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, share) = match self.judged {
            Judged::Median => ("median", 0.5),
            Judged::P99 => ("p99", 0.99),
            Judged::Worst => ("worst", 1.0),
        };
        let limit = format!("{word} < {} {}", self.limit, self.unit);
        let limit = if self.promised { limit } else { format!("({limit})") };
        let met = if self.quantile(share) < self.limit { "met" } else { "MISSED" };
        let [median, p99, worst] = [0.5, 0.99, 1.0].map(|share| format!("{:.2}", self.quantile(share)));
        write!(f, "{:<52} {limit:>20} {median:>9} {p99:>9} {worst:>9} {met:>7}", self.what)
    }
}
