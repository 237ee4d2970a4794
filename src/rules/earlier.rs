//! What ids stood for before: a machine that comes back under the id of one that is gone may be another one.

use std::collections::HashMap;

use jiff::Timestamp;
use providers::model::{Identity, ResourceKind};
use serde::{Deserialize, Serialize};

/// The latest of those that are gone, of each id. There may be very many, and hardly any id comes back: of the ids
/// themselves only a fingerprint is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier(HashMap<u64, Gone>);

/// A resource that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    pub generation: u32,
    /// `None` where the provider never told it.
    pub created_at: Option<Timestamp>,
}

impl Earlier {
    /// Notes one that is gone; an earlier generation of an id than the one that is known changes nothing.
    pub fn note(&mut self, account: &str, kind: ResourceKind, id: &str, gone: Gone) {
        let latest = self.0.entry(fingerprint(account, kind, id)).or_insert(gone);
        if latest.generation <= gone.generation {
            *latest = gone;
        }
    }

    /// The latest that is gone under the id of an identity, whatever that one's generation.
    pub fn of(&self, identity: &Identity) -> Option<Gone> {
        let Identity { account, kind, id, .. } = identity;
        self.0.get(&fingerprint(account.as_str(), *kind, id.as_str())).copied()
    }

    /// Takes over what another one knows.
    pub fn extend(&mut self, other: Earlier) {
        for (id, gone) in other.0 {
            let latest = self.0.entry(id).or_insert(gone);
            if latest.generation < gone.generation {
                *latest = gone;
            }
        }
    }
}

/// FNV-1a, of 64 bits: the same in every version, since recordings hold it. Among ten million ids two share one
/// with a chance of 1 to 400,000.
fn fingerprint(account: &str, kind: ResourceKind, id: &str) -> u64 {
    let kind = match kind {
        ResourceKind::Instance => b'i',
        ResourceKind::Storage => b's',
    };
    let bytes = account.bytes().chain([0, kind]).chain(id.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_generation_of_an_id_counts_in_whatever_order_they_come() {
        let gone = |generation| Gone { generation, created_at: None };
        let known = |generations: &[u32]| {
            let mut earlier = Earlier::default();
            generations.iter().for_each(|at| earlier.note("team", ResourceKind::Instance, "7", gone(*at)));
            earlier
        };
        let of = |earlier: &Earlier, account: &str, kind, id: &str| {
            earlier.of(&Identity { account: account.into(), kind, id: id.into(), generation: 0 })
        };
        for order in [[0, 2, 1], [2, 1, 0], [1, 0, 2]] {
            assert_eq!(of(&known(&order), "team", ResourceKind::Instance, "7"), Some(gone(2)));
        }
        let mut joined = known(&[1]);
        joined.extend(known(&[0]));
        joined.extend(known(&[3]));
        assert_eq!(of(&joined, "team", ResourceKind::Instance, "7"), Some(gone(3)));
        for (account, kind, id) in [
            ("team", ResourceKind::Storage, "7"),
            ("team", ResourceKind::Instance, "8"),
            ("teams", ResourceKind::Instance, "7"),
        ] {
            assert_eq!(of(&joined, account, kind, id), None);
        }
    }
}
