//! How somebody set their screen up, in a file of the state folder. It is a convenience: what cannot be read
//! is as if it were not there, and what cannot be written is lost without a word.

use std::io::{self, Write};
use std::path::Path;

use crate::app::preferences::Preferences;

/// The file's name in the state folder.
pub const FILE: &str = "screen.toml";

/// What was kept; the standard when there is nothing that can be read.
pub fn load(file: &Path) -> Preferences {
    std::fs::read_to_string(file).ok().and_then(|text| toml::from_str(&text).ok()).unwrap_or_default()
}

/// Writes it as a whole or not at all.
pub fn save(file: &Path, preferences: &Preferences) -> io::Result<()> {
    let text = toml::to_string(preferences).map_err(io::Error::other)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    // Readable for its owner alone, as everything in that folder.
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::columns::{ColumnChoice, Optional};
    use crate::app::message::{GroupName, SortName};
    use crate::rules::spend::By;

    #[test]
    fn what_was_kept_comes_back_and_nonsense_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        assert_eq!(load(&file), Preferences::default());
        let preferences = Preferences {
            details: false,
            sort: SortName::Cost,
            reversed: true,
            group: Some(GroupName::Project),
            spend_by: By::Day,
            columns: ColumnChoice { off: vec![Optional::Region], ..ColumnChoice::default() },
        };
        save(&file, &preferences).unwrap();
        assert_eq!(load(&file), preferences);
        for nonsense in ["", "sort = 3", "columns = [", "details = false\nwhat = 1"] {
            std::fs::write(&file, nonsense).unwrap();
            let details = nonsense != "details = false\nwhat = 1";
            assert_eq!(load(&file), Preferences { details, ..Preferences::default() }, "{nonsense}");
        }
    }
}
