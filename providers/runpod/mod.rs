//! RunPod: to be written.
#[cfg(feature = "simulator")]
pub mod simulator;
use crate::error::{ErrorKind, ProviderError, RequestLine};
use crate::model::*;
use crate::provider::*;
use async_trait::async_trait;
use jiff::Timestamp;
use std::sync::Arc;

pub static ENTRY: Entry = Entry {
    name: "runpod",
    title: "RunPod",
    capabilities: Capabilities {
        stop: true,
        start: true,
        restart: true,
        release: true,
        storage: true,
        balance: true,
        telemetry: true,
        billed_history: true,
        spot: true,
    },
    key_env: &["RUNPOD_API_KEY"],
    key_page: "https://example.invalid",
    money_page: None,
    facts: "",
    connect: |access| {
        Err(ProviderError {
            provider: access.provider.clone(),
            account: access.account.clone(),
            request: RequestLine("stub".into()),
            kind: ErrorKind::NoSuchId,
        })
    },
};
#[allow(dead_code)]
struct Stub;
#[async_trait]
impl Provider for Stub {
    async fn poll(&self, _: Ask, _: Timestamp) -> Poll {
        unreachable!()
    }
    async fn lookup(&self, _: ResourceKind, _: &ResourceId, _: Timestamp) -> Result<Found, ProviderError> {
        unreachable!()
    }
    async fn act(&self, _: Action, _: &ResourceId) -> Result<Accepted, ProviderError> {
        unreachable!()
    }
    async fn billed(&self, _: Timestamp, _: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        unreachable!()
    }
}
#[allow(dead_code)]
fn arc() -> Arc<dyn Provider> {
    Arc::new(Stub)
}
