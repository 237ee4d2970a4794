//! What several parts of one frame look up: actions by resource, freshness by account, words for a row.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, Instance, Market, Offer, Phase};
use providers::money::{Burn, Currency};
use providers::usage::Usage;

use super::format;
use super::look::Look;
use super::paint::{Run, run};
use super::text;
use super::theme::Role;
use crate::app::action::{Action as Meaning, Code, Key};
use crate::app::keymap::{Place, key_name};
use crate::app::message::Msg;
use crate::app::rows;
use crate::app::state::State;
use crate::rules::checkpoint::{Recipe, can_be_read};
use crate::rules::fleet::{Account, Freshness, Known};
use crate::rules::memory::Collector;
use crate::rules::plan::{Hindrance, barred, recipe_for};
use crate::rules::saga::{Operation, Outcome, Step};
use crate::rules::usage::{Idleness, Verdict};

/// How long the screen says that something was confirmed.
const CONFIRMED_SHOWN: SignedDuration = SignedDuration::from_secs(15);

/// One frame's view of the state. Made anew for each frame from accounts and actions alone, never from rows.
pub struct Scene<'a> {
    pub state: &'a State,
    pub look: &'a Look,
    pub now: Timestamp,
    under_way: BTreeMap<&'a Identity, &'a Operation>,
    confirmed: BTreeMap<&'a Identity, &'a Operation>,
    freshness: BTreeMap<&'a AccountName, Freshness>,
}

impl<'a> Scene<'a> {
    pub fn new(state: &'a State, look: &'a Look, now: Timestamp) -> Self {
        let world = &state.world;
        let under_way = world.under_way().map(|operation| (&operation.target.identity, operation)).collect();
        let confirmed = world
            .operations
            .values()
            .filter(|operation| match &operation.step {
                Step::Ended { at, outcome: Outcome::Done { .. } } => now.duration_since(*at) < CONFIRMED_SHOWN,
                _ => false,
            })
            .map(|operation| (&operation.target.identity, operation))
            .collect();
        let freshness =
            world.fleet.accounts.iter().map(|account| (&account.name, world.fleet.freshness(account, now))).collect();
        Scene { state, look, now, under_way, confirmed, freshness }
    }

    /// The action under way on a resource.
    pub fn operation(&self, identity: &Identity) -> Option<&'a Operation> {
        self.under_way.get(identity).copied()
    }

    /// The action on a resource that has just been proven.
    pub fn confirmed(&self, identity: &Identity) -> Option<&'a Operation> {
        self.confirmed.get(identity).copied()
    }

    pub fn freshness(&self, account: &AccountName) -> Freshness {
        self.freshness.get(account).copied().unwrap_or(Freshness::Never)
    }

    /// Whether figures of an account are not of now.
    pub fn is_old(&self, account: &AccountName) -> bool {
        matches!(self.freshness(account), Freshness::Never | Freshness::Stale | Freshness::Failed)
    }

    pub fn account(&self, name: &AccountName) -> Option<&'a Account> {
        self.state.world.fleet.account(name)
    }

    /// Shown first, and without its sign in the list.
    pub fn currency(&self) -> Currency {
        self.state.view.fixed.currency
    }

    pub fn since(&self, moment: Timestamp) -> String {
        format::since(moment, self.now, self.look.language)
    }

    pub fn moment(&self, at: Timestamp) -> String {
        format::moment(at, self.now, &self.state.view.fixed.zone, self.look.language)
    }

    /// The rates of a sum, with a mark where they are a lower bound; `None` when nothing is charged.
    pub fn total(&self, sum: &Burn, incomplete: bool) -> Option<String> {
        let text = format::burn(sum, self.currency(), self.look)?;
        Some(if incomplete { format!("{text}+") } else { text })
    }

    /// A message in words.
    pub fn message(&self, message: &Msg) -> String {
        text::message(message, self.look, self.currency())
    }

    /// An account as people know it: `runpod/team`, or one word where both are the same.
    pub fn account_title(&self, name: &AccountName) -> String {
        match self.account(name) {
            Some(account) if !name.as_str().contains(account.provider.as_str()) => {
                format!("{}/{name}", account.provider)
            }
            _ => name.to_string(),
        }
    }

    /// Its account, and its id where that says more than its name.
    pub fn whereabouts(&self, known: &Known<Instance>) -> String {
        let account = self.account_title(&known.identity.account);
        let id = known.row.id.as_str();
        if known.row.name.as_deref() == Some(id) { account } else { format!("{account}  {id}") }
    }

    /// The phase as painted.
    pub fn phase(&self, known: &Known<Instance>) -> Phase {
        rows::shown_phase(known, self.operation(&known.identity))
    }

    pub fn needs_you(&self, known: &Known<Instance>) -> bool {
        let world = &self.state.world;
        rows::needs_you(world, known, world.gauges.get(&known.identity), self.operation(&known.identity))
    }

    /// Charged for although it does no work.
    pub fn wastes(&self, known: &Known<Instance>) -> bool {
        match known.phase() {
            Phase::Stopped | Phase::Reclaimed => !known.rates().certain().is_zero(),
            _ => self.idles(known) && !matches!(known.row.market, Market::Reserved { .. }),
        }
    }

    /// It runs and was judged to do nothing.
    fn idles(&self, known: &Known<Instance>) -> bool {
        let idleness = self.state.world.idleness(&known.identity);
        known.phase() == Phase::Running && idleness.is_some_and(Idleness::wastes)
    }

    /// What an idle instance costs for nothing, and what it came to since it is idle; `None` of one that is not. What
    /// is paid ahead is no waste.
    pub fn wasted(&self, known: &Known<Instance>) -> Option<(String, Option<String>)> {
        if !self.idles(known) || !self.wastes(known) {
            return None;
        }
        let rates = known.rates().certain();
        let rate = format::burn(&rates, self.currency(), self.look)?;
        let so_far = self.state.world.wasted(&known.identity, self.now).map(|sums| {
            let mut sums = sums;
            sums.sort_by_key(|(currency, _)| (*currency != self.currency(), *currency));
            let sums =
                sums.iter().map(|(currency, sum)| format::spent_money(sum.amount(), *currency, self.look.glyphs));
            sums.collect::<Vec<_>>().join(" + ")
        });
        Some((rate, so_far))
    }

    /// What it does, as far as that is known.
    pub fn usage(&self, known: &'a Known<Instance>) -> Option<&'a Usage> {
        self.state.world.usage(known).filter(|_| self.phase(known) == Phase::Running)
    }

    fn verdict(&self, known: &Known<Instance>) -> Verdict {
        let idleness = self.state.world.idleness(&known.identity);
        idleness.map_or(Verdict::NotApplicable, |idleness| idleness.verdict)
    }

    /// The sign of a row's phase in its colour.
    pub fn phase_sign(&self, known: &Known<Instance>) -> Run {
        let phase = self.phase(known);
        if self.operation(&known.identity).is_some_and(Operation::is_saving) {
            return run(self.look.glyphs.under_way, Role::Accent);
        }
        let role = match phase {
            Phase::Failed | Phase::Unreachable | Phase::Reclaimed | Phase::Unknown => Role::Urgent,
            Phase::Stopping | Phase::Releasing | Phase::Provisioning => Role::Accent,
            Phase::Gone => Role::Dim,
            Phase::Stopped if self.wastes(known) => Role::Waste,
            Phase::Running if self.idles(known) => Role::Waste,
            Phase::Running | Phase::Stopped => Role::Plain,
        };
        let glyphs = self.look.glyphs;
        let sign = match (phase, self.verdict(known)) {
            (Phase::Running, Verdict::Idle) => glyphs.idle,
            (Phase::Running, Verdict::Underused | Verdict::Waiting) => glyphs.underused,
            (phase, _) => glyphs.phase(phase),
        };
        run(sign, role)
    }

    pub fn is_protected(&self, known: &Known<Instance>) -> bool {
        self.account(&known.identity.account)
            .is_some_and(|account| self.state.world.settings.protected(&account.provider, &known.identity, &known.row))
    }

    pub fn is_mine(&self, known: &Known<Instance>) -> bool {
        self.account(&known.identity.account)
            .is_some_and(|account| self.state.world.settings.mine(&account.provider, &known.identity, &known.row))
    }

    /// What keeps an action from an instance now, if anything: what its plan would say.
    pub fn hindrance(&self, known: &Known<Instance>, action: Action) -> Option<Hindrance> {
        if known.is_gone() || known.missing_since.is_some() {
            return Some(Hindrance::NotThere);
        }
        let world = &self.state.world;
        let Some(account) = self.account(&known.identity.account) else { return Some(Hindrance::NotThere) };
        let under_way = world.busy(action);
        let basis = world.basis(&under_way, self.now);
        barred(basis, account, &known.identity).or_else(|| match known.row.offers.of(action) {
            // It changes nothing, so that nobody has to offer it.
            _ if action == Action::Checkpoint => None,
            Offer::Yes(_) => None,
            Offer::No(refusal) => Some(Hindrance::Provider(refusal)),
        })
    }

    /// What of an instance would be brought to safety by the config; else why nothing can be.
    pub fn recipe(&self, known: &Known<Instance>) -> Result<&'a Recipe, Hindrance> {
        let world = &self.state.world;
        let provider = self.account(&known.identity.account).map(|account| &account.provider);
        let rule = provider.and_then(|provider| recipe_for(world.basis(&[], self.now), provider, &known.identity));
        match rule {
            _ if !can_be_read(known.phase()) => Err(Hindrance::CannotBeRead),
            _ if !known.row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct) => Err(Hindrance::NoAddress),
            None => Err(Hindrance::NoRecipe),
            Some(rule) => Ok(&rule.recipe),
        }
    }

    /// Another program collects and acts: nothing is begun from here.
    pub fn only_looks_on(&self) -> bool {
        let world = &self.state.world;
        !world.acts() && matches!(world.collector, Some(Collector::Other { .. }))
    }

    /// The first key of a meaning where it counts; empty when it has none.
    pub fn key_in(&self, place: Place, meaning: Meaning) -> String {
        let mut bindings = self.state.view.fixed.keys.all().iter();
        let binding = bindings.find(|binding| binding.place == place && binding.action == meaning);
        binding.and_then(|binding| binding.keys.first()).map_or_else(String::new, |key| self.shown_key(*key))
    }

    /// The first key of a meaning, wherever it counts.
    pub fn key_of(&self, meaning: Meaning) -> String {
        self.state.view.fixed.keys.key_of(meaning).map_or_else(String::new, |key| self.shown_key(key))
    }

    /// A key's name in the signs of this terminal.
    pub fn shown_key(&self, key: Key) -> String {
        let [up, down, left, right] = self.look.glyphs.arrows;
        match key.code {
            Code::Up => up.to_owned(),
            Code::Down => down.to_owned(),
            Code::Left => left.to_owned(),
            Code::Right => right.to_owned(),
            _ => key_name(key),
        }
    }
}

/// A name for a row: the id stands in where there is none.
pub fn name_of(known: &Known<Instance>) -> &str {
    known.row.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(known.row.id.as_str())
}
