//! All accounts asked at once, by the real runtime over HTTP.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use providers::sim::{Fault, Harm, Seen, Shared, SimClock, Simulator, World as Simulated};
use rentop::app::Event;
use rentop::app::event::WorldEvent;
use rentop::app::state::{Fixed, State, View, World};
use rentop::config::{AccountConfig, Config, KeySource, Language};
use rentop::rules::fleet::Account;
use rentop::rules::memory::Owner;
use rentop::rules::schedule::Pacing;
use rentop::rules::settings::Rules;
use rentop::runtime::accounts::Accounts;
use rentop::runtime::channels::Channels;
use rentop::runtime::checkpoint::Copies;
use rentop::runtime::effects::Performer;
use rentop::runtime::errand::Errand;
use rentop::runtime::jobs::Jobs;
use rentop::runtime::keeper::Keeper;
use rentop::runtime::streams::Streams;
use rentop::runtime::{Inbox, clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::measure::{Judged, Measured};
use crate::program::machines_of;
use crate::rented;
use crate::support::KEY;

const ACCOUNTS: usize = 50;
const EACH: usize = 200;
const ROUNDS: usize = 12;

struct Served {
    provider: &'static str,
    simulator: Simulator,
    /// What one refresh asks of it.
    requests: Vec<Seen>,
}

/// The time from asking all accounts to the last answer taken in, less the time of the slowest answer.
pub fn refresh() -> Vec<Measured> {
    let runtime = |name: &str| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build()
    };
    let (servers, own) = (runtime("servers").expect("a runtime"), runtime("own").expect("a runtime"));
    let mut served = servers.block_on(serve());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut errand = own.block_on(async { errand(folder.path(), &served) });
    // First connections are made, tenants known, and every account has been asked for all there is.
    own.block_on(async {
        errand.start();
        errand
            .run_until(|state| state.world.fleet.instances.len() == ACCOUNTS * EACH && all_answered(state))
            .await
            .expect("no task fails");
    });
    served.iter().for_each(|served| served.simulator.world.lock().seen.clear());
    own.block_on(refresh_once(&mut errand));
    servers.block_on(keep_answers(&mut served));

    let (mut slowest, mut over) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Longer than the least time between two requests at any provider.
        std::thread::sleep(Duration::from_millis(1100));
        let alone = servers.block_on(slowest_answer(&served));
        std::thread::sleep(Duration::from_millis(1100));
        let began = Instant::now();
        own.block_on(refresh_once(&mut errand));
        let all = began.elapsed();
        slowest.push(alone);
        over.push(all.saturating_sub(alone));
    }
    errand.end();
    own.shutdown_background();
    vec![
        Measured::times("refresh of 50 × 200 instances, beyond the slowest", Judged::Median, 100.0, &over),
        Measured::times("  the slowest account's answer, to a plain client", Judged::Median, 1000.0, &slowest).beside(),
    ]
}

async fn serve() -> Vec<Served> {
    let mut served = Vec::new();
    for n in 0..ACCOUNTS {
        let provider = if n % 2 == 0 { "runpod" } else { "lambda" };
        let mut world = Simulated::new(SimClock::manual(Timestamp::now()), KEY);
        world.tenant = format!("tenant-{n}");
        world.machines = machines_of(provider, EACH, world.now());
        let world = Shared::new(world);
        let routes = match provider {
            "runpod" => providers::runpod::simulator::routes(world.clone()),
            _ => providers::lambda::simulator::routes(world.clone()),
        };
        let simulator = Simulator::serve(routes, world).await.expect("a free port");
        served.push(Served { provider, simulator, requests: Vec::new() });
    }
    served
}

/// Notes what a refresh asked. From now on each simulator gives the answer that it has ready: what is
/// measured is not its own work.
async fn keep_answers(served: &mut [Served]) {
    for Served { simulator, requests, .. } in served {
        *requests = std::mem::take(&mut simulator.world.lock().seen);
        for request in requests {
            let body = ask(simulator, request).await;
            let harm = Harm::Answer { status: 200, headers: Vec::new(), content_type: "application/json", body };
            let method = if request.method == "GET" { "GET" } else { "POST" };
            simulator.world.lock().faults.push(Fault { method, path: request.path.clone(), times: u32::MAX, harm });
        }
    }
}

/// All requests of all accounts at once, read to their ends and no further.
async fn slowest_answer(served: &[Served]) -> Duration {
    let began = Instant::now();
    let each = served
        .iter()
        .flat_map(|Served { simulator, requests, .. }| requests.iter().map(move |request| ask(simulator, request)));
    let bodies = join_all(each).await;
    assert!(bodies.iter().all(|body| body.len() > EACH * 100), "an answer is too short for its rows");
    began.elapsed()
}

/// One request by a plain client.
async fn ask(simulator: &Simulator, request: &Seen) -> String {
    let Seen { method, path, query, body, .. } = request;
    let mut stream = TcpStream::connect(simulator.address).await.expect("a simulator that listens");
    let question = format!(
        "{method} {path}?{query} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(question.as_bytes()).await.expect("a simulator that reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer with a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}");
    body.to_owned()
}

fn errand(folder: &std::path::Path, served: &[Served]) -> Errand {
    let key_file = folder.join("key");
    let options = &mut std::fs::OpenOptions::new();
    let file = rentop::config::open_private(&key_file, options.write(true).create_new(true));
    std::io::Write::write_all(&mut file.expect("a file of our own"), KEY.as_bytes()).expect("a file of our own");
    let configs: Vec<AccountConfig> = served
        .iter()
        .enumerate()
        .map(|(n, Served { provider, simulator, .. })| AccountConfig {
            provider: providers::find(provider).expect("a provider of the registry"),
            name: rented::account(n),
            key: KeySource::File(key_file.clone()),
            base_url: Some(simulator.url()),
            read_only: false,
            facts: Default::default(),
            streams: Default::default(),
            machines: Vec::new(),
            auto_topup: false,
        })
        .collect();
    let accounts =
        configs.iter().map(|config| Account::new(config.name.clone(), config.provider.name.into(), false)).collect();
    let fixed = Fixed::default();
    let state = State {
        world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), clock::now()),
        view: View::new(fixed, Vec::new()),
        leaving: false,
    };
    let (inbox, outbox) = Inbox::new();
    let owner = Owner { host: "desk".to_owned(), pid: std::process::id() };
    let keeper = Keeper::start(folder.join("state"), owner, outbox.clone(), false).expect("a thread of its own");
    let streams = Streams::new(Default::default(), outbox.clone());
    let performer = Performer {
        accounts: Accounts::new(configs),
        keeper,
        copies: Copies::new(&streams, outbox.clone()),
        jobs: Jobs::new(&streams, outbox.clone()),
        streams,
        channels: Channels::new(&Config::default(), Language::English, false, outbox.clone()),
        outbox,
        read_only: false,
        preferences: None,
    };
    Errand::new(state, performer, inbox)
}

async fn refresh_once(errand: &mut Errand) {
    let now = clock::now();
    for account in &mut errand.state.world.fleet.accounts {
        account.pacing = Pacing { slow_asked_at: Some(now), ..Pacing::default() };
    }
    errand.take(Event::World(WorldEvent::Tick));
    errand.run_until(all_answered).await.expect("no task fails");
    let accounts = &errand.state.world.fleet.accounts;
    assert!(accounts.iter().all(|account| account.trouble.is_none() && account.as_of > Some(now)));
}

fn all_answered(state: &State) -> bool {
    state.world.fleet.accounts.iter().all(|account| account.pacing.in_flight.is_none() && account.as_of.is_some())
}
