//! A fenced store in memory.

use std::{sync::Arc, time::Duration};

use fenced_store::{
    FenceError, Memory, MemoryFencedStore,
    memory::{self, Answer, Call, Wire},
};
use lock_core::backend::{BoxFuture, TokioRuntime};

use crate::rule::Harness;

pub(crate) struct Room {
    store: MemoryFencedStore,
}

/// Each message and each answer takes a turn of the scheduler, so that a call has awaits.
#[derive(Debug)]
struct Turns;

impl Wire for Turns {
    fn carry(&self, _: Call, message: BoxFuture<'static, Answer>) {
        #[allow(clippy::disallowed_methods, reason = "a message, which ends by itself")]
        drop(tokio::spawn(async {
            let answer = message.await;
            tokio::task::yield_now().await;
            answer.deliver();
        }));
    }
}

/// The name of the row.
const ACCOUNT: &str = "account:42";

impl Harness for Room {
    type Db = Memory;

    async fn fresh() -> Self {
        let memory = Memory::new(Arc::new(TokioRuntime));
        memory.set(ACCOUNT, &100).unwrap();
        let store = MemoryFencedStore::in_memory(memory.through(Arc::new(Turns)));
        Self { store }
    }

    fn store(&self) -> &MemoryFencedStore {
        &self.store
    }

    async fn impatient(&self) -> MemoryFencedStore {
        let options = memory::MemoryTxOptions::default()
            .lock_timeout(Duration::from_millis(100))
            .terminate_older(false);
        self.store.clone().with_options(options)
    }

    async fn add(session: &mut memory::MemorySession, amount: i64) -> Result<(), FenceError> {
        let balance = session.get::<i64>(ACCOUNT)?.unwrap();
        session.set(ACCOUNT, &(balance + amount))
    }

    async fn add_unfenced(store: &MemoryFencedStore, amount: i64) -> Result<(), FenceError> {
        let balance = store.memory().get::<i64>(ACCOUNT)?.unwrap();
        store.memory().set(ACCOUNT, &(balance + amount))
    }

    async fn balance(session: &mut memory::MemorySession) -> i64 {
        session.get(ACCOUNT).unwrap().unwrap()
    }
}
