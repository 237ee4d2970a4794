//! Pods become instances: phase, rates, usage, reach. Pure.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::graphql::Extra;
use super::{offers, pod_page, wire};
use crate::facts::Facts;
use crate::gpu::Gpus;
use crate::model::{
    Component, Fate, Granularity, Instance, Market, Phase, RateLine, Rates, Remark, ResourceId, SshEndpoint,
};
use crate::money::{Currency, Rate};
use crate::text::clean_opt;
use crate::usage::{GpuSample, Usage, UsageSource};

/// Telemetry older than this gives way to the figures of REST, which have no time of their own.
const FRESH: SignedDuration = SignedDuration::from_secs(120);

/// Translates one pod. `extra` is what GraphQL last told of it.
pub fn instance(pod: wire::Pod, extra: Option<&Extra>, facts: &Facts, now: Timestamp) -> Instance {
    let state = State::of(pod.status.as_deref());
    let phase = state.phase();
    let gpus = gpus(&pod, phase);
    let started_at = matches!(phase, Phase::Running | Phase::Provisioning | Phase::Unknown)
        .then(|| pod.started_at.or_else(|| began_by_uptime(&pod, phase, now)))
        .flatten();
    let mut instance = Instance {
        id: ResourceId::new(pod.id.as_str()),
        name: clean_opt(pod.name.as_deref()),
        phase,
        provider_phase: clean_opt(pod.status.as_deref()),
        note: extra.and_then(|extra| extra.note.clone()),
        remarks: remarks(&pod, phase, gpus.as_ref(), started_at),
        market: if extra.is_some_and(|extra| extra.spot) { Market::Spot } else { Market::OnDemand },
        rates: rates(&pod, state, extra, facts),
        usage: usage(&pod, phase, gpus.as_ref(), extra, started_at, now),
        gpus,
        created_at: pod.created_at,
        started_at,
        stopped_at: None,
        // Compute and disks are charged per second (pods/pricing, read 2026-08-20).
        granularity: Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: at_zero(&pod),
        ssh: (phase == Phase::Running).then(|| ssh(&pod)).flatten(),
        region: clean_opt(pod.data_center_id.as_deref()),
        labels: Default::default(),
        mounts: network_mounts(&pod).map(|mount| ResourceId::new(mount.volume_id.as_str())).collect(),
        offers: offers::none(),
        page: Some(pod_page(&pod.id)),
    };
    instance.offers = offers::of(&pod, state, &instance, extra, facts);
    instance
}

/// At zero all pods are stopped; those without a network volume are terminated, and their data is lost
/// (accounts-billing/billing, read 2026-08-20). A volume disk of the pod's own saves nothing.
fn at_zero(pod: &wire::Pod) -> Fate {
    match &pod.mounts {
        None => Fate::Unknown,
        Some(_) if network_mounts(pod).next().is_some() => Fate::Stopped,
        Some(_) => Fate::Deleted,
    }
}

/// `status`, as documented in api-reference-v2, read 2026-08-20. `PROVISIONING` is being placed, `STARTING`
/// pulls the image or starts the container; they differ in what is surely charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Provisioning,
    Starting,
    Running,
    Exited,
    Error,
    Terminated,
    Unknown,
}

impl State {
    pub fn of(status: Option<&str>) -> Self {
        match status.map(str::trim) {
            Some("PROVISIONING") => State::Provisioning,
            Some("STARTING") => State::Starting,
            Some("RUNNING") => State::Running,
            Some("EXITED") => State::Exited,
            Some("ERROR") => State::Error,
            Some("TERMINATED") => State::Terminated,
            _ => State::Unknown,
        }
    }

    pub fn phase(self) -> Phase {
        match self {
            State::Provisioning | State::Starting => Phase::Provisioning,
            State::Running => Phase::Running,
            State::Exited => Phase::Stopped,
            State::Error => Phase::Failed,
            State::Terminated => Phase::Gone,
            State::Unknown => Phase::Unknown,
        }
    }
}

/// What an instance's own disks come to.
#[derive(Clone, Copy)]
pub enum Disks {
    /// Container and volume disk at the price of a running instance.
    Running,
    /// The volume disk at the price of a stopped one; the container disk is erased.
    Stopped,
    /// The dearest of both, for a state that is not known.
    Dearest,
}

/// The rate of an instance's own disks; `None` when a size is not told. Zero is a rate.
pub fn disk_rate(pod: &wire::Pod, disks: Disks, facts: &Facts) -> Option<Rate> {
    let volume_gb = match &pod.mounts {
        None => None,
        Some(mounts) => mounts.persistent.as_ref().map_or(Some(Decimal::ZERO), |volume| volume.size),
    };
    let container = || pod.disk?.checked_mul(facts.value("container_disk_per_gb_month"));
    let running = || volume_gb?.checked_mul(facts.value("volume_disk_per_gb_month"));
    let stopped = || volume_gb?.checked_mul(facts.value("volume_disk_stopped_per_gb_month"));
    let per_month = match disks {
        Disks::Running => container()?.checked_add(running()?)?,
        Disks::Stopped => stopped()?,
        Disks::Dearest => container()?.checked_add(running()?.max(stopped()?))?,
    };
    Rate::of_month(per_month, Decimal::ONE, facts.value("hours_per_month"), Currency::USD)
}

/// Adds the disks as an estimate: RunPod tells no rate of a disk, and whether `cost` holds the running disks
/// is UNSURE. That GraphQL tells `localStoragePerHour` apart from `gpuComputePerHour` speaks against it.
pub fn with_disks(rates: Rates, pod: &wire::Pod, disks: Disks, facts: &Facts) -> Rates {
    match disk_rate(pod, disks, facts) {
        Some(rate) if rate.is_zero() => rates,
        Some(rate) => rates.with_estimate(Component::Disk, rate),
        None => rates.with_missing(),
    }
}

fn rates(pod: &wire::Pod, state: State, extra: Option<&Extra>, facts: &Facts) -> Rates {
    let compute = |certain| match compute_rate(pod, extra) {
        Some(rate) if rate.is_zero() => Rates::known(),
        Some(rate) => Rates::known().push(RateLine { component: Component::Compute, rate, estimated: false, certain }),
        None => Rates::known().with_missing(),
    };
    match state {
        State::Running => with_disks(compute(true), pod, Disks::Running, facts),
        // Whether compute is charged from the placement on or from the first run is not stated, UNSURE.
        State::Starting => with_disks(compute(false), pod, Disks::Running, facts),
        // Not placed yet: there is no disk that surely exists.
        State::Provisioning => with_disks(compute(false), pod, Disks::Running, facts).doubtful(),
        // `cost` says 0.0 here, and only compute is free: the volume disk costs more than before.
        State::Exited => with_disks(Rates::known(), pod, Disks::Stopped, facts),
        // UNSURE: what an instance in error is charged is not stated. Its moves are those of a stopped one.
        State::Error => with_disks(compute(false), pod, Disks::Stopped, facts),
        State::Terminated => Rates::known(),
        State::Unknown => with_disks(compute(false), pod, Disks::Dearest, facts).doubtful(),
    }
}

/// `cost` is for the whole pod. Where it is the list price and GraphQL knows a lower one by a savings plan,
/// the lower one is what is charged. UNSURE whether `cost` itself heeds savings plans; if so, it differs
/// from the list price and stands.
fn compute_rate(pod: &wire::Pod, extra: Option<&Extra>) -> Option<Rate> {
    let cost = pod.cost?;
    let saved = extra.and_then(|extra| {
        let (list, adjusted) = (extra.list_price?, extra.adjusted_price?);
        (list.round_dp(4) == cost.round_dp(4) && adjusted < list && adjusted > Decimal::ZERO).then_some(adjusted)
    });
    Rate::per_hour(saved.unwrap_or(cost), Currency::USD)
}

fn gpus(pod: &wire::Pod, phase: Phase) -> Option<Gpus> {
    match (&pod.gpu, &pod.cpu) {
        (Some(gpu), _) => Some(match clean_opt(gpu.id.as_deref()) {
            Some(name) => Gpus::parse(&name, Some(gpu.count.unwrap_or(1)), gpu.memory),
            None => Gpus { model: "GPU".to_owned(), count: gpu.count.unwrap_or(1), memory_gib: gpu.memory },
        }),
        (None, Some(cpu)) => {
            let model = clean_opt(cpu.id.as_deref()).unwrap_or_else(|| "CPU".to_owned());
            Some(Gpus { model, count: 0, memory_gib: None })
        }
        // Neither: a start that found no GPU, as third parties read it. UNSURE; asked of running ones only.
        (None, None) if phase == Phase::Running => Some(Gpus { model: "GPU".to_owned(), count: 0, memory_gib: None }),
        (None, None) => None,
    }
}

fn remarks(pod: &wire::Pod, phase: Phase, gpus: Option<&Gpus>, started_at: Option<Timestamp>) -> Vec<Remark> {
    let up = matches!(phase, Phase::Running | Phase::Provisioning);
    let no_gpus = up && pod.cpu.is_none() && gpus.is_some_and(|gpus| gpus.count == 0);
    let bare = (up || phase == Phase::Unknown) && pod.mounts.is_some() && !has_lasting_mount(pod);
    let told = [
        (no_gpus, Remark::NoGpus),
        (pod.locked == Some(true), Remark::Locked),
        (bare, Remark::NothingSurvivesStop),
        (phase == Phase::Running && started_at.is_none(), Remark::StartTimeUnknown),
    ];
    told.into_iter().filter_map(|(holds, remark)| holds.then_some(remark)).collect()
}

/// True when something is mounted that outlives a stop.
pub fn has_lasting_mount(pod: &wire::Pod) -> bool {
    pod.mounts.as_ref().is_some_and(|mounts| mounts.persistent.is_some()) || network_mounts(pod).next().is_some()
}

pub fn network_mounts(pod: &wire::Pod) -> impl Iterator<Item = &wire::NetworkMount> {
    pod.mounts.iter().flat_map(|mounts| mounts.network.iter().flatten())
}

/// The begin of the run, where only the uptime is told.
fn began_by_uptime(pod: &wire::Pod, phase: Phase, now: Timestamp) -> Option<Timestamp> {
    let seconds = pod.runtime.as_ref()?.uptime.filter(|seconds| *seconds > 0 && phase == Phase::Running)?;
    now.checked_sub(SignedDuration::from_secs(seconds)).ok() // An uptime before the calendar is none.
}

/// Direct where there is a public port; else the proxy, which gives a shell but runs no command.
fn ssh(pod: &wire::Pod) -> Option<SshEndpoint> {
    let ssh = pod.ssh.as_ref()?;
    let endpoint = |target: &Option<wire::SshTarget>, direct| {
        target.as_ref().and_then(|target| SshEndpoint::new(&target.username, &target.host, target.port, direct))
    };
    endpoint(&ssh.direct, true).or_else(|| endpoint(&ssh.proxy, false))
}

fn usage(
    pod: &wire::Pod,
    phase: Phase,
    gpus: Option<&Gpus>,
    extra: Option<&Extra>,
    started_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Usage> {
    if phase != Phase::Running {
        return None;
    }
    let total = gpus.and_then(|gpus| gpus.memory_gib).map(|gib| u64::from(gib) << 30);
    let count = pod.gpu.as_ref().and_then(|gpu| gpu.count);
    let runtime = pod.runtime.as_ref();
    let live = live_samples(runtime, total);
    let share = |load: Option<&wire::Load>| load.and_then(|load| share(load.util));
    let cpu = share(runtime.and_then(|runtime| runtime.cpu.as_ref()));
    let memory = share(runtime.and_then(|runtime| runtime.memory.as_ref()));
    let told = extra.and_then(|extra| extra.telemetry.as_ref()).and_then(|telemetry| {
        let time = telemetry.time?;
        let (samples, averaged) = telemetry_samples(telemetry, total, count);
        // Figures of the run before say nothing about this one.
        (!samples.is_empty() && started_at.is_none_or(|began| time >= began)).then_some((time, samples, averaged))
    });
    // A time further ahead is that of another clock, and tells of no figure how old it is. Time goes on while it answers.
    let usage = |time: Timestamp, gpus, averaged, timed| Usage {
        gpus,
        averaged,
        cpu,
        memory,
        timed: timed && time.duration_since(now) <= FRESH,
        ..Usage::new(time.min(now), UsageSource::Provider)
    };
    match told {
        Some((time, samples, averaged)) if now.duration_since(time) <= FRESH => {
            Some(usage(time, samples, averaged, true))
        }
        _ if !live.is_empty() || cpu.is_some() || memory.is_some() => Some(usage(now, live, false, false)),
        // Old figures with their age are better than none.
        Some((time, samples, averaged)) => Some(usage(time, samples, averaged, true)),
        None => None,
    }
}

/// The cards as REST tells them; none when no card tells anything.
fn live_samples(runtime: Option<&wire::Runtime>, total: Option<u64>) -> Vec<GpuSample> {
    let loads = runtime.and_then(|runtime| runtime.gpus.as_deref()).unwrap_or_default();
    let samples = (0..).zip(loads).map(|(index, load)| GpuSample {
        index,
        utilization: share(load.util),
        memory_used_bytes: memory_used(load.memory_util, total),
        memory_total_bytes: total,
        ..GpuSample::default()
    });
    speaking(samples.collect())
}

/// The cards as the host sent them, one by one or as their average.
fn telemetry_samples(telemetry: &wire::Telemetry, total: Option<u64>, count: Option<u32>) -> (Vec<GpuSample>, bool) {
    let sample = |(index, card): (u32, &wire::GpuMetrics)| GpuSample {
        index,
        utilization: share(card.percent_utilization),
        memory_used_bytes: memory_used(card.memory_utilization, total),
        memory_total_bytes: total,
        // No card in use is at 0 degrees: that, and whatever is below, says that nothing was measured.
        temperature_c: card.temperature_celcius.filter(|celsius| *celsius > 0.0),
        power_watts: card.power_watts.filter(|watts| *watts >= 0.0),
        ..GpuSample::default()
    };
    let cards = telemetry.individual_gpu_metrics.as_deref().unwrap_or_default();
    let each = speaking((0..).zip(cards).map(sample).collect());
    if !each.is_empty() {
        return (each, false);
    }
    // What an average over nobody knows how many cards hides is not known either.
    let average = telemetry.average_gpu_metrics.as_ref().filter(|_| count.is_some());
    let average = average.map(|card| sample((0, card)));
    (speaking(average.into_iter().collect()), count.is_some_and(|count| count > 1))
}

/// Nothing at all where no card has a figure, so that silence is not taken for a look.
fn speaking(samples: Vec<GpuSample>) -> Vec<GpuSample> {
    let speaks = |sample: &GpuSample| sample.utilization.is_some() || sample.memory_used_bytes.is_some();
    if samples.iter().any(speaks) { samples } else { Vec::new() }
}

/// A share of 0.0 to 1.0 from a percentage.
fn share(percent: Option<f64>) -> Option<f64> {
    percent.filter(|percent| *percent >= 0.0).map(|percent| (percent / 100.0).min(1.0))
}

/// Memory in use. UNSURE: that `memoryUtil` is the part of the card's memory in use, and not the time in
/// which it was accessed, is how RunPod's own console shows it; no document says so.
fn memory_used(percent: Option<f64>, total: Option<u64>) -> Option<u64> {
    Some((share(percent)? * total? as f64) as u64)
}
