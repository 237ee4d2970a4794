//! What can be done with an instance, and what it would do.
//!
//! What stop, restart and release do to data: docs.runpod.io, pods/manage-pods and storage/types, read
//! 2026-08-20. The container disk is scratch by RunPod's own words: beside a lasting mount its loss is no
//! loss of data; without one it is all there is.

use super::graphql::Extra;
use super::pods::{Disks, State, has_lasting_mount, network_mounts, with_disks};
use super::wire;
use crate::facts::Facts;
use crate::model::{Component, DataKind, DataPlace, Effect, Instance, Offer, Offers, Rates, Refusal, Risk};
use crate::money::{Currency, Rate};
use crate::text::clean_opt;

/// No offer at all, for the moment before they are computed.
pub fn none() -> Offers {
    let no = || Offer::No(Refusal::WrongPhase);
    Offers { stop: no(), start: no(), restart: no(), release: no() }
}

/// The offers of an instance. `actions` of the answer decides what can be had, the documented table only
/// where the answer does not speak of it.
pub fn of(pod: &wire::Pod, state: State, instance: &Instance, extra: Option<&Extra>, facts: &Facts) -> Offers {
    let offer = |action: &str, effect: Effect| {
        // Members of a cluster are managed through it and answer 409 here.
        if pod.cluster.is_some() {
            Offer::No(Refusal::ManagedElsewhere)
        } else if action == "stop" && pod.locked == Some(true) {
            Offer::No(Refusal::Locked)
        } else if allowed(pod, state, action) {
            Offer::Yes(effect)
        } else {
            Offer::No(Refusal::WrongPhase)
        }
    };
    Offers {
        stop: offer("stop", stop(pod, instance, facts)),
        start: offer("start", start(pod, instance, extra, facts)),
        restart: offer("restart", restart(pod, instance)),
        release: offer("terminate", release(pod, state, instance)),
    }
}

fn allowed(pod: &wire::Pod, state: State, action: &str) -> bool {
    match &pod.actions {
        Some(actions) => actions.iter().any(|allowed| allowed == action),
        None => match state {
            State::Running => matches!(action, "stop" | "restart" | "terminate"),
            State::Provisioning | State::Starting => matches!(action, "stop" | "terminate"),
            State::Exited | State::Error => matches!(action, "start" | "terminate"),
            State::Terminated | State::Unknown => false,
        },
    }
}

fn stop(pod: &wire::Pod, instance: &Instance, facts: &Facts) -> Effect {
    Effect {
        rates_after: with_disks(Rates::known(), pod, Disks::Stopped, facts),
        left_behind: instance.mounts.clone(),
        kept: volume_disk(pod).into_iter().chain(network_volumes(pod)).collect(),
        lost: if has_lasting_mount(pod) { Vec::new() } else { vec![container_disk(pod)] },
        risks: [
            (has_lasting_mount(pod), Risk::ScratchErased),
            (has_gpus(pod), Risk::GpuMayBeTaken),
            (true, Risk::AddressChanges),
        ]
        .into_iter()
        .filter_map(|(holds, risk)| holds.then_some(risk))
        .collect(),
    }
}

fn start(pod: &wire::Pod, instance: &Instance, extra: Option<&Extra>, facts: &Facts) -> Effect {
    // REST tells no price of a stopped instance; GraphQL does.
    let price = extra.and_then(|extra| extra.adjusted_price.or(extra.list_price)).filter(|price| !price.is_zero());
    let rates = match price.and_then(|price| Rate::per_hour(price, Currency::USD)) {
        Some(rate) => Rates::known().with_estimate(Component::Compute, rate),
        None => Rates::known().with_missing(),
    };
    Effect {
        rates_after: with_disks(rates, pod, Disks::Running, facts),
        left_behind: instance.mounts.clone(),
        kept: volume_disk(pod).into_iter().chain(network_volumes(pod)).collect(),
        lost: Vec::new(),
        risks: if has_gpus(pod) { vec![Risk::StartMayLackGpu] } else { Vec::new() },
    }
}

fn restart(pod: &wire::Pod, instance: &Instance) -> Effect {
    Effect {
        rates_after: instance.rates.clone(),
        left_behind: instance.mounts.clone(),
        kept: volume_disk(pod).into_iter().chain(network_volumes(pod)).collect(),
        lost: if has_lasting_mount(pod) { Vec::new() } else { vec![container_disk(pod)] },
        risks: vec![Risk::AddressChanges],
    }
}

fn release(pod: &wire::Pod, state: State, instance: &Instance) -> Effect {
    // A stopped instance has no container disk any more.
    let container = (state != State::Exited).then(|| container_disk(pod));
    Effect {
        rates_after: Rates::known(),
        left_behind: instance.mounts.clone(),
        kept: network_volumes(pod).collect(),
        lost: volume_disk(pod).into_iter().chain(container).collect(),
        risks: Vec::new(),
    }
}

fn has_gpus(pod: &wire::Pod) -> bool {
    pod.cpu.is_none()
}

fn container_disk(pod: &wire::Pod) -> DataPlace {
    DataPlace { kind: DataKind::ContainerDisk, name: None, path: Some("/".to_owned()), size_gb: pod.disk }
}

fn volume_disk(pod: &wire::Pod) -> Option<DataPlace> {
    let volume = pod.mounts.as_ref()?.persistent.as_ref()?;
    let path = clean_opt(volume.path.as_deref());
    Some(DataPlace { kind: DataKind::VolumeDisk, name: None, path, size_gb: volume.size })
}

fn network_volumes(pod: &wire::Pod) -> impl Iterator<Item = DataPlace> {
    network_mounts(pod).map(|mount| DataPlace {
        kind: DataKind::NetworkVolume,
        name: Some(mount.volume_id.clone()),
        path: clean_opt(mount.path.as_deref()),
        size_gb: None,
    })
}
