//! Serves one provider's simulator on a loopback port, for real clients of that provider to be pointed at.
//!
//!     cargo run -p providers --features simulator --example simulate -- PROVIDER PORT

use jiff::Timestamp;
use providers::sim::{Shared, SimClock, Simulator, World};
use providers::{lambda, runpod, vast};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(provider), Some(Ok(port))) = (args.next(), args.next().map(|port| port.parse::<u16>())) else {
        return Err(std::io::Error::other("usage: simulate PROVIDER PORT"));
    };
    let clock = SimClock::running(Timestamp::now(), 1.0);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let (world, routes) = match provider.as_str() {
        "runpod" => with_routes(runpod::simulator::sample(clock), runpod::simulator::routes),
        "vast" => with_routes(vast::simulator::sample(clock), vast::simulator::routes),
        "lambda" => with_routes(lambda::simulator::sample(clock), lambda::simulator::routes),
        other => return Err(std::io::Error::other(format!("there is no simulator of `{other}`"))),
    };
    let simulator = Simulator::serve_on(listener, routes, world)?;
    println!("{provider} simulated at {}, key {}", simulator.url(), simulator.world.lock().key);
    std::future::pending().await
}

fn with_routes(world: World, routes: fn(Shared) -> axum::Router) -> (Shared, axum::Router) {
    let world = Shared::new(world);
    (world.clone(), routes(world))
}
