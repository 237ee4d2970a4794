//! What is there against what is rented.

use providers::gpu::Gpus;
use providers::usage::{Usage, UsageSource};

/// How the cards differ from those that are paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Fewer answer than are rented.
    Fewer { seen: u32, rented: u32 },
    /// They have less memory, in GiB a card.
    Smaller { seen_gib: u32, rented_gib: u32 },
    /// They are of another kind.
    Other { seen: String, rented: String },
}

/// A card has a little less memory than it is sold with: its driver, and its own error correction, take theirs.
const TAKEN: f64 = 0.10;

/// What is wrong with the cards that were seen; `None` when nothing is, or not enough is known. Only the machine
/// itself can tell: a provider's telemetry has the cards that the provider thinks are there.
pub fn mismatch(rented: Option<&Gpus>, usage: &Usage) -> Option<Mismatch> {
    let rented = rented.filter(|rented| rented.count > 0)?;
    if usage.source != UsageSource::Ssh || (usage.gpus.is_empty() && !usage.gpus_told) {
        return None;
    }
    let answering = usage.gpus.iter().filter(|gpu| gpu.fault.is_none()).count();
    let seen = u32::try_from(answering).unwrap_or(u32::MAX);
    if seen < rented.count {
        return Some(Mismatch::Fewer { seen, rented: rented.count });
    }
    let smallest = usage.gpus.iter().filter_map(|gpu| gpu.memory_total_bytes).min();
    let wanted = rented.memory_gib.map(|gib| f64::from(gib) * f64::from(1u32 << 30));
    if let (Some(smallest), Some(wanted), Some(gib)) = (smallest, wanted, rented.memory_gib)
        && (smallest as f64) < wanted * (1.0 - TAKEN)
    {
        let seen_gib = (smallest as f64 / f64::from(1u32 << 30)).round() as u32;
        return Some(Mismatch::Smaller { seen_gib, rented_gib: gib });
    }
    let other = usage.gpus.iter().filter_map(|gpu| gpu.model.as_deref()).find(|model| !rented.is_same_card(model));
    other.map(|seen| Mismatch::Other { seen: Gpus::parse(seen, Some(1), None).model, rented: rented.model.clone() })
}
