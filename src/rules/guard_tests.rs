use proptest::prelude::*;
use providers::model::{DataKind, Effect, Instance, Offer, Offers, Phase, Refusal, SshEndpoint};
use rstest::rstest;

use super::*;
use crate::rules::checkpoint::{KeepRule, Method, QUIET, Recipe, RecipeRule};
use crate::rules::fleet::Fleet;
use crate::rules::samples::{at, disk, effect, fleet, identity, instance, listed};
use crate::rules::settings::{Setting, Settings};

const STOP: Way = Way { action: Action::Stop, saves: false };
const RELEASE: Way = Way { action: Action::Release, saves: true };

fn holds() -> Sign {
    Sign::Holds(Cause::Idle { since: at("07:00:00") })
}

fn watch(stage: Stage) -> Watch {
    Watch {
        guard: "idle".to_owned(),
        identity: identity("team", "a"),
        name: "a".to_owned(),
        cause: Cause::Idle { since: at("07:00:00") },
        since: at("09:00:00"),
        tries: 0,
        stage,
    }
}

fn counting(until: &str) -> Stage {
    Stage::Counting { until: at(until), way: STOP }
}

fn acting(way: Way) -> Stage {
    Stage::Acting { op: OpId(1), way }
}

/// A look at a machine of which all speaks for the guard.
fn seen(sign: &Sign) -> Seen<'_> {
    Seen {
        sign,
        allowed: true,
        ready: true,
        vetoed: false,
        acts: true,
        asked_at: Some(at("10:00:00")),
        course: Course::None,
    }
}

#[rstest]
#[case::before_its_end(counting("10:00:01"), Verdict::Stay)]
#[case::at_its_end(counting("10:00:00"), Verdict::Act)]
#[case::in_time(counting("09:50:00"), Verdict::Act)]
#[case::after_a_sleep(counting("09:49:59"), Verdict::Begin)]
#[case::what_could_not_be_done_may_be_now(Stage::Barred { why: Hindrance::NoRecipe }, Verdict::Begin)]
#[case::a_proposal_becomes_a_countdown(Stage::Proposed, Verdict::Begin)]
#[case::a_veto_that_ended(Stage::Vetoed, Verdict::Begin)]
#[case::it_acts_once(Stage::Done, Verdict::Stay)]
#[case::it_tries_no_more(Stage::Failed { way: STOP, why: Failure::Unproven }, Verdict::Stay)]
#[case::what_was_never_written_down_was_never_begun(acting(STOP), Verdict::Begin)]
fn a_guard_that_is_called_for_goes_on(#[case] stage: Stage, #[case] expected: Verdict) {
    assert_eq!(judge(Some(&watch(stage)), seen(&holds()), at("10:00:00")), expected);
}

#[test]
fn a_guard_begins_only_with_what_is_known_and_allowed() {
    let (sign, now) = (holds(), at("10:00:00"));
    let all = seen(&sign);
    assert_eq!(judge(None, all, now), Verdict::Begin);
    assert_eq!(judge(None, Seen { acts: false, ..all }, now), Verdict::Turn(Stage::Proposed));
    assert_eq!(judge(None, Seen { vetoed: true, ..all }, now), Verdict::Turn(Stage::Vetoed));
    assert_eq!(judge(None, Seen { allowed: false, ..all }, now), Verdict::Stay);
    assert_eq!(judge(None, Seen { ready: false, ..all }, now), Verdict::Stay);
    for sign in [Sign::Over, Sign::Unknown] {
        assert_eq!(judge(None, seen(&sign), now), Verdict::Stay);
    }
}

#[test]
fn a_countdown_that_ran_out_asks_for_vetoes_before_it_acts() {
    let (sign, now, watch) = (holds(), at("10:00:00"), watch(counting("09:59:58")));
    let asked = |asked_at| judge(Some(&watch), Seen { asked_at, ..seen(&sign) }, now);
    assert_eq!(asked(None), Verdict::Ask);
    assert_eq!(asked(Some(at("09:59:57"))), Verdict::Ask, "what was known before its end says nothing of its end");
    assert_eq!(asked(Some(at("10:00:01"))), Verdict::Ask, "the clock was set back");
    assert_eq!(asked(Some(at("09:59:58"))), Verdict::Act);
}

#[rstest]
#[case::proposed(Stage::Proposed)]
#[case::counting(counting("10:05:00"))]
#[case::barred(Stage::Barred { why: Hindrance::NoRecipe })]
#[case::vetoed(Stage::Vetoed)]
#[case::done(Stage::Done)]
#[case::failed(Stage::Failed { way: STOP, why: Failure::Unproven })]
fn what_is_over_or_no_longer_allowed_is_forgotten(#[case] stage: Stage) {
    let (sign, now, watch) = (holds(), at("10:00:00"), watch(stage));
    assert_eq!(judge(Some(&watch), seen(&Sign::Over), now), Verdict::Forget);
    assert_eq!(judge(Some(&watch), Seen { allowed: false, ..seen(&sign) }, now), Verdict::Forget);
    assert_eq!(judge(Some(&watch), seen(&Sign::Unknown), now), Verdict::Stay);
}

#[rstest]
#[case::over(Sign::Over, true, false, Verdict::TakeBack)]
#[case::protected(holds(), false, false, Verdict::TakeBack)]
#[case::vetoed(holds(), true, true, Verdict::TakeBack)]
#[case::not_known(Sign::Unknown, true, false, Verdict::Stay)]
#[case::still_so(holds(), true, false, Verdict::Stay)]
fn an_action_that_is_wanted_no_more_is_taken_back_while_it_can_be(
    #[case] sign: Sign,
    #[case] allowed: bool,
    #[case] vetoed: bool,
    #[case] expected: Verdict,
) {
    let (now, watch) = (at("10:00:00"), watch(acting(RELEASE)));
    let look = |can_be_taken_back| {
        let course = Course::UnderWay { can_be_taken_back };
        judge(Some(&watch), Seen { allowed, vetoed, course, ..seen(&sign) }, now)
    };
    assert_eq!(look(true), expected);
    assert_eq!(look(false), Verdict::Stay, "what was sent is seen to its end");
}

#[rstest]
#[case::done(STOP, Outcome::Done { despite: None }, Verdict::Turn(Stage::Done))]
#[case::a_person_took_it_back(STOP, Outcome::NotSent(NotSent::TakenBack), Verdict::Turn(Stage::Done))]
#[case::no_checkpoint(RELEASE, Outcome::NotSaved(Trouble::Stalled), Verdict::StopInstead)]
#[case::no_checkpoint_for_a_stop(
    Way { action: Action::Stop, saves: true },
    Outcome::NotSaved(Trouble::Stalled),
    Verdict::Turn(Stage::Failed {
        way: Way { action: Action::Stop, saves: true },
        why: Failure::NotSaved(Trouble::Stalled),
    })
)]
#[case::nothing_was_sent(RELEASE, Outcome::NotSent(NotSent::TooLate), Verdict::Begin)]
#[case::refused(
    STOP,
    Outcome::Refused("no".to_owned()),
    Verdict::Turn(Stage::Failed { way: STOP, why: Failure::Refused("no".to_owned()) })
)]
fn what_an_action_came_to_is_drawn_from_its_end(#[case] way: Way, #[case] outcome: Outcome, #[case] expected: Verdict) {
    let sign = holds();
    let look = Seen { course: Course::Ended(&outcome), ..seen(&sign) };
    assert_eq!(judge(Some(&watch(acting(way))), look, at("10:00:00")), expected);
}

#[test]
fn what_could_not_be_sent_three_times_is_given_up() {
    let (sign, outcome) = (holds(), Outcome::NotSent(NotSent::CouldNotLook("refused".to_owned())));
    let look = Seen { course: Course::Ended(&outcome), ..seen(&sign) };
    let verdict = |tries| judge(Some(&Watch { tries, ..watch(acting(STOP)) }), look, at("10:00:00"));
    assert_eq!((verdict(0), verdict(1)), (Verdict::Begin, Verdict::Begin));
    assert!(matches!(verdict(2), Verdict::Turn(Stage::Failed { .. })));
}

#[rstest]
#[case::said_after_it_began(None, "09:30:00", true)]
#[case::said_before_it_came_again(None, "10:30:00", false)]
#[case::for_a_time(Some("11:00:00"), "10:30:00", true)]
#[case::that_time_is_over(Some("10:45:00"), "09:30:00", false)]
fn a_veto_holds_for_its_time_or_until_it_comes_again(
    #[case] until: Option<&str>,
    #[case] since: &str,
    #[case] expected: bool,
) {
    let veto = Veto { said_at: at("10:00:00"), until: until.map(at), by: "ana@desk".to_owned() };
    assert_eq!(veto.holds(at(since), at("10:50:00")), expected);
}

fn stages() -> impl Strategy<Value = Option<Stage>> {
    let way = prop_oneof![Just(STOP), Just(RELEASE)];
    prop::option::of(prop_oneof![
        Just(Stage::Proposed),
        Just(Stage::Vetoed),
        Just(Stage::Done),
        Just(Stage::Barred { why: Hindrance::NoRecipe }),
        way.clone().prop_map(acting),
        (0_i64..7200, way).prop_map(|(second, way)| {
            Stage::Counting { until: at("09:00:00") + SignedDuration::from_secs(second), way }
        }),
    ])
}

proptest! {
    #[test]
    fn a_guard_acts_only_on_what_is_known_allowed_counted_down_and_not_forbidden(
        stage in stages(),
        sign in prop_oneof![Just(holds()), Just(Sign::Over), Just(Sign::Unknown)],
        flags in any::<[bool; 4]>(),
        asked in prop::option::of(0_i64..7200),
    ) {
        let now = at("10:00:00");
        let [allowed, ready, vetoed, acts] = flags;
        let asked_at = asked.map(|second| at("09:00:00") + SignedDuration::from_secs(second));
        let look = Seen { sign: &sign, allowed, ready, vetoed, acts, asked_at, course: Course::None };
        let watch = stage.map(watch);
        if judge(watch.as_ref(), look, now) == Verdict::Act {
            let Some(Watch { stage: Stage::Counting { until, .. }, .. }) = watch else {
                panic!("it acts without a countdown");
            };
            prop_assert!(until <= now && now.duration_since(until) <= OVERDUE);
            prop_assert!(asked_at.is_some_and(|at| at >= until));
            prop_assert!(matches!(sign, Sign::Holds(_)) && allowed && ready && acts && !vetoed);
        }
    }
}

/// What a guard may do to a machine whose provider offers this and that.
fn way_of(stop: Offer, release: Offer, recipe: bool, address: bool, action: Action) -> Result<Way, Hindrance> {
    let ssh = address.then(|| SshEndpoint::new("root", "203.0.113.7", 22, true).unwrap());
    let fleet = over(Instance { ssh, ..offering(stop, release) });
    let recipe = recipe.then(|| RecipeRule {
        recipe: Recipe {
            name: "default".to_owned(),
            paths: vec!["/out".to_owned()],
            method: Method::Copy { to: "/copies".to_owned() },
            prepare: None,
            quiet: QUIET,
        },
        scope: Scope::default(),
        every: None,
        keep: KeepRule::default(),
    });
    let (settings, recipes) = (Settings::default(), Vec::from_iter(recipe));
    let basis = Basis { recipes: &recipes, ..crate::rules::samples::basis(&fleet, &settings, at("09:00:10")) };
    way(basis, action, &identity("team", "a")).map(|plan| Way::of(&plan))
}

fn offering(stop: Offer, release: Offer) -> Instance {
    let offers = Offers { stop, start: no(), restart: no(), release };
    Instance { offers, ..instance("a", Phase::Running, "1") }
}

fn over(row: Instance) -> Fleet {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![row]), at("09:00:00"));
    fleet
}

fn keeps() -> Offer {
    Offer::Yes(effect("0.01", vec![]))
}

fn loses() -> Offer {
    Offer::Yes(Effect { lost: vec![disk(DataKind::VolumeDisk)], ..effect("0", vec![]) })
}

fn no() -> Offer {
    Offer::No(Refusal::NotOffered)
}

#[rstest]
#[case::with_a_checkpoint(keeps(), loses(), true, true, Ok(RELEASE))]
#[case::without_a_recipe_it_stops(keeps(), loses(), false, true, Ok(STOP))]
#[case::without_an_address_it_stops(keeps(), loses(), true, false, Ok(STOP))]
#[case::without_a_stop_it_only_alerts(no(), loses(), false, true, Err(Hindrance::Provider(Refusal::NotOffered)))]
#[case::a_stop_that_erases_is_none_without_a_checkpoint(loses(), loses(), false, true, Err(Hindrance::NoRecipe))]
#[case::nothing_to_lose_is_no_release_either(keeps(), keeps(), false, true, Ok(STOP))]
fn a_guard_releases_only_with_a_checkpoint_and_stops_otherwise(
    #[case] stop: Offer,
    #[case] release: Offer,
    #[case] recipe: bool,
    #[case] address: bool,
    #[case] expected: Result<Way, Hindrance>,
) {
    assert_eq!(way_of(stop, release, recipe, address, Action::Release), expected);
}

#[rstest]
#[case::keeps(keeps(), true, Ok(STOP))]
#[case::erases(loses(), true, Ok(Way { action: Action::Stop, saves: true }))]
#[case::erases_what_nothing_saves(loses(), false, Err(Hindrance::NoRecipe))]
fn a_guard_that_stops_never_releases(
    #[case] stop: Offer,
    #[case] recipe: bool,
    #[case] expected: Result<Way, Hindrance>,
) {
    assert_eq!(way_of(stop, loses(), recipe, true, Action::Stop), expected);
}

#[test]
fn a_protected_machine_is_left_alone_also_when_it_is_the_only_one() {
    let fleet = over(offering(keeps(), no()));
    let mut settings = Settings::default();
    let protected = Setting { protected: Some(true), ..Setting::default() };
    settings.single.insert(identity("team", "a"), protected);
    let basis = crate::rules::samples::basis(&fleet, &settings, at("09:00:10"));
    assert_eq!(way(basis, Action::Stop, &identity("team", "a")).err(), Some(Hindrance::Protected));
}
