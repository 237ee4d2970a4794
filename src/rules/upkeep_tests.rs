//! Tests of what costs without working.

use proptest::prelude::*;
use providers::error::ErrorKind;
use providers::model::{DataKind, DataPlace, Offers, RateLine, ResourceKind};
use providers::money::Currency;
use providers::provider::{Part, Poll};
use rstest::rstest;

use super::*;
use crate::rules::matcher::Matcher;
use crate::rules::plan::plan;
use crate::rules::samples::{
    at, disk, effect, error, failed, fleet, identity, instance, item_identity, listed, usd, volume, with_storage,
};
use crate::rules::settings::{Rules, Setting};

fn over(rows: Vec<Instance>, items: Vec<StorageItem>) -> Fleet {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", with_storage(listed(rows), items), at("10:00:00"));
    fleet
}

fn basis<'a>(fleet: &'a Fleet, settings: &'a Settings) -> Basis<'a> {
    crate::rules::samples::basis(fleet, settings, at("10:00:10"))
}

fn of(fleet: &Fleet) -> Upkeep {
    upkeep(basis(fleet, &Settings::default()))
}

fn ids(upkeep: &Upkeep, standing: Standing) -> Vec<&str> {
    upkeep.rows.iter().filter(|row| row.standing == standing).map(|row| row.identity.id.as_str()).collect()
}

fn proposed(upkeep: &Upkeep) -> Vec<&str> {
    upkeep.proposable().map(|row| row.identity.id.as_str()).collect()
}

fn row<'a>(upkeep: &'a Upkeep, id: &str) -> &'a Row {
    upkeep.rows.iter().find(|row| row.identity.id.as_str() == id).unwrap_or_else(|| panic!("no row of {id}"))
}

/// The only amount of a sum, to six places.
fn amount(amounts: Vec<Money>) -> String {
    let [only] = amounts.as_slice() else { panic!("{amounts:?} is not one amount") };
    only.amount.round_dp(6).normalize().to_string()
}

/// An instance that itself costs nothing while its phase lasts.
fn free(id: &str, phase: Phase) -> Instance {
    Instance { rates: Rates::known(), ..instance(id, phase, "0") }
}

fn priced(id: &str, size: i64, per_month: &str, currency: Currency, users: &[&str]) -> StorageItem {
    let rate = Rate::of_month(size.into(), per_month.parse().unwrap(), HOURS_IN_MONTH.into(), currency).unwrap();
    let rates = Rates::known().with(Component::Storage, rate);
    StorageItem { size_gib: Some(size.into()), rates, ..volume(id, "0", users) }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn orph_01_a_volume_that_nothing_uses_is_waste_and_one_of_a_stopped_machine_is_counted_once() {
    let gp3 = |id, size, users: &[&str]| priced(id, size, "0.08", Currency::USD, users);
    // One on its way out has no rate that is sure, and is attached to nobody can say what.
    let deleting = StorageItem {
        attachment: Attachment::Unknown,
        rates: Rates::known(),
        delete: Offer::No(Refusal::WrongPhase),
        ..gp3("vol-4", 50, &[])
    };
    let upkeep = of(&over(
        vec![free("i-stopped", Phase::Stopped), free("i-running", Phase::Running)],
        vec![gp3("vol-1", 200, &[]), gp3("vol-2", 100, &["i-stopped"]), gp3("vol-3", 100, &["i-running"]), deleting],
    ));
    assert_eq!(ids(&upkeep, Standing::Waste), ["vol-1"]);
    assert_eq!(amount(upkeep.waste.monthly()), "16");
    assert_eq!(upkeep.waste.certain.of(Currency::USD).amount().round_dp(6).to_string(), "0.021918");
    assert_eq!(ids(&upkeep, Standing::WithStopped), ["vol-2"]);
    assert_eq!(row(&upkeep, "vol-2").notes, [Note::AttachedToStopped(names(&["i-stopped"]))]);
    assert_eq!(row(&upkeep, "vol-2").hindrance, Some(Hindrance::Provider(Refusal::InUse)));
    assert_eq!(amount(upkeep.with_stopped.monthly()), "8");
    assert_eq!((upkeep.working.count, amount(upkeep.working.monthly()).as_str()), (1, "8"));
    assert_eq!(upkeep.rows.len(), 2, "neither what works nor what costs nothing has a row");
    assert_eq!(proposed(&upkeep), ["vol-1"]);
}

/// What an adapter cannot price (a bin that counts against the quota) is in no sum and is never proposed.
#[test]
fn orph_02_amounts_keep_their_currency_and_what_lies_in_a_bin_is_in_no_sum() {
    let eur = |id, size, users: &[&str]| priced(id, size, "0.2", Currency::EUR, users);
    let binned = StorageItem {
        attachment: Attachment::Unknown,
        rates: Rates::unknown(),
        delete: Offer::No(Refusal::WrongPhase),
        ..eur("v3", 500, &[])
    };
    let upkeep =
        of(&over(vec![free("inst-1", Phase::Running)], vec![eur("v1", 200, &[]), eur("v2", 100, &["inst-1"]), binned]));
    assert_eq!(ids(&upkeep, Standing::Waste), ["v1"]);
    assert_eq!(upkeep.waste.monthly().iter().map(|money| money.currency).collect::<Vec<_>>(), [Currency::EUR]);
    assert_eq!(amount(upkeep.waste.monthly()), "40");
    assert_eq!(ids(&upkeep, Standing::PerhapsUsed), ["v3"]);
    assert!(row(&upkeep, "v3").monthly().is_empty() && upkeep.perhaps_used.incomplete);
    assert!(!upkeep.waste.incomplete);
    assert_eq!(proposed(&upkeep), ["v1"]);
}

#[test]
fn orph_03_an_address_costs_with_or_without_a_machine() {
    let address = |id, users: &[&str]| StorageItem {
        kind: StorageKind::Address,
        size_gib: None,
        rates: Rates::known().with(Component::Ip, usd("0.005")),
        ..volume(id, "0", users)
    };
    let rows = vec![free("i-stopped", Phase::Stopped), free("i-running", Phase::Running)];
    let items =
        vec![address("eipalloc-1", &[]), address("eipalloc-2", &["i-stopped"]), address("eipalloc-3", &["i-running"])];
    let upkeep = of(&over(rows, items));
    let day = |sum: &Sum| (sum.certain.of(Currency::USD).amount() * Decimal::from(24)).normalize().to_string();
    assert_eq!(ids(&upkeep, Standing::Waste), ["eipalloc-1"]);
    assert_eq!(day(&upkeep.waste), "0.12");
    assert_eq!(row(&upkeep, "eipalloc-2").notes, [Note::AttachedToStopped(names(&["i-stopped"]))]);
    assert_eq!(day(&upkeep.with_stopped), "0.12");
    assert_eq!((upkeep.working.count, day(&upkeep.working).as_str()), (1, "0.12"));
    assert_eq!(row(&upkeep, "eipalloc-1").kind.word(), "address");
}

#[test]
fn orph_04_not_everything_unattached_is_ours_to_delete() {
    let mut labelled = volume("vA", "0.1", &[]);
    labelled.labels.insert("owner".to_owned(), "other-team".to_owned());
    let fleet =
        over(vec![], vec![labelled, volume("vB", "0.1", &[]), volume("vC", "0.1", &[]), volume("vD", "0.1", &[])]);
    let keep = Setting { protected: Some(true), ..Setting::default() };
    let settings = Settings { single: BTreeMap::from([(item_identity("team", "vB"), keep)]), ..Settings::default() };
    let upkeep = upkeep(basis(&fleet, &settings));
    assert_eq!(ids(&upkeep, Standing::Waste), ["vA", "vB", "vC", "vD"]);
    assert_eq!(proposed(&upkeep), ["vC", "vD"]);
    let owner = vec![("owner".to_owned(), "other-team".to_owned())];
    assert_eq!(row(&upkeep, "vA").notes, [Note::AttachedToNothing, Note::OwnerLabels(owner)]);
    assert_eq!(row(&upkeep, "vB").notes, [Note::AttachedToNothing, Note::Protected]);
    // Each can still be asked for by itself, with all that a person needs to decide.
    for row in &upkeep.rows {
        assert_eq!((row.hindrance.clone(), row.end()), (None, Action::Delete));
        assert_eq!((row.size_gb, row.since), (Some(100.into()), Since::FirstSeen(at("10:00:00"))));
        assert_eq!(row.effect.as_ref().unwrap().lost, [disk(DataKind::Contents)]);
    }
}

#[rstest]
#[case::an_owner_and_no_rule_about_labels("owner", "x", &["*"], None, false)]
#[case::a_rule_that_names_the_owner("owner", "us", &["owner=us"], None, true)]
#[case::a_rule_that_names_another_owner("owner", "x", &["owner=us", "*"], None, false)]
#[case::a_person_said_so("owner", "x", &["*"], Some(true), true)]
#[case::a_person_said_no("owner", "us", &["owner=us"], Some(false), false)]
#[case::a_key_with_a_prefix("example.com/Created-By", "ann", &["*"], None, false)]
#[case::a_key_with_separators("managed_by", "terraform", &["*"], None, false)]
#[case::a_key_that_names_no_owner("env", "test", &["*"], None, true)]
#[case::an_owner_that_is_nobody("owner", " ", &["*"], None, true)]
fn what_names_an_owner_is_proposed_only_where_it_is_said_to_be_mine(
    #[case] key: &str,
    #[case] value: &str,
    #[case] mine: &[&str],
    #[case] pressed: Option<bool>,
    #[case] expected: bool,
) {
    let mut item = volume("v", "0.1", &[]);
    item.labels.insert(key.to_owned(), value.to_owned());
    let mine = mine.iter().map(|entry| Matcher::parse(entry).unwrap()).collect();
    let mut settings = Settings { rules: Rules { mine, ..Rules::default() }, ..Settings::default() };
    settings.single.insert(item_identity("team", "v"), Setting { mine: pressed, ..Setting::default() });
    let upkeep = upkeep(basis(&over(vec![], vec![item]), &settings));
    assert_eq!(!proposed(&upkeep).is_empty(), expected);
}

#[rstest]
#[case::nobody(Attachment::To(vec![]), &[], Some((Standing::Waste, vec![Note::AttachedToNothing])))]
#[case::running(Attachment::To(vec!["run".into()]), &[], None)]
#[case::one_of_two_runs(Attachment::To(vec!["stop".into(), "run".into()]), &[], None)]
#[case::both_stopped(
    Attachment::To(vec!["stop".into(), "taken".into()]), &[],
    Some((Standing::WithStopped, vec![Note::AttachedToStopped(names(&["stop", "taken"]))])))]
#[case::in_no_list(
    Attachment::To(vec!["stop".into(), "lost".into()]), &[],
    Some((Standing::PerhapsUsed, vec![
        Note::AttachedToStopped(names(&["stop"])), Note::AttachedToUnlisted(names(&["lost"]))])))]
#[case::somewhere(Attachment::Somewhere, &[], Some((Standing::PerhapsUsed, vec![Note::UsedSomewhere])))]
#[case::unknown(Attachment::Unknown, &[], Some((Standing::PerhapsUsed, vec![Note::UseUnknown])))]
#[case::unknown_and_mounted(Attachment::Unknown, &["run"], None)]
#[case::mounted_since(Attachment::To(vec![]), &["run"], None)]
#[case::mounted_by_one_that_is_stopped(
    Attachment::To(vec![]), &["stop"],
    Some((Standing::WithStopped, vec![Note::AttachedToStopped(names(&["stop"]))])))]
#[case::told_twice(
    Attachment::To(vec!["stop".into()]), &["stop"],
    Some((Standing::WithStopped, vec![Note::AttachedToStopped(names(&["stop"]))])))]
fn who_uses_storage_decides_how_it_stands(
    #[case] attachment: Attachment,
    #[case] mounting: &[&str],
    #[case] expected: Option<(Standing, Vec<Note>)>,
) {
    let rows = [("run", Phase::Running), ("stop", Phase::Stopped), ("taken", Phase::Reclaimed)];
    let rows = rows.map(|(id, phase)| {
        let mounts = if mounting.contains(&id) { vec!["v".into()] } else { Vec::new() };
        Instance { mounts, ..free(id, phase) }
    });
    let upkeep = of(&over(rows.to_vec(), vec![StorageItem { attachment, ..volume("v", "0.1", &[]) }]));
    let found = upkeep.rows.first().map(|row| (row.standing, row.notes.clone()));
    assert_eq!(found, expected);
    assert_eq!(upkeep.working.count, usize::from(expected.is_none()));
    assert_eq!(upkeep.proposable().count(), usize::from(matches!(expected, Some((Standing::Waste, _)))));
}

#[test]
fn what_others_may_mount_unseen_is_listed_and_not_proposed() {
    let unsure = Effect { risks: vec![Risk::UseUnknown], ..effect("0", vec![disk(DataKind::Contents)]) };
    let upkeep = of(&over(vec![], vec![StorageItem { delete: Offer::Yes(unsure), ..volume("v", "0.1", &[]) }]));
    assert_eq!(row(&upkeep, "v").notes, [Note::AttachedToNothing, Note::MayBeUsedByOthers]);
    assert_eq!((row(&upkeep, "v").standing, upkeep.proposable().count()), (Standing::Waste, 0));
}

/// A stopped instance whose charges, now and after a start, are these.
fn stopped(now: Rates, after_start: Rates) -> Instance {
    let start = Offer::Yes(Effect { rates_after: after_start, ..Effect::default() });
    let row = instance("a", Phase::Stopped, "0");
    Instance { rates: now, offers: Offers { start, ..row.offers.clone() }, ..row }
}

fn disks(hourly: &str) -> Rates {
    Rates::known().with_estimate(Component::Disk, usd(hourly))
}

#[rstest]
#[case::more(disks("0.02"), disks("0.01"), &[Note::CostsMoreWhileStopped])]
#[case::the_same(disks("0.01"), disks("0.01"), &[])]
#[case::less(disks("0.01"), disks("0.02"), &[])]
#[case::part_of_the_start_is_not_known(disks("0.02"), disks("0.01").with_missing(), &[Note::CostsMoreWhileStopped])]
#[case::the_disk_after_a_start_is_not_known(disks("0.02"), Rates::known().with_missing(), &[])]
#[case::compute(disks("0.01").with(Component::Compute, usd("1")), disks("0.01"), &[Note::ComputeBilled])]
#[case::an_address(disks("0.01").with(Component::Ip, usd("0.005")), disks("0.01"), &[Note::AddressBilled])]
fn a_stopped_instance_says_what_goes_on_being_charged(
    #[case] now: Rates,
    #[case] after_start: Rates,
    #[case] expected: &[Note],
) {
    let upkeep = of(&over(vec![stopped(now, after_start)], vec![]));
    assert_eq!(row(&upkeep, "a").notes, expected);
    assert_eq!((row(&upkeep, "a").end(), row(&upkeep, "a").kind), (Action::Release, Kind::Instance(Phase::Stopped)));
}

#[test]
fn an_instance_is_listed_unless_it_is_known_to_cost_nothing() {
    let cases = [
        (Phase::Stopped, disks("0.01"), true),
        (Phase::Reclaimed, disks("0.01"), true),
        (Phase::Stopped, Rates::unknown(), true),
        (Phase::Stopped, disks("0.01").doubtful(), true),
        (Phase::Stopped, Rates::known(), false),
        (Phase::Stopped, disks("0"), false),
        (Phase::Running, disks("0.01"), false),
        (Phase::Failed, disks("0.01"), false),
    ];
    for (phase, rates, expected) in cases {
        let upkeep = of(&over(vec![Instance { rates: rates.clone(), ..instance("a", phase, "0") }], vec![]));
        assert_eq!(!upkeep.rows.is_empty(), expected, "{phase:?} {rates:?}");
    }
}

#[test]
fn what_is_paid_ahead_stands_unused_and_is_no_waste() {
    let until = Some(at("23:00:00"));
    let reserved =
        Instance { market: Market::Reserved { until }, ends_at: until, ..instance("a", Phase::Stopped, "1") };
    let upkeep = of(&over(vec![reserved], vec![]));
    assert_eq!(row(&upkeep, "a").notes, [Note::PaidAhead(until), Note::EndsAt(at("23:00:00"))]);
    assert_eq!((upkeep.waste.count, upkeep.paid_ahead.count, upkeep.proposable().count()), (0, 1, 0));
    assert_eq!(amount(upkeep.sum(Standing::PaidAhead).monthly()), "730");
}

#[test]
fn what_the_last_list_lacks_is_said_to_be_missing_and_is_in_no_certain_sum() {
    let mut fleet = over(vec![instance("a", Phase::Stopped, "1")], vec![volume("v", "0.1", &[])]);
    fleet.poll("team", with_storage(listed(vec![]), vec![]), at("10:00:05"));
    let upkeep = of(&fleet);
    for id in ["a", "v"] {
        let row = row(&upkeep, id);
        assert_eq!(row.notes[0], Note::MissingSince(at("10:00:05")));
        assert_eq!((row.hindrance.clone(), row.certain()), (Some(Hindrance::NotThere), false));
        assert!(!row.monthly().is_empty(), "what it may cost is still told");
    }
    assert!(upkeep.waste.certain.is_zero() && !upkeep.waste.upper.is_zero());
    assert_eq!(upkeep.proposable().count(), 0);
}

/// An account that failed, was left out in part or was asked too long ago is nothing to make proposals from.
#[test]
fn nothing_is_proposed_from_what_is_not_fresh_and_complete() {
    let known = || over(vec![instance("a", Phase::Stopped, "1")], vec![volume("v", "0.1", &[])]);
    let mut failing = known();
    failing.poll("team", failed(ErrorKind::NoSuchId), at("10:00:05"));
    let mut partial = known();
    let cut = Part::Failed(error(ErrorKind::NoSuchId));
    let rows = listed(vec![instance("a", Phase::Stopped, "1")]);
    partial.poll("team", Poll { storage: cut, ..rows }, at("10:00:05"));
    let fresh = known();
    let settings = Settings::default();
    let at_times =
        [(&fresh, "10:00:10", 2), (&fresh, "11:00:00", 0), (&failing, "10:00:10", 0), (&partial, "10:00:10", 0)];
    for (fleet, clock, expected) in at_times {
        let upkeep = upkeep(Basis { now: at(clock), ..basis(fleet, &settings) });
        assert_eq!((upkeep.rows.len(), upkeep.proposable().count()), (2, expected), "{clock}");
    }
}

#[test]
fn an_age_is_the_providers_or_at_least_that_of_the_first_sight() {
    let old = StorageItem { created_at: Some(at("04:00:00")), ..volume("old", "0.1", &[]) };
    let upkeep = of(&over(vec![], vec![old, volume("new", "0.1", &[])]));
    let ages =
        ["old", "new"].map(|id| row(&upkeep, id).since).map(|since| (since, since.age(at("11:00:00")).as_hours()));
    assert_eq!(ages, [(Since::Created(at("04:00:00")), 7), (Since::FirstSeen(at("10:00:00")), 1)]);
    assert_eq!(Since::Created(at("12:00:00")).age(at("11:00:00")), SignedDuration::ZERO);
}

#[test]
fn the_size_of_an_instance_is_what_its_release_erases() {
    let unsized_disk = DataPlace { size_gb: None, ..disk(DataKind::LocalDisk) };
    let two = vec![disk(DataKind::VolumeDisk), disk(DataKind::ContainerDisk)];
    let cases = [(two, Some(200)), (vec![disk(DataKind::VolumeDisk), unsized_disk], None), (vec![], None)];
    for (lost, expected) in cases {
        let mut stopped = instance("a", Phase::Stopped, "1");
        stopped.offers.release = Offer::Yes(effect("0", lost));
        assert_eq!(row(&of(&over(vec![stopped], vec![])), "a").size_gb, expected.map(Decimal::from));
    }
}

#[test]
fn the_costliest_stands_first() {
    let items = [("cheap", "0.1"), ("dear", "0.3"), ("same", "0.1")].map(|(id, hourly)| volume(id, hourly, &[]));
    let upkeep = of(&over(vec![instance("middle", Phase::Stopped, "0.2")], items.to_vec()));
    let order: Vec<_> = upkeep.rows.iter().map(Row::shown_name).collect();
    assert_eq!(order, ["dear", "middle", "cheap", "same"]);
}

fn any_rates() -> impl Strategy<Value = Rates> {
    let component = prop::sample::select(vec![Component::Compute, Component::Disk, Component::Storage, Component::Ip]);
    let currency = prop::sample::select(vec![Currency::USD, Currency::EUR]);
    let line = (component, 0i64..1_000_000_000_000, currency, any::<bool>(), any::<bool>()).prop_map(
        |(component, picos, currency, estimated, certain)| RateLine {
            component,
            rate: Rate::from_picos(picos, currency),
            estimated,
            certain,
        },
    );
    (prop::collection::vec(line, 0..3), any::<bool>()).prop_map(|(lines, complete)| Rates { lines, complete })
}

/// Here, missing or gone.
fn any_presence() -> impl Strategy<Value = (bool, bool)> {
    prop_oneof![6 => Just((false, false)), 1 => Just((true, false)), 1 => Just((true, true))]
}

fn any_ids(prefix: char) -> impl Strategy<Value = Vec<ResourceId>> {
    let places: Vec<usize> = (0..4).collect();
    prop::sample::subsequence(places, 0..3)
        .prop_map(move |places| places.into_iter().map(|n| format!("{prefix}{n}").into()).collect())
}

fn any_labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let all: BTreeMap<_, _> = [("rentop.protect", "1"), ("owner", "x"), ("of", "others")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    (0u8..16).prop_map(move |mask| {
        let kept = all.iter().enumerate().filter(|(n, _)| mask == (1 << n) || mask == 7);
        kept.map(|(_, (key, value))| (key.clone(), value.clone())).collect()
    })
}

fn any_market() -> impl Strategy<Value = Market> {
    prop_oneof![3 => Just(Market::OnDemand), 1 => Just(Market::Spot), 1 => Just(Market::Reserved { until: None })]
}

fn any_instance() -> impl Strategy<Value = Instance> {
    let phase = prop_oneof![2 => Just(Phase::Stopped), 2 => prop::sample::select(Phase::ALL.to_vec())];
    (phase, any_market(), any_rates(), any_ids('v'), any_labels()).prop_map(|(phase, market, rates, mounts, labels)| {
        Instance { market, rates, mounts, labels, ..instance("", phase, "0") }
    })
}

fn any_item() -> impl Strategy<Value = StorageItem> {
    let attachment = prop_oneof![
        2 => Just(Attachment::To(Vec::new())),
        4 => any_ids('i').prop_map(Attachment::To),
        1 => Just(Attachment::Somewhere),
        1 => Just(Attachment::Unknown),
    ];
    let delete = prop_oneof![
        3 => Just(Offer::Yes(effect("0", vec![disk(DataKind::Contents)]))),
        1 => Just(Offer::Yes(Effect { risks: vec![Risk::UseUnknown], ..Effect::default() })),
        1 => Just(Offer::No(Refusal::Locked)),
    ];
    (attachment, any_rates(), delete, any_labels()).prop_map(|(attachment, rates, delete, labels)| StorageItem {
        attachment,
        rates,
        delete,
        labels,
        ..volume("", "0", &[])
    })
}

fn put<T: Resource>(
    into: &mut BTreeMap<Identity, Known<T>>,
    identity: Identity,
    row: T,
    (missing, gone): (bool, bool),
) {
    let ended = gone || row.has_ended();
    let known = Known {
        missing_since: missing.then(|| at("09:59:30")),
        gone_at: ended.then(|| at("09:59:40")),
        ..Known::new(identity.clone(), row, at("09:59:00"))
    };
    into.insert(identity, known);
}

/// Two accounts whose instances and storage share their ids.
fn any_fleet() -> impl Strategy<Value = Fleet> {
    let instances = prop::collection::vec((any_instance(), any_presence()), 0..8);
    let items = prop::collection::vec((any_item(), any_presence()), 0..8);
    (instances, items, any::<bool>()).prop_map(|(instances, items, read_only)| {
        let mut fleet = fleet(&["team", "lab"]);
        for name in ["team", "lab"] {
            fleet.poll(name, listed(vec![]), at("10:00:00"));
        }
        fleet.accounts[1].read_only = read_only;
        let place = |n: usize, prefix| (["team", "lab"][n % 2], format!("{prefix}{}", n / 2));
        for (n, (row, presence)) in instances.into_iter().enumerate() {
            let (account, id) = place(n, 'i');
            let row = Instance { id: id.as_str().into(), name: Some(id.clone()), ..row };
            put(&mut fleet.instances, identity(account, &id), row, presence);
        }
        for (n, (row, presence)) in items.into_iter().enumerate() {
            let (account, id) = place(n, 'v');
            let row = StorageItem { id: id.as_str().into(), name: Some(id.clone()), ..row };
            put(&mut fleet.storage, item_identity(account, &id), row, presence);
        }
        fleet
    })
}

/// What is labelled as others' is not mine, by hand.
fn settings_of(fleet: &Fleet) -> Settings {
    let labelled = |labels: &BTreeMap<String, String>| labels.contains_key("of");
    let instances = fleet.instances.values().filter(|known| labelled(&known.row.labels)).map(|known| &known.identity);
    let items = fleet.storage.values().filter(|known| labelled(&known.row.labels)).map(|known| &known.identity);
    let not_mine = |identity: &Identity| (identity.clone(), Setting { mine: Some(false), ..Setting::default() });
    Settings { single: instances.chain(items).map(not_mine).collect(), ..Settings::default() }
}

proptest! {
    /// The sums are those of the fleet: nothing is left out and nothing stands in two of them.
    #[test]
    fn every_charge_is_counted_once(fleet in any_fleet()) {
        let (upkeep, totals) = (of(&fleet), fleet.burn());
        let seen: BTreeSet<&Identity> = upkeep.rows.iter().map(|row| &row.identity).collect();
        prop_assert_eq!(seen.len(), upkeep.rows.len(), "two rows of one resource");
        for currency in [Currency::USD, Currency::EUR] {
            prop_assert_eq!(upkeep.waste.certain.of(currency), totals.waste.of(currency));
            let rows = upkeep.rows.iter().filter(|row| matches!(row.kind, Kind::Storage(_)));
            let storage: i64 = rows.map(|row| row.rates.certain().of(currency).picos()).sum();
            prop_assert_eq!(storage + upkeep.working.certain.of(currency).picos(), totals.storage.of(currency).picos());
            for standing in [Standing::Waste, Standing::WithStopped, Standing::PerhapsUsed, Standing::PaidAhead] {
                let rows = upkeep.rows.iter().filter(|row| row.standing == standing);
                let of_rows: Burn = rows.flat_map(|row| row.hourly().rates().to_vec()).collect();
                prop_assert_eq!(upkeep.sum(standing).upper.of(currency), of_rows.of(currency));
            }
        }
    }

    #[test]
    fn what_somebody_may_use_is_never_proposed(fleet in any_fleet()) {
        let settings = settings_of(&fleet);
        let upkeep = upkeep(basis(&fleet, &settings));
        for row in upkeep.proposable() {
            let labels = match row.identity.kind {
                ResourceKind::Instance => {
                    let known = &fleet.instances[&row.identity];
                    prop_assert!(matches!(known.phase(), Phase::Stopped | Phase::Reclaimed));
                    &known.row.labels
                }
                ResourceKind::Storage => {
                    let known = &fleet.storage[&row.identity];
                    prop_assert!(known.missing_since.is_none() && !known.is_gone());
                    prop_assert_eq!(&known.row.attachment, &Attachment::To(Vec::new()));
                    prop_assert_eq!(fleet.mounting(&row.identity).count(), 0);
                    &known.row.labels
                }
            };
            prop_assert!(labels.is_empty(), "protected, of an owner or not mine: {labels:?}");
            let bulk = plan(basis(&fleet, &settings), row.end(), &[row.identity.clone(), item_identity("team", "x")]);
            prop_assert_eq!(bulk.targets.len(), 1);
            prop_assert!(!bulk.risks().contains(&Risk::UseUnknown));
        }
    }

    /// What a row says of its end is what its plan says.
    #[test]
    fn a_row_and_its_plan_agree(fleet in any_fleet(), read_only in any::<bool>()) {
        let settings = settings_of(&fleet);
        let under_way = [identity("team", "i0"), item_identity("team", "v0")];
        let basis = Basis { under_way: &under_way, read_only, ..basis(&fleet, &settings) };
        for row in upkeep(basis).rows {
            let plan = plan(basis, row.end(), std::slice::from_ref(&row.identity));
            prop_assert_eq!(plan.left_out.first().map(|(_, _, hindrance)| hindrance), row.hindrance.as_ref());
            if let Some(target) = plan.targets.first() {
                prop_assert_eq!(Some(&target.effect), row.effect.as_ref());
                prop_assert_eq!(&target.name, row.shown_name());
            }
        }
    }
}
