//! The state: `world` is what the collector knows, `view` is one screen's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action as Deed, Identity};
use providers::money::Currency;
use tui_input::Input;

use super::action::{Action, Key};
use super::alerting::{Alerting, Budgets};
use super::budget_form::BudgetForm;
use super::columns::{ColumnChoice, Columns};
use super::figure::Figure;
use super::gauges::Gauges;
use super::guarding::Guarding;
use super::idle::IdleList;
use super::keymap::{Bindings, Place};
use super::layout::{Frame, SMALLEST, TROUBLE_LINES};
use super::lease_form::LeaseForm;
use super::leases::Leases;
use super::listing::{Line, Listing};
use super::message::{GroupName, Msg, Shown};
use super::palette::Palette;
use super::preferences::Preferences;
use super::ranges::RangeChoice;
use super::rows;
use super::save_form::{At, SaveForm};
use super::shelf::Shelf;
use super::spend::SpendView;
use super::spending::Spending;
use crate::rules::alerts::Topic;
use crate::rules::checkpoint::{RecipeRule, Saved};
use crate::rules::fleet::{Account, Fleet, Totals};
use crate::rules::memory::{Collector, LedgerNotice};
use crate::rules::plan::{Basis, Plan, SaveFirst};
use crate::rules::runway::Runway;
use crate::rules::saga::{OpId, Operation};
use crate::rules::settings::{Rules, Settings};
use crate::rules::spend::Exchange;
use crate::rules::streams::Streams;

#[derive(Clone, Debug)]
pub struct State {
    pub world: World,
    pub view: View,
    /// The program ends after this event.
    pub leaving: bool,
}

/// What the collector knows.
#[derive(Clone, Debug)]
pub struct World {
    pub fleet: Fleet,
    /// Sums over the fleet, as of the last time that the lines were brought up to date.
    pub totals: Totals,
    /// The account whose money ends first, kept with the fleet for the same reason.
    pub runway: Option<Runway>,
    pub settings: Settings,
    pub spending: Spending,
    /// What the config says of checkpoints; the first that fits counts.
    pub recipes: Vec<RecipeRule>,
    /// The last verified checkpoint of each resource that has one.
    pub saved: BTreeMap<Identity, Saved>,
    /// What is to happen to instances by itself.
    pub leases: Leases,
    /// When it was last looked whether a copy of a schedule is due.
    pub(super) copies_looked_at: Option<Timestamp>,
    /// Actions under way, and those that ended in this run or shortly before.
    pub operations: BTreeMap<OpId, Operation>,
    /// Who collects; `None` until the ledger has told.
    pub collector: Option<Collector>,
    /// When the claim on the ledger is renewed, or the ledger read again.
    pub ledger_due: Option<Timestamp>,
    pub ledger_notices: Vec<LedgerNotice>,
    /// The ledger has answered: what is shown is no longer only the config.
    pub remembered: bool,
    /// Runs one command and ends: polls and acts also beside a collector, but leaves writing the fleet to it.
    pub one_shot: bool,
    /// Such a one that looks into machines over `ssh` all the same.
    pub probes: bool,
    /// Nothing that changes anything is sent, on any path.
    pub read_only: bool,
    /// User and host, for the record of actions.
    pub by: String,
    /// What the machines do.
    pub gauges: Gauges,
    /// Which of them are looked into.
    pub streams: Streams,
    /// Limits on the spend, and how they stand.
    pub budgets: Budgets,
    /// What somebody should know of.
    pub alerting: Alerting,
    /// What the config wants done by itself.
    pub guarding: Guarding,
    /// Rows whose rate has just become another one, and when: their figure is bright for a moment.
    pub bright: BTreeMap<Identity, Timestamp>,
    /// When the first row that is gone is no longer shown, as of the last change.
    pub(super) prune_at: Option<Timestamp>,
    /// What the screen has yet to tell.
    pub(super) news: Vec<Msg>,
    /// Something that lines or sums are made from is no longer as it was when they were last made.
    pub(super) changed: bool,
    pub(super) next_op: i64,
}

/// So long a changed figure is bright.
pub const BRIGHT: SignedDuration = SignedDuration::from_secs(1);

impl World {
    pub fn new(accounts: Vec<Account>, rules: Rules, read_only: bool, by: String, now: Timestamp) -> Self {
        World {
            fleet: Fleet { accounts, ..Fleet::default() },
            totals: Totals::default(),
            runway: None,
            settings: Settings { rules, single: BTreeMap::new() },
            spending: Spending::new(TimeZone::UTC),
            recipes: Vec::new(),
            saved: BTreeMap::new(),
            leases: Leases::default(),
            copies_looked_at: None,
            operations: BTreeMap::new(),
            collector: None,
            ledger_due: None,
            ledger_notices: Vec::new(),
            remembered: false,
            one_shot: false,
            probes: false,
            read_only,
            by,
            gauges: Gauges::default(),
            streams: Streams::default(),
            budgets: Budgets::default(),
            alerting: Alerting::default(),
            guarding: Guarding::default(),
            bright: BTreeMap::new(),
            prune_at: None,
            news: Vec::new(),
            changed: false,
            next_op: now.as_microsecond(),
        }
    }

    /// In which zone days begin: told before anything else.
    pub fn use_zone(&mut self, zone: TimeZone) {
        self.spending = Spending::new(zone);
        super::update::track_billing(self);
    }

    /// This process opens streams: it collects, and goes on doing so, or was started for it.
    pub fn streams_open(&self) -> bool {
        (self.collects() && !self.one_shot) || self.probes
    }

    /// The action under way on a resource, if any.
    pub fn operation_on(&self, identity: &Identity) -> Option<&Operation> {
        self.operations.values().find(|operation| !operation.is_ended() && operation.target.identity == *identity)
    }

    /// Actions that are not ended.
    pub fn under_way(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values().filter(|operation| !operation.is_ended())
    }

    /// Resources that no such action may be begun on.
    pub fn busy(&self, action: Deed) -> Vec<Identity> {
        let busy = self.under_way().filter(|operation| !operation.gives_way_to(action));
        busy.map(|operation| operation.target.identity.clone()).collect()
    }

    /// What plans are made from; `under_way` is what [`World::busy`] tells.
    pub fn basis<'a>(&'a self, under_way: &'a [Identity], now: Timestamp) -> Basis<'a> {
        Basis {
            fleet: &self.fleet,
            settings: &self.settings,
            recipes: &self.recipes,
            saved: &self.saved,
            under_way,
            read_only: self.read_only,
            now,
        }
    }

    /// True when this process may write the fleet down.
    pub fn collects(&self) -> bool {
        self.collector == Some(Collector::Us)
    }

    /// True when this process may poll and act.
    pub fn acts(&self) -> bool {
        self.collects() || self.one_shot
    }
}

/// The views, by their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    #[default]
    Fleet,
    Spend,
    Storage,
    Budgets,
    Alerts,
    Activity,
}

impl Tab {
    /// In the order of their keys.
    pub const ALL: [Tab; 6] = [Tab::Fleet, Tab::Spend, Tab::Storage, Tab::Budgets, Tab::Alerts, Tab::Activity];
}

/// A key of the environment that could become an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedAccount {
    /// The digit that adds it, from 1: it stays its own when another one was added.
    pub number: u8,
    pub provider: String,
    pub variable: String,
}

/// Things about this screen that do not change while it runs.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub demo: bool,
    /// For days and clock times.
    pub zone: TimeZone,
    /// Shown first.
    pub currency: Currency,
    /// How sums of several currencies are joined.
    pub exchange: Exchange,
    /// Sections of the config that this version does not act on, and the like.
    pub notices: Vec<String>,
    /// The person's own folder; `None` where the system knows none.
    pub home: Option<PathBuf>,
    /// Where the config would be, for people who have none.
    pub config_path: String,
    pub keys: Bindings,
    /// What each action does where it can be asked for, in the language of this screen.
    pub sentences: BTreeMap<(Place, Action), String>,
    /// The mouse is listened to.
    pub mouse: bool,
}

impl Default for Fixed {
    /// A screen that nobody set up.
    fn default() -> Self {
        Fixed {
            demo: false,
            zone: TimeZone::UTC,
            currency: Currency::USD,
            exchange: Exchange::default(),
            notices: Vec::new(),
            home: None,
            config_path: String::new(),
            keys: Bindings::default(),
            sentences: BTreeMap::new(),
            mouse: true,
        }
    }
}

/// One screen's own state.
#[derive(Clone, Debug)]
pub struct View {
    pub fixed: Fixed,
    pub tab: Tab,
    pub width: u16,
    pub height: u16,
    pub fleet: Listing,
    /// What costs without working.
    pub storage: Listing,
    pub shelf: Shelf,
    pub spend: SpendView,
    /// The budgets, those first that need somebody.
    pub budgets: Listing,
    /// Open alerts, the worst first, then those that ended.
    pub alerts: Listing,
    /// Actions, newest first.
    pub activity: Listing,
    /// Which alerts have popped up on this screen, each with when it was told.
    pub popped: BTreeMap<Topic, Timestamp>,
    /// Something has just popped up: the terminal's bell is to tell.
    pub(super) rings: bool,
    /// How many things somebody should look at now: alerts that fire, and rows of the whole fleet that none is about.
    pub attention: usize,
    /// How many accounts are in trouble, or watched no longer: each has a line of its own, as far as there is room.
    pub trouble: usize,
    /// The account whose machines may perhaps be looked into, with how many there are: somebody should say.
    pub unasked: Option<(AccountName, usize)>,
    pub details: bool,
    /// How far back the charts of use reach.
    pub chart: ChartSpan,
    pub columns: ColumnChoice,
    pub modals: Vec<Modal>,
    pub message: Option<Shown>,
    pub last_key: Option<(Key, Timestamp)>,
    /// The press that this key began with, when it is being held.
    pub(super) last_press: Option<Press>,
    /// When the mouse was last used.
    pub(super) last_mouse: Option<Timestamp>,
    /// The sums of the header are not of the world as it is.
    pub(super) sums_stale: bool,
    /// The line that was last clicked, and when.
    pub(super) last_click: Option<(Line, Timestamp)>,
    /// What of this was last written down.
    pub(super) saved: Preferences,
    pub offered: Vec<OfferedAccount>,
}

impl View {
    pub fn new(fixed: Fixed, offered: Vec<OfferedAccount>) -> Self {
        View {
            fixed,
            tab: Tab::Fleet,
            width: 80,
            height: 24,
            fleet: Listing::default(),
            storage: Listing::default(),
            shelf: Shelf::default(),
            spend: SpendView::default(),
            budgets: Listing::default(),
            alerts: Listing::default(),
            activity: Listing::default(),
            popped: BTreeMap::new(),
            rings: false,
            attention: 0,
            trouble: 0,
            unasked: None,
            details: true,
            chart: ChartSpan::default(),
            columns: ColumnChoice::default(),
            modals: Vec::new(),
            message: None,
            last_key: None,
            last_press: None,
            last_mouse: None,
            sums_stale: true,
            last_click: None,
            saved: Preferences::default(),
            offered,
        }
    }

    /// Accounts from the environment are offered until all are added or somebody goes on.
    pub fn offers_shown(&self) -> bool {
        self.tab == Tab::Fleet && !self.offered.is_empty()
    }

    /// The list of the view that is shown.
    pub fn list(&self) -> &Listing {
        match self.tab {
            Tab::Fleet => &self.fleet,
            Tab::Spend => &self.spend.list,
            Tab::Storage => &self.storage,
            Tab::Budgets => &self.budgets,
            Tab::Alerts => &self.alerts,
            Tab::Activity => &self.activity,
        }
    }

    pub(super) fn list_mut(&mut self) -> &mut Listing {
        match self.tab {
            Tab::Fleet => &mut self.fleet,
            Tab::Spend => &mut self.spend.list,
            Tab::Storage => &mut self.storage,
            Tab::Budgets => &mut self.budgets,
            Tab::Alerts => &mut self.alerts,
            Tab::Activity => &mut self.activity,
        }
    }

    /// Rows of the screen that the list has.
    pub fn body_height(&self) -> u16 {
        self.frame().body
    }

    /// Too small to show anything: nothing is to be begun that nobody can see.
    pub fn is_too_small(&self) -> bool {
        self.width < SMALLEST.0 || self.height < SMALLEST.1
    }

    /// The one question is shown: where its key counts.
    pub fn asks(&self) -> bool {
        self.tab == Tab::Fleet && self.unasked.is_some() && !self.offers_shown()
    }

    /// Lines below the header: about accounts in trouble, and the one question.
    fn lines_above(&self) -> usize {
        self.trouble.min(TROUBLE_LINES) + usize::from(self.asks())
    }

    /// How the screen is shared out now.
    pub fn frame(&self) -> Frame {
        self.frame_of(self.width, self.height)
    }

    /// How a screen of some size is shared out.
    pub fn frame_of(&self, width: u16, height: u16) -> Frame {
        match self.tab {
            Tab::Spend => {
                let one_day = self.spend.shown.as_ref().is_some_and(|shown| shown.period.len() == 1);
                Frame::of_spend(width, height, self.lines_above(), self.spend.lines_above(width), one_day)
            }
            Tab::Budgets => {
                Frame::of_budgets(width, height, self.details, self.lines_above(), self.budgets.lines.len())
            }
            tab => Frame::of(width, height, self.details, tab == Tab::Fleet, self.lines_above()),
        }
    }
}

impl View {
    /// Where the columns of the fleet stand now.
    pub fn fleet_columns(&self, world: &World) -> Columns {
        let settings = &world.settings;
        let projects =
            !settings.rules.projects.is_empty() || settings.single.values().any(|setting| setting.project.is_some());
        let by_account = rows::grouping(world, &self.fleet) == GroupName::Account;
        let width = self.frame().list_width(self.width);
        Columns::fit(0, width, &self.columns, !by_account, projects)
    }
}

/// How far back charts of use reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChartSpan {
    /// Look by look.
    TenMinutes,
    #[default]
    Hour,
    Day,
}

impl ChartSpan {
    pub const ALL: [ChartSpan; 3] = [ChartSpan::TenMinutes, ChartSpan::Hour, ChartSpan::Day];

    pub fn minutes(self) -> i64 {
        match self {
            ChartSpan::TenMinutes => 10,
            ChartSpan::Hour => 60,
            ChartSpan::Day => 24 * 60,
        }
    }
}

/// The word that takes another host key for the right one.
pub const ACCEPT: &str = "accept";

/// A window over the view. Each carries what it shows; the topmost hears the keys.
#[derive(Clone, Debug)]
pub enum Modal {
    Help {
        scroll: u16,
    },
    Plan(Question),
    Filter {
        input: Input,
        before: String,
    },
    Palette(Palette),
    /// Which columns the fleet has; the one at this place is pointed at.
    Columns {
        at: usize,
    },
    /// To which project spend belongs.
    Assign(AssignForm),
    /// All that is known of one instance.
    Machine {
        identity: Identity,
        scroll: u16,
    },
    /// Whether this account's machines may be looked into.
    Consent {
        account: AccountName,
    },
    /// The host of an instance has another key than before; a word is typed to take it for the right one.
    HostKey {
        identity: Identity,
        input: Input,
    },
    /// Something that went wrong, in full.
    Problem {
        about: Problem,
        scroll: u16,
    },
    /// Which days the Spend view shows.
    Range(RangeChoice),
    /// Where a figure comes from.
    Figure(Box<Figure>),
    /// Alerts that have just fired.
    Alerts(AlertsPopup),
    /// Until when alerts are to be silent.
    Snooze(SnoozeChoice),
    /// A budget that is being made or changed.
    Budget(Box<BudgetForm>),
    /// What of a machine is to be brought to safety.
    Save(Box<SaveForm>),
    /// What is to happen to an instance by itself.
    Lease(Box<LeaseForm>),
    /// All that is idle, and what can be done with it.
    Idle(Box<IdleList>),
    /// Leaving while actions are under way.
    Leave,
}

/// Alerts that came up by themselves: the view beneath hears the keys until nobody has pressed one for a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertsPopup {
    /// As they came: the worst first of those that came together.
    pub topics: Vec<Topic>,
    /// The one that is pointed at.
    pub at: usize,
    pub opened_at: Timestamp,
    /// It hears keys.
    pub armed: bool,
    /// When another alert last came under the cursor by itself.
    pub jumped_at: Option<Timestamp>,
}

/// Until when alerts are to be silent: an hour, or the morning.
#[derive(Clone, Debug, PartialEq)]
pub struct SnoozeChoice {
    pub topics: Vec<Topic>,
    /// 0 for the hour, 1 for the morning.
    pub at: usize,
    pub morning: Timestamp,
}

/// A plan that somebody is asked about.
#[derive(Clone, Debug)]
pub struct Question {
    pub plan: Box<Plan>,
    /// What was pointed at when the question was opened, whatever the rows do meanwhile.
    pub asked: Vec<Identity>,
    /// What is brought to safety first.
    pub save: SaveFirst,
    /// What the other choice about that is.
    pub instead: Box<SaveFirst>,
    /// Nobody pointed at each of them: what is protected or not mine is left out, also when there is only one.
    pub bulk: bool,
    /// The text that is being typed.
    pub field: Option<Input>,
    /// The first of its targets on the screen.
    pub scroll: usize,
    /// When what it asks last became something else: it is then asked anew.
    pub changed: Option<Timestamp>,
}

/// A project that is being typed, and from when on it holds.
#[derive(Clone, Debug)]
pub struct AssignForm {
    /// What was pointed at when the form was opened.
    pub asked: Vec<Identity>,
    pub project: Input,
    pub from: Input,
    /// The second field is written in.
    pub in_from: bool,
    /// The time is the one that stood there at first: who types it begins anew.
    pub untouched: bool,
    /// The time could not be read.
    pub wrong: bool,
}

impl AssignForm {
    /// The field that is written in, for one who begins to type.
    pub fn field(&mut self) -> &mut Input {
        if !self.in_from {
            return &mut self.project;
        }
        if std::mem::take(&mut self.untouched) {
            self.from.reset();
        }
        &mut self.from
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// With an account.
    Account(AccountName),
    /// With an action.
    Operation(OpId),
    /// An alert, with its first sign.
    Alert(Topic, Timestamp),
    /// What the program last said.
    Message(Msg),
}

/// A key that went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Press {
    pub heard_by: Listener,
    /// It has come again since, being held.
    pub repeated: bool,
}

/// Who hears a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    View,
    /// A text that is being typed: every key that writes is text.
    Filter,
    Palette,
    NameField,
    /// A form of several fields.
    Form,
    Plan,
    Columns,
    /// A text that can be scrolled.
    Text,
    /// All about one instance: a text whose charts can reach further back.
    Machine,
    Consent,
    HostKey,
    Range,
    /// Days that are being typed.
    RangeField,
    Figure,
    AlertsPopup,
    Snooze,
    BudgetForm,
    /// The form of a checkpoint: paths that are taken in or left out.
    SaveForm,
    /// One of its fields.
    SaveField,
    LeaseForm,
    /// All that is idle.
    Idle,
    Leave,
}

impl Listener {
    pub fn is_text_field(self) -> bool {
        matches!(
            self,
            Listener::Filter
                | Listener::Palette
                | Listener::NameField
                | Listener::Form
                | Listener::RangeField
                | Listener::BudgetForm
                | Listener::SaveField
                | Listener::LeaseForm
                | Listener::HostKey
        )
    }
}

impl View {
    /// Who hears a key now: the topmost window, else the view.
    pub fn listener(&self) -> Listener {
        match self.modals.last() {
            None => Listener::View,
            Some(Modal::Filter { .. }) => Listener::Filter,
            Some(Modal::Palette(_)) => Listener::Palette,
            Some(Modal::Plan(Question { field: Some(_), .. })) => Listener::NameField,
            Some(Modal::Plan(_)) => Listener::Plan,
            Some(Modal::Assign(_)) => Listener::Form,
            Some(Modal::Columns { .. }) => Listener::Columns,
            Some(Modal::Help { .. } | Modal::Problem { .. }) => Listener::Text,
            Some(Modal::Machine { .. }) => Listener::Machine,
            Some(Modal::Consent { .. }) => Listener::Consent,
            Some(Modal::HostKey { .. }) => Listener::HostKey,
            Some(Modal::Range(choice)) if choice.in_field() => Listener::RangeField,
            Some(Modal::Range(_)) => Listener::Range,
            Some(Modal::Figure(_)) => Listener::Figure,
            // It came by itself: what is being typed was meant for the view.
            Some(Modal::Alerts(popup)) if !popup.armed => Listener::View,
            Some(Modal::Alerts(_)) => Listener::AlertsPopup,
            Some(Modal::Snooze(_)) => Listener::Snooze,
            Some(Modal::Budget(_)) => Listener::BudgetForm,
            Some(Modal::Save(form)) if matches!(form.at, At::Choice(_)) => Listener::SaveForm,
            Some(Modal::Save(_)) => Listener::SaveField,
            Some(Modal::Lease(_)) => Listener::LeaseForm,
            Some(Modal::Idle(_)) => Listener::Idle,
            Some(Modal::Leave) => Listener::Leave,
        }
    }
}
