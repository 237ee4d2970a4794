//! From a row of the wire to an instance: where it stands, what it costs, how it is reached.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::offers::{Holding, Standing, offers};
use super::wire;
use crate::facts::Facts;
use crate::gpu::Gpus;
use crate::model::{
    Component, DataKind, DataPlace, Granularity, Instance, Market, Phase, RateLine, Rates, Remark, Repricing,
    ResourceId, SshEndpoint,
};
use crate::money::{Currency, Rate};
use crate::text::{clean, clean_opt, excerpt};
use crate::usage::{GpuSample, Usage, UsageSource};

/// The longest remark of the provider's that is kept, in characters.
const NOTE: usize = 160;

/// One instance as the interface tells it.
pub fn instance(row: &wire::Instance, facts: &Facts, now: Timestamp) -> Instance {
    let state = state(row);
    let halted = matches!(word(&row.actual_status), Some("exited" | "stopped" | "created"));
    let prices = Prices::of(row, facts, halted);
    let ends_at = row.end_date.and_then(moment);
    let standing = Standing {
        phase: state.phase,
        paused: state.gpu == Charge::Certain && state.phase == Phase::Stopped,
        halted,
        wants_to_run: wants(row) == Some("running"),
        ends_at,
        now,
    };
    let holding = holding(row);
    let mounts = holding.volume_ids.clone();
    Instance {
        id: ResourceId::new(&row.id.0),
        name: clean_opt(row.label.as_deref()),
        phase: state.phase,
        provider_phase: clean_opt(word(&row.actual_status)),
        note: (state.phase != Phase::Running)
            .then(|| row.status_msg.as_deref().map(|text| excerpt(text, NOTE)))
            .flatten()
            .filter(|text| !text.is_empty()),
        remarks: state.remarks,
        market: market(row),
        gpus: gpus(row),
        rates: prices.now(state.gpu, state.disk),
        // Whole seconds: the two ways to ask need not print the same fraction, and a creation time that
        // moves would look like another machine.
        created_at: row.start_date.and_then(moment),
        // Not told: `start_date` does not move on a stop and a start, `uptime_mins` is null in every example.
        started_at: None,
        stopped_at: None,
        // GPUs and disk are charged per second (guides: billing, read 2026-08-07).
        granularity: Granularity::Exact,
        repricing: None,
        ends_at,
        at_zero: super::AT_ZERO,
        usage: (word(&row.actual_status) == Some("running")).then(|| usage(row, now)).flatten(),
        ssh: matches!(state.phase, Phase::Running | Phase::Stopping).then(|| ssh(row)).flatten(),
        region: clean_opt(row.geolocation.as_deref()),
        labels: BTreeMap::new(),
        mounts,
        offers: offers(&standing, &prices, &holding),
        page: Some(super::INSTANCES_PAGE.to_owned()),
    }
}

/// What a host asks for; `None` where no price of a rate rises, or one is not told. That the contract ends at
/// `contract_end_date` unless the rise is accepted is UNSURE: the digest of the interface names the field alone.
pub fn repricing(rise: &wire::Rise) -> Option<Repricing> {
    let parts = [
        (rise.old_gpu_costpersec, rise.new_gpu_costpersec),
        (rise.old_disk_ram_costpersec, rise.new_disk_ram_costpersec),
    ];
    let rising = || parts.iter().filter_map(|(old, new)| new.map(|new| (*old, new)));
    let per_hour =
        |per_second: Option<Decimal>| Rate::per_hour(per_second?.checked_mul(Decimal::from(3600))?, Currency::USD);
    let rate = per_hour(rising().map(|(old, _)| Some(old?.0)).sum())?;
    let asked = per_hour(Some(rising().map(|(_, new)| new.0).sum()))?;
    (asked.picos() > rate.picos()).then_some(Repricing {
        rate,
        asked,
        ends_at: rise.contract_end_date.and_then(moment),
    })
}

/// Seconds of the epoch, as a moment; `None` for 0 and for what no calendar holds.
pub fn moment(seconds: wire::Exact) -> Option<Timestamp> {
    let seconds = seconds.0.trunc().to_i64().filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(seconds).ok()
}

fn word(word: &Option<wire::Word>) -> Option<&str> {
    word.as_ref().map(|word| word.0.as_str())
}

fn wants(row: &wire::Instance) -> Option<&str> {
    word(&row.intended_status)
}

/// Whether a component is charged in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Certain,
    /// It may be: a state on the way to running, or one that the documentation leaves open.
    Possible,
    None,
}

struct State {
    phase: Phase,
    remarks: Vec<Remark>,
    gpu: Charge,
    disk: Charge,
}

/// Where an instance stands and what is charged there, by the documentation's page on billing (read
/// 2026-08-07): GPUs while running or frozen, the disk in every state except when its host is offline.
fn state(row: &wire::Instance) -> State {
    let state = |phase, gpu, disk| State { phase, remarks: Vec::new(), gpu, disk };
    let starting = state(Phase::Provisioning, Charge::Possible, Charge::Certain);
    let mut found = match word(&row.actual_status) {
        Some("running") if wants(row) == Some("stopped") => state(Phase::Stopping, Charge::Certain, Charge::Certain),
        Some("running") => state(Phase::Running, Charge::Certain, Charge::Certain),
        // Paused with its memory kept: stopped, but charged in full.
        Some("frozen") => state(Phase::Stopped, Charge::Certain, Charge::Certain),
        Some("exited" | "stopped" | "created") => halted(row),
        // UNSURE whether the two ways of restarting are charged for GPUs.
        Some("loading" | "rebooting" | "recycling") => starting,
        Some("offline") => state(Phase::Unreachable, Charge::None, Charge::None),
        // No heartbeat; UNSURE what of it is charged.
        Some("unknown") => state(Phase::Unreachable, Charge::Possible, Charge::Possible),
        // Null while it is being made; a row that tells no state at all is another matter.
        None if row.cur_state.is_some() || wants(row).is_some() => starting,
        _ => state(Phase::Unknown, Charge::Possible, Charge::Possible),
    };
    if word(&row.next_state) == Some("unloaded") {
        found.phase = Phase::Releasing;
        found.remarks.clear();
    }
    if found.phase == Phase::Running && row.num_gpus.is_some_and(|count| count.0.is_zero()) {
        found.remarks.push(Remark::NoGpus);
    }
    found
}

/// The container does not run: by the user's will, outbid, in the queue for its GPU, or never came up.
fn halted(row: &wire::Instance) -> State {
    let state = |phase, remark: Option<Remark>, gpu| State {
        phase,
        remarks: remark.into_iter().collect(),
        gpu,
        disk: Charge::Certain,
    };
    if outbid(row) {
        return state(Phase::Reclaimed, Some(Remark::Outbid), Charge::None);
    }
    if wants(row) == Some("running") {
        // Right after a start or a reboot the container shows as exited while its contract already runs.
        let queued = word(&row.cur_state) != Some("running");
        return state(Phase::Provisioning, queued.then_some(Remark::StartQueued), Charge::Possible);
    }
    let words = row.status_msg.as_deref().unwrap_or_default().to_lowercase();
    if word(&row.actual_status) == Some("created") && (words.contains("error") || words.contains("fail")) {
        return state(Phase::Failed, Some(Remark::BootFailed), Charge::None);
    }
    state(Phase::Stopped, None, Charge::None)
}

/// An interruptible instance that does not run because another offers more. `intended_status` stays
/// `running` or turns to `stopped`, by different sources (UNSURE), so the price decides, or the words.
fn outbid(row: &wire::Instance) -> bool {
    let told = row.status_msg.as_deref().is_some_and(|words| words.to_lowercase().contains("outbid"));
    let own = row.dph_base.or(row.dph_total);
    let under = matches!((own, row.min_bid), (Some(own), Some(least)) if own.0 < least.0);
    row.is_bid == Some(true) && (told || under)
}

/// Reserved ones have both figures set (UNSURE: the description calls the first "user's credit balance").
/// Until when the deposit lasts is not told.
fn market(row: &wire::Instance) -> Market {
    if reserved(row) {
        Market::Reserved { until: None }
    } else if row.is_bid == Some(true) {
        Market::Spot
    } else {
        Market::OnDemand
    }
}

fn reserved(row: &wire::Instance) -> bool {
    let positive = |amount: Option<wire::Exact>| amount.is_some_and(|amount| amount.0 > Decimal::ZERO);
    positive(row.credit_discount) && positive(row.credit_balance)
}

/// What an instance costs, as far as it is told. Traffic is charged by the byte and has no rate.
pub struct Prices {
    /// All GPUs together while running.
    gpu: Option<Rate>,
    /// The disk in the state that it is in, and whether it had to be computed.
    disk: Option<(Rate, bool)>,
    /// The disk while running.
    disk_running: Option<(Rate, bool)>,
    /// GPUs and disk together, when nothing tells them apart.
    whole: Option<Rate>,
    /// The container does not run: `disk` is the price while stopped.
    halted: bool,
    stopped_factor: Decimal,
}

impl Prices {
    /// `instance.*` is what is charged now. A zero in it counts as not told: the figures beside it decide.
    fn of(row: &wire::Instance, facts: &Facts, halted: bool) -> Self {
        let usd = |amount: Decimal| Rate::per_hour(amount, Currency::USD);
        let now = |pick: fn(&wire::Charged) -> Option<wire::Exact>| {
            row.instance.as_ref().and_then(pick).map(|amount| amount.0).filter(|amount| *amount > Decimal::ZERO)
        };
        let amount = |exact: Option<wire::Exact>| exact.map(|exact| exact.0);
        let listed_disk = amount(row.storage_total_cost)
            .or_else(|| amount(row.dph_total)?.checked_sub(amount(row.dph_base)?))
            .and_then(usd)
            .map(|rate| (rate, false))
            .or_else(|| {
                let (size, month) = (row.disk_space?.0, row.storage_cost?.0);
                Rate::of_month(size, month, facts.value("hours_in_month"), Currency::USD).map(|rate| (rate, true))
            });
        let disk_now = now(|charged| charged.disk_hour).and_then(usd).map(|rate| (rate, false));
        let disk = disk_now.or(listed_disk);
        let less_disk = |total: Decimal| usd(total)?.minus(disk?.0);
        let discounted =
            || now(|charged| charged.discounted_total_per_hour).filter(|_| reserved(row)).and_then(less_disk);
        let gpu = discounted()
            .or_else(|| now(|charged| charged.gpu_cost_per_hour).and_then(usd))
            .or_else(|| now(|charged| charged.total_hour).and_then(less_disk).filter(|rate| !rate.is_zero()))
            .or_else(|| amount(row.dph_base).and_then(usd))
            .or_else(|| amount(row.dph_total).and_then(less_disk));
        Prices {
            gpu,
            disk,
            // What is charged while stopped may be more than what the list price says for a running one.
            disk_running: if halted { listed_disk.or(disk_now.map(|(rate, _)| (rate, true))) } else { disk },
            halted,
            whole: amount(row.dph_total).and_then(usd).filter(|_| gpu.is_none() && disk.is_none()),
            stopped_factor: facts.value("disk_stopped_factor"),
        }
    }

    /// What is charged now.
    fn now(&self, gpu: Charge, disk: Charge) -> Rates {
        self.lines(gpu, disk, self.disk)
    }

    /// What is charged once it runs.
    pub fn running(&self) -> Rates {
        self.lines(Charge::Certain, Charge::Certain, self.disk_running)
    }

    /// What is charged once it is stopped, which it may be already but for its wish to run.
    pub fn stopped(&self) -> Rates {
        let disk = match self.disk {
            Some((rate, estimated)) if !self.halted => rate
                .amount()
                .checked_mul(self.stopped_factor)
                .and_then(|amount| Rate::per_hour(amount, Currency::USD))
                .map(|after| (after, estimated || self.stopped_factor != Decimal::ONE)),
            known => known,
        };
        self.lines(Charge::None, Charge::Certain, disk)
    }

    fn lines(&self, gpu: Charge, disk: Charge, disk_rate: Option<(Rate, bool)>) -> Rates {
        let line = |component, rate, estimated, charge| RateLine {
            component,
            rate,
            estimated,
            certain: charge == Charge::Certain,
        };
        let mut rates = Rates::known();
        if let Some(whole) = self.whole.filter(|_| gpu != Charge::None) {
            return rates.push(line(Component::Compute, whole, false, gpu));
        }
        if gpu != Charge::None {
            rates = match self.gpu {
                Some(rate) => rates.push(line(Component::Compute, rate, false, gpu)),
                None => rates.with_missing(),
            };
        }
        if disk != Charge::None {
            rates = match disk_rate {
                Some((rate, estimated)) => rates.push(line(Component::Disk, rate, estimated, disk)),
                None => rates.with_missing(),
            };
        }
        rates
    }
}

/// Where its data lies: the container's disk, which a stop keeps whole and a release deletes, and volumes,
/// which outlive it.
fn holding(row: &wire::Instance) -> Holding {
    let mounted = row.volume_info.as_deref().unwrap_or_default();
    Holding {
        disk: DataPlace {
            kind: DataKind::ContainerDisk,
            name: None,
            path: Some("/".to_owned()),
            size_gb: row.disk_space.map(|size| size.0),
        },
        volumes: mounted
            .iter()
            .map(|volume| DataPlace {
                kind: match volume.kind.as_deref() {
                    Some(kind) if kind.contains("network") => DataKind::NetworkVolume,
                    _ => DataKind::LocalVolume,
                },
                name: clean_opt(volume.label.as_deref()).or_else(|| Some(volume.id.0.clone())),
                path: None,
                size_gb: volume.total_space.map(|size| size.0),
            })
            .collect(),
        volume_ids: mounted.iter().map(|volume| ResourceId::new(&volume.id.0)).collect(),
    }
}

fn gpus(row: &wire::Instance) -> Option<Gpus> {
    let count = row.num_gpus.and_then(|count| count.0.to_u32());
    let memory = row.gpu_ram.and_then(|mib| (mib.0 / Decimal::from(1024)).round().to_u32()).filter(|gib| *gib > 0);
    let name = row.gpu_name.as_deref().filter(|name| !clean(name).is_empty())?;
    Some(Gpus::parse(name, count, memory))
}

/// Figures of a running instance; those of a stopped one are left over from its last run. Negative means
/// not known. The API has no use of GPU memory.
fn usage(row: &wire::Instance, now: Timestamp) -> Option<Usage> {
    let known = |figure: Option<f64>| figure.filter(|figure| figure.is_finite() && *figure >= 0.0);
    let gpu = GpuSample {
        index: 0,
        utilization: known(row.gpu_util).map(|percent| (percent / 100.0).min(1.0)),
        temperature_c: known(row.gpu_temp).filter(|celsius| *celsius > 0.0),
        ..GpuSample::default()
    };
    // Up to 1 it is read as a fraction: a percentage below 1 then looks like work, which never harms.
    let cpu = known(row.cpu_util).map(|figure| if figure > 1.0 { (figure / 100.0).min(1.0) } else { figure });
    let memory = match (known(row.mem_usage), known(row.mem_limit)) {
        (Some(used), Some(limit)) if limit > 0.0 => Some(used / limit).filter(|part| *part <= 1.0),
        _ => None,
    };
    let told = gpu.utilization.is_some() || gpu.temperature_c.is_some() || cpu.is_some() || memory.is_some();
    told.then(|| Usage {
        averaged: row.num_gpus.is_none_or(|count| count.0 > Decimal::ONE),
        gpus: vec![gpu],
        cpu,
        memory,
        ..Usage::new(now, UsageSource::Provider)
    })
}

/// The instance's own port 22 where it is mapped, else the provider's proxy; the proxy's port is one higher
/// for an image with a notebook, as the official client (1.9.1) has it.
fn ssh(row: &wire::Instance) -> Option<SshEndpoint> {
    direct_ssh(row).or_else(|| {
        let notebook = row.image_runtype.as_deref().is_some_and(|kind| kind.contains("jupyter"));
        let port = row.ssh_port?.checked_add(u16::from(notebook))?;
        SshEndpoint::new("root", row.ssh_host.as_deref()?, port, false)
    })
}

fn direct_ssh(row: &wire::Instance) -> Option<SshEndpoint> {
    let entries = row.ports.get("22/tcp")?.as_array()?;
    let port = entries.iter().find_map(|entry| {
        let port = entry.get("HostPort")?;
        port.as_str().and_then(|text| text.trim().parse().ok()).or_else(|| port.as_u64()?.try_into().ok())
    })?;
    SshEndpoint::new("root", row.public_ipaddr.as_deref()?, port, true)
}
