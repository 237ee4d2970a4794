//! How somebody set their screen up, kept between runs. Filters are not: a row that a forgotten filter hides
//! goes on costing.

use serde::{Deserialize, Serialize};

use super::columns::ColumnChoice;
use super::message::{GroupName, SortName};
use super::state::View;
use crate::rules::spend::By;

/// What is kept. Anything that a later version does not know is left out by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Preferences {
    pub details: bool,
    pub sort: SortName,
    pub reversed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// What the Spend view groups by. Its days are not kept: one looks for this month first.
    pub spend_by: By,
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
            spend_by: By::default(),
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
            spend_by: view.spend.by,
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
        view.spend.by = self.spend_by;
    }
}
