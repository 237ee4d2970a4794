//! How somebody set their screen up, kept between runs. Filters are not: a row that a forgotten filter hides
//! goes on costing.

use serde::{Deserialize, Serialize};

use super::columns::ColumnChoice;
use super::message::{GroupName, SortName};
use super::state::View;

/// What is kept. Anything that a later version does not know is left out by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Preferences {
    pub details: bool,
    pub sort: SortName,
    pub reversed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    pub columns: ColumnChoice,
}

impl Default for Preferences {
    fn default() -> Self {
        Preferences {
            details: true,
            sort: SortName::Attention,
            reversed: false,
            group: None,
            columns: ColumnChoice::default(),
        }
    }
}

impl Preferences {
    pub fn of(view: &View) -> Self {
        Preferences {
            details: view.details,
            sort: view.fleet.sort,
            reversed: view.fleet.reversed,
            group: view.fleet.group,
            columns: view.columns.clone(),
        }
    }

    /// Sets a screen up.
    pub fn apply(self, view: &mut View) {
        view.saved = self.clone();
        view.details = self.details;
        view.fleet.sort = self.sort;
        view.fleet.reversed = self.reversed;
        view.fleet.group = self.group;
        view.columns = self.columns.sane();
    }
}
