//! A small world with a clock it is given: machines, disks, money, faults.
//!
//! Every provider's simulator serves its own wire from one of these. The world knows what happens (a stop
//! takes its time, a disk is charged on, a balance falls, a spot machine is taken); a simulator only
//! translates. Nothing here is used against a real provider.

mod bill;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Router, body};
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use tokio_util::sync::CancellationToken;

pub use bill::{Charge, Item};

/// The world's time: either set by hand, or running from a start at a speed.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Mutex<Ticking>>);

#[derive(Debug)]
enum Ticking {
    Manual(Timestamp),
    Running { from: Timestamp, since: Instant, speed: f64 },
}

impl SimClock {
    /// Stands still until it is advanced.
    pub fn manual(at: Timestamp) -> Self {
        SimClock(Arc::new(Mutex::new(Ticking::Manual(at))))
    }

    /// Runs from `from` on, `speed` simulated seconds for each real one.
    pub fn running(from: Timestamp, speed: f64) -> Self {
        SimClock(Arc::new(Mutex::new(Ticking::Running { from, since: Instant::now(), speed })))
    }

    pub fn now(&self) -> Timestamp {
        match &*self.0.lock().expect("the clock's lock is held for one expression only") {
            Ticking::Manual(at) => *at,
            Ticking::Running { from, since, speed } => {
                *from + SignedDuration::from_secs_f64(since.elapsed().as_secs_f64() * speed)
            }
        }
    }

    /// Moves a clock that is set by hand; a running one takes no notice.
    pub fn advance(&self, by: SignedDuration) {
        if let Ticking::Manual(at) = &mut *self.0.lock().expect("the clock's lock is held for one expression only") {
            *at += by;
        }
    }
}

/// Where a simulated machine is in its life. Each simulator has its own provider's words for these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Provisioning,
    Starting,
    Running,
    Stopping,
    Stopped,
    /// A start that waits for a free GPU.
    Queued,
    /// Taken by the provider: outbid or reclaimed.
    Outbid,
    /// The host does not answer.
    Offline,
    /// The boot went wrong.
    Failed,
    Releasing,
    /// No longer listed; kept so that asking by id can be answered as the provider does.
    Gone,
}

/// How busy a machine's GPUs are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Busy,
    Idle,
    /// Holds memory and waits for requests that do not come.
    Waits,
    /// So many of its cards work, the others do nothing.
    Few(u32),
    /// Up and down within minutes.
    Waves,
    /// Busy until a moment, idle from then on.
    Until(Timestamp),
    /// The provider sends no figures for it.
    Untold,
}

/// A simulated machine. Money is in the world's currency, per hour and for the whole machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub id: String,
    pub name: Option<String>,
    pub life: Life,
    /// What it turns into by itself, and when.
    pub next: Option<(Timestamp, Life)>,
    /// The provider's own name of the card.
    pub gpu: String,
    pub gpu_count: u32,
    /// Memory of one card.
    pub gpu_memory_gib: u32,
    pub compute_per_hour: Decimal,
    /// A higher price that its host asks for and nobody has accepted.
    pub asked_per_hour: Option<Decimal>,
    /// Disk that is lost on stop, in GB.
    pub scratch_gb: u32,
    /// Disk that outlives a stop, in GB.
    pub disk_gb: u32,
    /// Storage items mounted in it.
    pub mounts: Vec<String>,
    pub spot: bool,
    pub locked: bool,
    pub load: Load,
    pub region: String,
    pub address: String,
    pub ssh_port: u16,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    /// A start finds no free GPU.
    pub gpu_taken: bool,
    /// What it was before the world began; see [`Machine::lived`].
    pub past: Vec<(Timestamp, Life)>,
}

impl Machine {
    /// A running on-demand machine with one RTX 4090, to be changed with struct update syntax.
    pub fn new(id: &str, name: &str, now: Timestamp) -> Self {
        Machine {
            id: id.to_owned(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            life: Life::Running,
            next: None,
            gpu: "RTX 4090".to_owned(),
            gpu_count: 1,
            gpu_memory_gib: 24,
            compute_per_hour: Decimal::new(44, 2),
            asked_per_hour: None,
            scratch_gb: 20,
            disk_gb: 40,
            mounts: Vec::new(),
            spot: false,
            locked: false,
            load: Load::Busy,
            region: "EU-SE-1".to_owned(),
            address: "192.0.2.10".to_owned(),
            ssh_port: 22000,
            created_at: now - SignedDuration::from_hours(26),
            started_at: Some(now - SignedDuration::from_hours(26)),
            labels: BTreeMap::new(),
            gpu_taken: false,
            past: Vec::new(),
        }
    }

    /// Utilization of one card at a moment, 0.0 to 1.0; `None` where the machine tells nothing.
    pub fn utilization(&self, card: u32, now: Timestamp) -> Option<f64> {
        if self.life != Life::Running {
            return None;
        }
        let wave = |period: f64, phase: f64| ((now.as_second() as f64 / period + phase).sin() + 1.0) / 2.0;
        let phase = f64::from(card) * 0.7 + self.id.bytes().map(f64::from).sum::<f64>() / 7.0;
        match self.load {
            Load::Busy => Some(0.88 + 0.11 * wave(17.0, phase)),
            Load::Idle => Some(0.0),
            // It shows as nothing: what matters is that it is not nothing at all.
            Load::Waits => Some(0.004),
            Load::Few(busy) if card >= busy => Some(0.0),
            Load::Few(_) => Some(0.81 + 0.12 * wave(29.0, phase)),
            Load::Waves => Some(0.05 + 0.9 * wave(40.0, phase)),
            Load::Until(end) if now < end => Some(0.80 + 0.15 * wave(23.0, phase)),
            Load::Until(_) => Some(0.0),
            Load::Untold => None,
        }
    }
}

/// A simulated storage item.
#[derive(Clone, Debug)]
pub struct Store {
    pub id: String,
    pub name: String,
    pub size_gb: u32,
    pub region: String,
    pub created_at: Timestamp,
    /// No longer listed.
    pub gone: bool,
}

/// What goes wrong, and where.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The request's method; any when empty.
    pub method: &'static str,
    /// A part of the request's path; any when empty.
    pub path: String,
    /// How many requests it meets; then it is over.
    pub times: u32,
    pub harm: Harm,
}

#[derive(Clone, Debug)]
pub enum Harm {
    /// Answers this instead; nothing is done.
    Answer { status: u16, headers: Vec<(&'static str, String)>, content_type: &'static str, body: String },
    /// Answers late.
    Delay(Duration),
    /// Is carried out and answered once the gate is open.
    Hold(Gate),
    /// Is carried out at once, and answered once the gate is open.
    ApplyThenHold(Gate),
    /// Never answers; the request is not carried out.
    Hang,
    /// Carries it out, then never answers.
    ApplyThenHang,
    /// Breaks the connection without a word; the request is not carried out.
    Drop,
    /// Carries it out, then breaks the connection without a word.
    ApplyThenDrop,
    /// Sends half of the body, then breaks the connection.
    CutBody,
    /// Carries the request out, then answers with this status and an error body.
    ApplyThenError(u16),
    /// Carries the request out, then answers 200 with a page, as a gateway in between does.
    ApplyThenPage,
    /// Answers as if it had been carried out, and does nothing.
    AcceptThenIgnore,
}

/// What holds requests back until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(CancellationToken);

impl Gate {
    pub fn open(&self) {
        self.0.cancel();
    }

    async fn opened(&self) {
        self.0.cancelled().await;
    }
}

/// A request that the world has seen. Never holds the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    pub query: String,
    pub body: String,
}

/// Something that happens by itself.
#[derive(Clone, Debug)]
pub struct Happening {
    pub at: Timestamp,
    /// The machine that it happens to.
    pub machine: String,
    pub life: Life,
}

/// Everything that one simulated account holds.
#[derive(Clone, Debug)]
pub struct World {
    pub clock: SimClock,
    /// The only key that opens it.
    pub key: String,
    /// Who is behind the key.
    pub tenant: String,
    pub machines: Vec<Machine>,
    pub stores: Vec<Store>,
    pub balance: Decimal,
    /// USD per GB and month: what the world charges for disks of running and of stopped machines, and for stores.
    pub disk_running_month: Decimal,
    pub disk_stopped_month: Decimal,
    pub store_month: Decimal,
    /// USD per GB and month for the scratch disks of machines that are up; 0 where compute includes them.
    pub scratch_running_month: Decimal,
    pub hours_in_month: Decimal,
    /// What the bill says is so many times what the rates come to: 1 where they agree.
    pub billed_factor: Decimal,
    /// How far the provider's clock is ahead of the world's, in what its answers say of the time.
    pub date_ahead: SignedDuration,
    /// How long a machine takes from one state of rest to the next.
    pub transition: SignedDuration,
    pub faults: Vec<Fault>,
    pub happenings: Vec<Happening>,
    pub seen: Vec<Seen>,
    /// What was really done, in order: the id of a machine or a store, and the word of the action.
    pub deeds: Vec<(String, &'static str)>,
    settled_at: Timestamp,
    bill: bill::Bill,
}

impl World {
    pub fn new(clock: SimClock, key: &str) -> Self {
        World {
            settled_at: clock.now(),
            bill: bill::Bill::default(),
            billed_factor: Decimal::ONE,
            date_ahead: SignedDuration::ZERO,
            clock,
            key: key.to_owned(),
            tenant: "tenant-1".to_owned(),
            machines: Vec::new(),
            stores: Vec::new(),
            balance: Decimal::new(100, 0),
            disk_running_month: Decimal::new(10, 2),
            disk_stopped_month: Decimal::new(20, 2),
            store_month: Decimal::new(7, 2),
            scratch_running_month: Decimal::ZERO,
            hours_in_month: Decimal::new(720, 0),
            transition: SignedDuration::from_secs(6),
            faults: Vec::new(),
            happenings: Vec::new(),
            seen: Vec::new(),
            deeds: Vec::new(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets everything happen that is due, and charges for the time between.
    pub fn settle(&mut self) {
        let now = self.now();
        loop {
            let machine_next = self.machines.iter().filter_map(|machine| machine.next).map(|(at, _)| at).min();
            let happening_next = self.happenings.iter().map(|happening| happening.at).min();
            let Some(at) = [machine_next, happening_next].into_iter().flatten().min().filter(|at| *at <= now) else {
                break;
            };
            self.charge_until(at);
            for machine in &mut self.machines {
                if let Some((_, life)) = machine.next.take_if(|(due, _)| *due <= at) {
                    machine.turn(life, at);
                }
            }
            let due = self.happenings.extract_if(.., |happening| happening.at <= at).collect::<Vec<_>>();
            for happening in due {
                if let Some(machine) = self.machines.iter_mut().find(|machine| machine.id == happening.machine)
                    && machine.life != Life::Gone
                {
                    machine.next = None;
                    machine.turn(happening.life, at);
                }
            }
        }
        self.charge_until(now);
    }

    fn charge_until(&mut self, at: Timestamp) {
        let span = at.duration_since(self.settled_at);
        if span.is_positive() {
            let hours = Decimal::from(span.as_millis() as i64) / Decimal::from(3_600_000);
            self.balance -= self.burn() * hours;
            self.charge_bill(self.settled_at, at);
            self.settled_at = at;
        }
    }

    /// What the account burns now, per hour.
    pub fn burn(&self) -> Decimal {
        let machines: Decimal =
            self.machines.iter().map(|machine| self.compute_of(machine) + self.disk_of(machine)).sum();
        let stores: Decimal = self.stores.iter().map(|store| self.store_of(store)).sum();
        machines + stores
    }

    /// What a machine's compute costs now, per hour.
    pub fn compute_of(&self, machine: &Machine) -> Decimal {
        match machine.life {
            Life::Running | Life::Stopping => machine.compute_per_hour,
            _ => Decimal::ZERO,
        }
    }

    /// What a machine's own disks cost now, per hour.
    pub fn disk_of(&self, machine: &Machine) -> Decimal {
        let (month, scratch_month) = match machine.life {
            Life::Gone | Life::Offline => return Decimal::ZERO,
            Life::Stopped | Life::Outbid | Life::Queued | Life::Failed => (self.disk_stopped_month, Decimal::ZERO),
            _ => (self.disk_running_month, self.scratch_running_month),
        };
        let per_month = Decimal::from(machine.disk_gb) * month + Decimal::from(machine.scratch_gb) * scratch_month;
        per_month / self.hours_in_month
    }

    pub fn store_of(&self, store: &Store) -> Decimal {
        if store.gone { Decimal::ZERO } else { Decimal::from(store.size_gb) * self.store_month / self.hours_in_month }
    }

    /// Machines that a list shows.
    pub fn listed(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|machine| machine.life != Life::Gone)
    }

    pub fn machine(&mut self, id: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.id == id)
    }

    /// Begins a stop: stopping, then stopped.
    pub fn stop(&mut self, id: &str) {
        self.did(id, "stop");
        self.begin(id, Life::Stopping, Life::Stopped);
    }

    /// Begins a start: starting, then running; a machine whose GPU is taken waits instead.
    pub fn start(&mut self, id: &str) {
        self.did(id, "start");
        let taken = self.machine(id).is_some_and(|machine| machine.gpu_taken);
        if taken {
            if let Some(machine) = self.machine(id) {
                machine.life = Life::Queued;
                machine.next = None;
            }
        } else {
            self.begin(id, Life::Starting, Life::Running);
        }
    }

    /// Begins a release: releasing, then gone.
    pub fn release(&mut self, id: &str) {
        self.did(id, "release");
        self.begin(id, Life::Releasing, Life::Gone);
    }

    fn begin(&mut self, id: &str, way: Life, end: Life) {
        let due = self.now() + self.transition;
        if let Some(machine) = self.machine(id) {
            machine.life = way;
            machine.next = Some((due, end));
        }
    }

    /// Writes down that something was done to a machine or a store.
    pub fn did(&mut self, id: &str, action: &'static str) {
        self.deeds.push((id.to_owned(), action));
    }

    /// What was done to one machine or store, in order.
    pub fn deeds_on(&self, id: &str) -> Vec<&'static str> {
        self.deeds.iter().filter(|(of, _)| of == id).map(|(_, action)| *action).collect()
    }

    /// How many requests of a method went to a path that holds `part`.
    pub fn count(&self, method: &str, part: &str) -> usize {
        self.seen.iter().filter(|seen| seen.method == method && seen.path.contains(part)).count()
    }
}

impl Machine {
    fn turn(&mut self, life: Life, at: Timestamp) {
        match life {
            Life::Running if self.life != Life::Running => self.started_at = Some(at),
            Life::Stopped | Life::Outbid => self.started_at = None,
            _ => {}
        }
        self.life = life;
    }
}

/// A world that simulator and test share.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub fn new(mut world: World) -> Self {
        world.open_bill();
        Shared(Arc::new(Mutex::new(world)))
    }

    /// The world as it is now: everything due has happened.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        // A panic in another test's handler must not hide the state from the one that looks at it.
        let mut world = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        world.settle();
        world
    }

    pub fn fault(&self, method: &'static str, path: &str, times: u32, harm: Harm) {
        self.lock().faults.push(Fault { method, path: path.to_owned(), times, harm });
    }
}

/// A row of a simulator's own wire, as the adapter reads it.
pub fn read<T: serde::de::DeserializeOwned>(row: &serde_json::Value) -> T {
    serde_json::from_str(&row.to_string()).expect("a simulator's rows are those that its adapter reads")
}

/// A provider's wire, served on a loopback port until it is dropped.
#[derive(Debug)]
pub struct Simulator {
    pub address: SocketAddr,
    pub world: Shared,
    stop: CancellationToken,
}

impl Simulator {
    /// Serves `routes` over `world` on a free loopback port.
    pub async fn serve(routes: Router, world: Shared) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        Self::serve_on(listener, routes, world)
    }

    /// Serves `routes` over `world` on a listener of the caller's.
    pub fn serve_on(listener: tokio::net::TcpListener, routes: Router, world: Shared) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let routes = routes
            .layer(middleware::from_fn_with_state(world.clone(), weather))
            .layer(middleware::from_fn_with_state(world.clone(), dated));
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).with_graceful_shutdown(ended).await {
                tracing::error!(%error, "a simulator ended");
            }
        });
        Ok(Simulator { address, world, stop })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Tells the time as the provider's clock has it. A fault may tell another one.
async fn dated(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let there = {
        let world = shared.lock();
        world.now() + world.date_ahead
    };
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&there);
    if let Some(date) = date.ok().and_then(|date| HeaderValue::from_str(&date).ok()) {
        response.headers_mut().entry(axum::http::header::DATE).or_insert(date);
    }
    response
}

/// Writes down each request and lets the faults happen that were planned for it.
async fn weather(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, request_body) = request.into_parts();
    let bytes = body::to_bytes(request_body, 1 << 20).await.unwrap_or_default();
    let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
    let harm = {
        let mut world = shared.lock();
        let seen = Seen {
            at: world.now(),
            method: method.clone(),
            path: path.clone(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body: String::from_utf8_lossy(&bytes).into_owned(),
        };
        world.seen.push(seen);
        let met = world.faults.iter_mut().find(|fault| {
            fault.times > 0 && (fault.method.is_empty() || fault.method == method) && path.contains(&fault.path)
        });
        met.map(|fault| {
            fault.times -= 1;
            fault.harm.clone()
        })
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    match harm {
        None => next.run(request).await,
        Some(Harm::Answer { status, headers, content_type, body }) => {
            let mut response = answer(status, content_type, body);
            for (name, value) in headers {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    response.headers_mut().insert(HeaderName::from_static(name), value);
                }
            }
            response
        }
        Some(Harm::Delay(wait)) => {
            tokio::time::sleep(wait).await;
            next.run(request).await
        }
        Some(Harm::Hold(gate)) => {
            gate.opened().await;
            next.run(request).await
        }
        Some(Harm::ApplyThenHold(gate)) => {
            let response = next.run(request).await;
            gate.opened().await;
            response
        }
        Some(Harm::Hang) => std::future::pending().await,
        Some(Harm::ApplyThenHang) => {
            next.run(request).await;
            std::future::pending().await
        }
        Some(Harm::Drop) => drop_connection(),
        Some(Harm::ApplyThenDrop) => {
            next.run(request).await;
            drop_connection()
        }
        Some(Harm::CutBody) => cut(next.run(request).await).await,
        Some(Harm::ApplyThenError(status)) => {
            next.run(request).await;
            answer(
                status,
                "application/json",
                r#"{"error":"Something went wrong. Please try again later or contact support."}"#.to_owned(),
            )
        }
        Some(Harm::ApplyThenPage) => {
            next.run(request).await;
            answer(200, "text/html", "<html>Sign in</html>".to_owned())
        }
        Some(Harm::AcceptThenIgnore) => {
            let before = shared.lock().machines.clone();
            let stores = shared.lock().stores.clone();
            let deeds = shared.lock().deeds.clone();
            let response = next.run(request).await;
            let mut world = shared.lock();
            world.machines = before;
            world.stores = stores;
            world.deeds = deeds;
            response
        }
    }
}

/// Ends the task that serves this connection, and the connection with it. Nothing is printed: it is no panic of
/// anybody's making.
fn drop_connection() -> Response {
    std::panic::resume_unwind(Box::new("the connection is dropped"))
}

fn answer(status: u16, content_type: &str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(axum::http::header::CONTENT_TYPE, value);
    }
    response
}

/// Promises the whole body and breaks off in its middle.
async fn cut(response: Response) -> Response {
    let (mut parts, whole) = response.into_parts();
    let whole = body::to_bytes(whole, 1 << 24).await.unwrap_or_default();
    let half = Bytes::copy_from_slice(&whole[..whole.len() / 2]);
    parts.headers.insert(axum::http::header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let chunks = [Ok(half), Err(std::io::Error::other("cut off"))];
    Response::from_parts(parts, Body::from_stream(futures_stream(chunks)))
}

/// A stream of ready chunks, without a crate for it.
fn futures_stream<T: Send + Unpin + 'static>(
    chunks: impl IntoIterator<Item = T, IntoIter: Send + Unpin + 'static>,
) -> impl futures_core::Stream<Item = T> + Send + 'static {
    struct Ready<I>(I);
    impl<I: Iterator + Unpin> futures_core::Stream for Ready<I> {
        type Item = I::Item;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<I::Item>> {
            std::task::Poll::Ready(self.0.next())
        }
    }
    Ready(chunks.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (World, SimClock) {
        let start: Timestamp = "2026-11-30T09:00:00Z".parse().unwrap();
        let clock = SimClock::manual(start);
        let mut world = World::new(clock.clone(), "k");
        world.machines.push(Machine { compute_per_hour: Decimal::ONE, disk_gb: 0, ..Machine::new("a", "a", start) });
        (world, clock)
    }

    #[test]
    fn a_stop_takes_its_time_and_ends_the_charge() {
        let (mut world, clock) = world();
        world.stop("a");
        clock.advance(SignedDuration::from_secs(3));
        world.settle();
        assert_eq!(world.machines[0].life, Life::Stopping);
        clock.advance(SignedDuration::from_hours(10));
        world.settle();
        assert_eq!(world.machines[0].life, Life::Stopped);
        // Six seconds of stopping are charged, the ten hours after are not.
        let charged = Decimal::new(100, 0) - world.balance;
        assert_eq!(charged.round_dp(6), (Decimal::from(6) / Decimal::from(3600)).round_dp(6));
    }

    #[test]
    fn a_release_ends_in_absence() {
        let (mut world, clock) = world();
        world.release("a");
        clock.advance(SignedDuration::from_secs(7));
        world.settle();
        assert_eq!(world.listed().count(), 0);
    }

    #[test]
    fn what_was_planned_happens() {
        let (mut world, clock) = world();
        let at = world.now() + SignedDuration::from_secs(60);
        world.happenings.push(Happening { at, machine: "a".to_owned(), life: Life::Outbid });
        clock.advance(SignedDuration::from_secs(61));
        world.settle();
        assert_eq!(world.machines[0].life, Life::Outbid);
    }
}
