//! Serves one provider's simulator on a loopback port, for real clients of that provider to be pointed at.
//!
//!     cargo run -p providers --features simulator --example simulate -- PROVIDER PORT

use jiff::Timestamp;
use providers::sim::{Shared, SimClock, Simulator};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(provider), Some(Ok(port))) = (args.next(), args.next().map(|port| port.parse::<u16>())) else {
        return Err(std::io::Error::other("usage: simulate PROVIDER PORT"));
    };
    let clock = SimClock::running(Timestamp::now(), 1.0);
    let (sample, routes): (fn(SimClock) -> _, fn(Shared) -> _) = match provider.as_str() {
        "runpod" => (providers::runpod::simulator::sample, providers::runpod::simulator::routes),
        "vast" => (providers::vast::simulator::sample, providers::vast::simulator::routes),
        "lambda" => (providers::lambda::simulator::sample, providers::lambda::simulator::routes),
        other => return Err(std::io::Error::other(format!("there is no simulator of `{other}`"))),
    };
    let world = Shared::new(sample(clock));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let simulator = Simulator::serve_on(listener, routes(world.clone()), world)?;
    println!("{provider} simulated at {}, key {}", simulator.url(), simulator.world.lock().key);
    std::future::pending().await
}
