//! Accounts made ready for use: the key is read from its source when it is first needed, so that no slow
//! key command delays the screen.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use providers::model::AccountName;
use providers::provider::{Access, Provider};
use providers::ssh::Shell;
use tokio::sync::OnceCell;

use crate::config::AccountConfig;
use crate::rules::fleet::Trouble;

/// All accounts, by name.
#[derive(Clone, Default)]
pub struct Accounts {
    slots: Arc<RwLock<BTreeMap<AccountName, Arc<Slot>>>>,
    /// For the machines that no API lists.
    shell: Option<Arc<dyn Shell>>,
}

/// One account, ready once its key was read.
pub struct Slot {
    config: AccountConfig,
    shell: Option<Arc<dyn Shell>>,
    ready: OnceCell<Arc<dyn Provider>>,
}

impl Accounts {
    pub fn new(configs: impl IntoIterator<Item = AccountConfig>) -> Self {
        let accounts = Accounts::default();
        configs.into_iter().for_each(|config| accounts.add(config));
        accounts
    }

    /// None yet, with a way to machines that no API lists.
    pub fn reached_by(shell: Arc<dyn Shell>) -> Self {
        Accounts { shell: Some(shell), ..Accounts::default() }
    }

    pub fn add(&self, config: AccountConfig) {
        let slot = Arc::new(Slot { ready: OnceCell::new(), shell: self.shell.clone(), config });
        let mut accounts = self.slots.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        accounts.insert(slot.config.name.clone(), slot);
    }

    pub fn get(&self, name: &AccountName) -> Option<Arc<Slot>> {
        self.slots.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(name).cloned()
    }
}

impl Slot {
    pub fn read_only(&self) -> bool {
        self.config.read_only
    }

    /// The account, its key read at the first call. A failure is not kept: the next call tries again.
    pub async fn provider(&self) -> Result<Arc<dyn Provider>, Trouble> {
        let ready = self.ready.get_or_try_init(|| async {
            let key = self.config.key.read().await.map_err(|error| Trouble::Key(error.to_string()))?;
            let access = Access { shell: self.shell.clone(), ..self.config.access(key) };
            (self.config.provider.connect)(&access).map_err(|error| Trouble::Key(error.kind.to_string()))
        });
        ready.await.cloned()
    }
}
