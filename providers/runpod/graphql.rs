//! What only GraphQL tells: balance and tenant, list price and market, temperature and power.
//!
//! It is announced to end early in 2027. Where it is gone, refuses the query or answers with a page, this is
//! "not told" and no fault of the account; where it stumbles, the balance failed and the rest waits.

use std::collections::HashMap;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::json;

use super::{BASE_URL, EXTRAS_TIMEOUT, SPACING_MS, wire};
use crate::error::{ErrorKind, ProviderError};
use crate::http::{Call, Http, Lane};
use crate::model::{Balance, Tenant};
use crate::money::{Currency, Money, Rate};
use crate::provider::{Access, Reading};
use crate::text::{clean_opt, excerpt};

const PATH: &str = "/graphql";
const MONEY: &str = "money";
const PODS: &str = "graph pods";

/// Both queries stay apart: a field that goes away must not take the balance with it.
const MONEY_QUERY: &str = "query { myself { id clientBalance currentSpendPerHr } }";
const PODS_QUERY: &str = "query { myself { pods { id podType costPerHr adjustedCostPerHr lastStatusChange \
     latestTelemetry { time averageGpuMetrics { percentUtilization temperatureCelcius memoryUtilization powerWatts } \
     individualGpuMetrics { percentUtilization temperatureCelcius memoryUtilization powerWatts } } } } }";

/// After a failure the extras are left alone for this long; the lists go on without them.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// What GraphQL told of one instance.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    pub spot: bool,
    /// USD per hour of the whole instance by the price list; told while stopped too.
    pub list_price: Option<Decimal>,
    /// The same after savings plans.
    pub adjusted_price: Option<Decimal>,
    pub note: Option<String>,
    /// `None` when the host sent none, or the last refresh failed.
    pub telemetry: Option<wire::Telemetry>,
}

/// The way to GraphQL, with what it last told.
pub struct Extras {
    /// Apart from the REST client, so that a wait that GraphQL asks for does not stop the lists.
    http: Http,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pods: HashMap<String, Extra>,
    not_before: Option<Timestamp>,
}

impl Extras {
    pub fn new(access: &Access) -> Result<Self, ProviderError> {
        let mut access = access.clone();
        access.timeout = access.timeout.min(EXTRAS_TIMEOUT);
        let lanes = [MONEY, PODS].map(|name| Lane::new(name, SPACING_MS));
        Ok(Extras { http: Http::new(&access, BASE_URL, &lanes, |_| None)?, state: Mutex::default() })
    }

    /// What was last told of an instance.
    pub fn of(&self, id: &str) -> Option<Extra> {
        self.state().pods.get(id).cloned()
    }

    /// Asks about all instances. A failure changes no market and no price, both stay true; only the live
    /// figures go.
    pub async fn refresh(&self, now: Timestamp) {
        if self.state().not_before.is_some_and(|moment| now < moment) {
            return;
        }
        let told = self.pods().await;
        let mut state = self.state();
        match told {
            Ok(pods) => *state = State { pods, not_before: None },
            Err(error) => {
                tracing::debug!(%error, "GraphQL tells nothing about instances");
                state.not_before = Some(now + PAUSE);
                state.pods.values_mut().for_each(|extra| extra.telemetry = None);
            }
        }
    }

    async fn pods(&self) -> Result<HashMap<String, Extra>, ProviderError> {
        let call = Call::read_by_post(PATH, json!({ "query": PODS_QUERY })).lane(PODS);
        let answer = self.http.send(&call).await?;
        let reply: wire::Reply<wire::Myself<wire::GraphPods>> = answer.read()?;
        let Some(rows) = reply.data.and_then(|data| data.myself).and_then(|myself| myself.pods) else {
            let message = "the query was refused".to_owned();
            return Err(answer.error(ErrorKind::Refused { status: 200, code: None, message, retry_after: None }));
        };
        let (rows, _) = answer.rows::<wire::GraphPod>("data.myself.pods", &rows);
        Ok(rows.into_iter().map(|pod| (pod.id.clone(), extra(pod))).collect())
    }

    /// Balance and tenant.
    pub async fn money(&self, asked: bool) -> (Reading<Balance>, Reading<Tenant>) {
        if !asked {
            return (Reading::NotAsked, Reading::NotAsked);
        }
        let call = Call::read_by_post(PATH, json!({ "query": MONEY_QUERY })).lane(MONEY);
        let told = match self.http.json::<wire::Reply<wire::Myself<wire::Money>>>(&call).await {
            Ok(reply) => reply.data.and_then(|data| data.myself),
            Err(error) if is_gone(&error.kind) => None,
            Err(error) => return (Reading::Failed(error.clone()), Reading::Failed(error)),
        };
        let Some(money) = told else { return (Reading::NotTold, Reading::NotTold) };
        let tenant = match clean_opt(money.id.as_deref()) {
            Some(id) => Reading::Known(Tenant { id }),
            None => Reading::NotTold,
        };
        let usd = |amount| Rate::per_hour(amount, Currency::USD);
        let balance = match money.client_balance {
            Some(cash) => Reading::Known(Balance {
                cash: Money::new(cash, Currency::USD),
                voucher: None,
                provider_burn: money.current_spend_per_hr.and_then(usd),
            }),
            // The field is there by definition: without it the balance is unknown, and surely not 0.
            None => {
                let (path, message) = ("data.myself.clientBalance".to_owned(), "no amount".to_owned());
                Reading::Failed(self.http.error(&call, ErrorKind::Decode { path, message }))
            }
        };
        (balance, tenant)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("the extras' lock is held for single assignments only")
    }
}

fn extra(pod: wire::GraphPod) -> Extra {
    Extra {
        spot: matches!(pod.pod_type.as_deref(), Some("INTERRUPTABLE" | "INTERRUPTIBLE" | "BID")),
        list_price: pod.cost_per_hr,
        adjusted_price: pod.adjusted_cost_per_hr,
        note: pod.last_status_change.map(|text| excerpt(&text, 120)).filter(|text| !text.is_empty()),
        telemetry: pod.latest_telemetry,
    }
}

/// True when GraphQL no longer answers such a query, however it says so.
fn is_gone(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Retired { .. } | ErrorKind::Refused { .. } | ErrorKind::NotJson { .. } | ErrorKind::Redirected
    )
}
