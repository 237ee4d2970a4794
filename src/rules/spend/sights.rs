//! What the fleet knows, as the meter looks at it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use providers::model::{Identity, ResourceKind};

use super::{Charged, Entries, Look, Meter, Seen};
use crate::rules::fleet::Fleet;
use crate::rules::settings::Settings;

impl Meter {
    /// Takes in a list that the fleet took in at `now`. `changed` names the resources that may not be as at the
    /// look before; `None` when any may.
    pub fn look_at(
        &mut self,
        look: &Look,
        fleet: &Fleet,
        settings: &Settings,
        now: Timestamp,
        changed: Option<&BTreeSet<Identity>>,
    ) -> Entries {
        match look.kind {
            ResourceKind::Instance => {
                let charged = |known| move || Charged::instance(fleet, settings, known);
                let known = fleet.instances_of(&look.account);
                let rows = known.map(|known| (&known.identity, Seen::of(fleet, known, now), charged(known)));
                self.look(look, rows, changed)
            }
            ResourceKind::Storage => {
                let charged = |known| move || Charged::storage(fleet, settings, known);
                let known = fleet.storage_of(&look.account);
                let rows = known.map(|known| (&known.identity, Seen::of(fleet, known, now), charged(known)));
                self.look(look, rows, changed)
            }
        }
    }

    /// Takes in what the fleet learnt about one resource between two lists.
    pub fn look_at_one(
        &mut self,
        look: &Look,
        fleet: &Fleet,
        settings: &Settings,
        identity: &Identity,
        now: Timestamp,
    ) -> Entries {
        let found = match identity.kind {
            ResourceKind::Instance => fleet
                .instances
                .get(identity)
                .map(|known| (Seen::of(fleet, known, now), Charged::instance(fleet, settings, known))),
            ResourceKind::Storage => fleet
                .storage
                .get(identity)
                .map(|known| (Seen::of(fleet, known, now), Charged::storage(fleet, settings, known))),
        };
        let Some((seen, charged)) = found else { return Entries::default() };
        self.single(look, identity, seen, charged)
    }
}
