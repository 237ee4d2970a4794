//! What can be done to an instance, and what each deed would keep, lose and cost.

use jiff::Timestamp;

use super::instances::Prices;
use crate::model::{DataPlace, Effect, Offer, Offers, Phase, Rates, Refusal, ResourceId, Risk};

/// What decides which action fits.
pub struct Standing {
    pub phase: Phase,
    /// Frozen: it does not run and is charged as if it did.
    pub paused: bool,
    /// The container does not run now.
    pub halted: bool,
    pub wants_to_run: bool,
    pub ends_at: Option<Timestamp>,
    pub now: Timestamp,
}

/// Where an instance's data lies.
pub struct Holding {
    pub disk: DataPlace,
    pub volumes: Vec<DataPlace>,
    pub volume_ids: Vec<ResourceId>,
}

impl Holding {
    fn everything(&self) -> Vec<DataPlace> {
        std::iter::once(&self.disk).chain(&self.volumes).cloned().collect()
    }
}

/// The offers of an instance, by the documentation on managing instances (read 2026-08-07).
pub fn offers(standing: &Standing, prices: &Prices, holding: &Holding) -> Offers {
    let (may_stop, may_start) = match standing.phase {
        Phase::Running | Phase::Provisioning | Phase::Unknown => (true, false),
        Phase::Stopped => (standing.paused, true),
        // With the wish to run still standing, it resumes or waits by itself; a stop takes the wish back.
        Phase::Reclaimed | Phase::Failed => (standing.wants_to_run, !standing.wants_to_run),
        // Written down for the time when the host answers again.
        Phase::Unreachable => (standing.wants_to_run, false),
        Phase::Stopping | Phase::Releasing | Phase::Gone => (false, false),
    };
    let contract_over = standing.ends_at.is_some_and(|end| end <= standing.now);
    Offers {
        stop: fitting(may_stop, || stop(standing, prices, holding)),
        start: fitting(may_start && !contract_over, || Effect {
            rates_after: prices.running(),
            kept: holding.everything(),
            risks: vec![Risk::StartMayQueue, Risk::AddressChanges],
            ..Effect::default()
        }),
        restart: fitting(standing.phase == Phase::Running, || Effect {
            rates_after: prices.running(),
            kept: holding.everything(),
            risks: vec![Risk::AddressChanges],
            ..Effect::default()
        }),
        release: fitting(!matches!(standing.phase, Phase::Releasing | Phase::Gone), || Effect {
            rates_after: Rates::known(),
            left_behind: holding.volume_ids.clone(),
            kept: holding.volumes.clone(),
            lost: vec![holding.disk.clone()],
            risks: Vec::new(),
        }),
    }
}

/// A stop keeps the whole disk and goes on charging for it; the GPU is free for others. Where the container
/// does not run anyway, it only takes back the wish to run.
fn stop(standing: &Standing, prices: &Prices, holding: &Holding) -> Effect {
    let mut risks = vec![Risk::StartMayQueue];
    if !standing.halted {
        risks.extend([Risk::GpuMayBeTaken, Risk::DiskMayCostMore]);
    }
    if standing.ends_at.is_some() {
        risks.push(Risk::ContractEnds);
    }
    Effect { rates_after: prices.stopped(), kept: holding.everything(), risks, ..Effect::default() }
}

fn fitting(fits: bool, effect: impl FnOnce() -> Effect) -> Offer {
    if fits { Offer::Yes(effect()) } else { Offer::No(Refusal::WrongPhase) }
}
