//! STUB, to be replaced as a whole at the merge: what an alert says, in one line.

use jiff::tz::TimeZone;

use super::Language;
use crate::rules::alerts::Matter;

/// An alert in one line.
pub fn alert_line(matter: &Matter, language: Language, zone: &TimeZone) -> String {
    let _ = (language, zone);
    format!("{} {:?}", matter.kind().word(), matter.topic().about)
}
