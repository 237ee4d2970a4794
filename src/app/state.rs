//! The state: `world` is what the collector knows, `view` is one screen's own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity};
use providers::money::Currency;
use tui_input::Input;

use super::action::Key;
use super::message::{GroupName, Msg, QuickName, Shown, SortName};
use super::rows::{GroupKey, GroupSum, Line};
use crate::rules::fleet::{Account, Fleet, Totals};
use crate::rules::memory::{Collector, LedgerNotice};
use crate::rules::plan::Plan;
use crate::rules::runway::Runway;
use crate::rules::saga::{OpId, Operation};
use crate::rules::settings::{Rules, Settings};

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
    /// Nothing that changes anything is sent, on any path.
    pub read_only: bool,
    /// User and host, for the record of actions.
    pub by: String,
    /// The last utilizations of each instance, newest last.
    pub trends: BTreeMap<Identity, VecDeque<f32>>,
    /// What the screen has yet to tell.
    pub(super) news: Vec<Msg>,
    /// Something that lines or sums are made from is no longer as it was when they were last made.
    pub(super) changed: bool,
    pub(super) next_op: i64,
}

/// How many past utilizations a trend holds.
pub const TREND: usize = 8;

impl World {
    pub fn new(accounts: Vec<Account>, rules: Rules, read_only: bool, by: String, now: Timestamp) -> Self {
        World {
            fleet: Fleet { accounts, ..Fleet::default() },
            totals: Totals::default(),
            runway: None,
            settings: Settings { rules, single: BTreeMap::new() },
            operations: BTreeMap::new(),
            collector: None,
            ledger_due: None,
            ledger_notices: Vec::new(),
            remembered: false,
            one_shot: false,
            read_only,
            by,
            trends: BTreeMap::new(),
            news: Vec::new(),
            changed: false,
            next_op: now.as_microsecond(),
        }
    }

    /// The action under way on a resource, if any.
    pub fn operation_on(&self, identity: &Identity) -> Option<&Operation> {
        self.operations.values().find(|operation| !operation.is_ended() && operation.target.identity == *identity)
    }

    /// Actions that are not ended.
    pub fn under_way(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values().filter(|operation| !operation.is_ended())
    }

    /// Resources that no other action may be begun on: one that is overdue gives way.
    pub fn busy(&self) -> Vec<Identity> {
        let busy = self.under_way().filter(|operation| !operation.is_overdue());
        busy.map(|operation| operation.target.identity.clone()).collect()
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
    Activity,
}

/// A key of the environment that could become an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedAccount {
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
    /// Sections of the config that this version does not act on, and the like.
    pub notices: Vec<String>,
    /// Where the config would be, for people who have none.
    pub config_path: String,
    /// The mouse is listened to.
    pub mouse: bool,
}

/// One screen's own state.
#[derive(Clone, Debug)]
pub struct View {
    pub fixed: Fixed,
    pub tab: Tab,
    pub width: u16,
    pub height: u16,
    /// The lines of the fleet as painted, computed when something changed.
    pub lines: Vec<Line>,
    /// The sums of each group among them.
    pub sums: BTreeMap<GroupKey, GroupSum>,
    /// How many rows of the whole fleet somebody should look at now.
    pub attention: usize,
    /// How many accounts are in trouble: each has a line of its own, as far as there is room.
    pub trouble: usize,
    /// How many rows the filters hide.
    pub hidden: usize,
    /// Where the cursor is, by identity and not by place.
    pub cursor: Option<Line>,
    /// The first line on the screen.
    pub top: usize,
    /// The cursor of the Activity view, newest first.
    pub activity: usize,
    pub marks: BTreeSet<Identity>,
    pub folded: BTreeSet<GroupKey>,
    pub filter: String,
    pub quick: QuickName,
    pub sort: SortName,
    /// What was chosen; by itself the fleet is grouped by account from twenty rows on.
    pub group: Option<GroupName>,
    pub details: bool,
    /// Places of the rows since they were last sorted, in the order of identities: nothing jumps while people
    /// look.
    pub ranks: Vec<(Identity, usize)>,
    pub modals: Vec<Modal>,
    pub message: Option<Shown>,
    pub last_key: Option<(Key, Timestamp)>,
    pub offered: Vec<OfferedAccount>,
    pub(super) lines_stale: bool,
    /// The lines were brought up to date without sorting them anew.
    pub(super) unsorted: bool,
    /// Where the cursor was, for when its line goes.
    pub(super) cursor_was: usize,
    /// When the cursor last came to another line without a key.
    pub(super) cursor_jumped: Option<Timestamp>,
}

impl View {
    pub fn new(fixed: Fixed, offered: Vec<OfferedAccount>) -> Self {
        View {
            fixed,
            tab: Tab::Fleet,
            width: 80,
            height: 24,
            lines: Vec::new(),
            sums: BTreeMap::new(),
            attention: 0,
            trouble: 0,
            hidden: 0,
            cursor: None,
            top: 0,
            activity: 0,
            marks: BTreeSet::new(),
            folded: BTreeSet::new(),
            filter: String::new(),
            quick: QuickName::All,
            sort: SortName::Attention,
            group: None,
            details: true,
            ranks: Vec::new(),
            modals: Vec::new(),
            message: None,
            last_key: None,
            offered,
            lines_stale: true,
            unsorted: false,
            cursor_was: 0,
            cursor_jumped: None,
        }
    }

    /// Accounts from the environment are offered until all are added or somebody goes on.
    pub fn offers_shown(&self) -> bool {
        self.tab == Tab::Fleet && !self.offered.is_empty()
    }

    /// The place of the cursor among the lines.
    pub fn cursor_at(&self) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        // The usual case first: the line is where it was.
        if self.lines.get(self.cursor_was) == Some(cursor) {
            return Some(self.cursor_was);
        }
        self.lines.iter().position(|line| line == cursor)
    }

    /// Rows of the screen that the list has.
    pub fn body_height(&self) -> u16 {
        self.frame().body
    }

    /// How the screen is shared out now.
    pub fn frame(&self) -> Frame {
        Frame::of(self.width, self.height, self.details, self.trouble)
    }

    /// The resource under the cursor; `None` on a group's line and on an empty screen.
    pub fn selected(&self) -> Option<&Identity> {
        match &self.cursor {
            Some(Line::Instance(identity)) => Some(identity),
            _ => None,
        }
    }
}

/// A window over the view. Each carries what it shows; the topmost hears the keys.
#[derive(Clone, Debug)]
pub enum Modal {
    Help {
        scroll: u16,
    },
    /// A plan: with `field`, its text is being typed. `scroll` is the first of its targets on the screen.
    Plan {
        plan: Box<Plan>,
        field: Option<Input>,
        scroll: usize,
    },
    Filter {
        input: Input,
        before: String,
    },
    /// What is wrong with an account, in full.
    Problem {
        account: AccountName,
        scroll: u16,
    },
    /// Leaving while actions are under way.
    Leave,
}

/// How the height of the screen is shared out, for painting and for moving alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Header and its rule.
    pub header: u16,
    /// Lines about accounts in trouble.
    pub trouble: u16,
    /// Rows of the list, its head not counted.
    pub body: u16,
    /// The details below the list, their rule counted; 0 when they stand at the side or are off.
    pub details: u16,
    /// Rule and footer.
    pub footer: u16,
    /// Width of the details at the side; 0 when they are below or off.
    pub side: u16,
}

impl Frame {
    /// From so many columns on the details stand at the side.
    const SIDE_FROM: u16 = 160;
    const SIDE: u16 = 56;
    const DETAILS: u16 = 8;

    pub fn of(width: u16, height: u16, details: bool, trouble: usize) -> Self {
        let (header, footer, head) = (2, 2, 1);
        let side = if details && width >= Self::SIDE_FROM { Self::SIDE } else { 0 };
        let trouble = trouble.min(3) as u16;
        let rest = height.saturating_sub(header + footer + head + trouble);
        // Below, the details never take more than half of what the list could have.
        let below = details && side == 0 && rest >= 2 * Self::DETAILS;
        let details = if below { Self::DETAILS } else { 0 };
        Frame { header, trouble, body: rest - details, details, footer, side }
    }
}
