//! Messages to the store that are lost on their way.
#![allow(
    clippy::disallowed_methods,
    reason = "messages, which end by themselves"
)]

use std::sync::{Arc, Mutex};

use fenced_store::{
    Memory, MemoryFencedStore,
    memory::{Answer, Call, Wire},
};
use lock_core::backend::{BoxFuture, TokioRuntime, support::lock};

use crate::{
    room::Room,
    rule::{Harness, assert_kind, balance, claimed, grant, high_water},
};

/// Loses the message or the answer of one kind of call.
#[derive(Debug)]
struct Lossy {
    call: Call,
    arrives: bool,
    messages: Mutex<usize>,
}

impl Wire for Lossy {
    fn carry(&self, call: Call, message: BoxFuture<'static, Answer>) {
        *lock(&self.messages) += 1;
        if call != self.call {
            drop(tokio::spawn(async { message.await.deliver() }));
        } else if self.arrives {
            drop(tokio::spawn(async { drop(message.await) }));
        }
    }
}

fn lossy(room: &Room, call: Call, arrives: bool) -> (MemoryFencedStore, Arc<Lossy>) {
    let messages = Mutex::default();
    let wire = Arc::new(Lossy {
        call,
        arrives,
        messages,
    });
    let memory = room.store().memory().through(Arc::<Lossy>::clone(&wire));
    (MemoryFencedStore::in_memory(memory), wire)
}

/// Catches: a lost commit that looks like a refusal, or like a success.
#[tokio::test]
async fn a_commit_without_an_answer_is_unknown() {
    for arrives in [false, true] {
        let (room, grant) = claimed::<Room>().await;
        let (store, wire) = lossy(&room, Call::Commit, arrives);
        let mut tx = store.begin(&grant).await.unwrap();
        Room::add(&mut tx, 1).await.unwrap();
        let error = tx.commit().await.unwrap_err();
        assert_kind!(error, CommitUnknown);
        store.settle(&grant).await.unwrap();
        assert_eq!(balance(&room).await, 100 + i64::from(arrives));
        assert_eq!(*lock(&wire.messages), 3);
        assert_eq!(store.memory().open_transactions(), 0);
    }
}

/// Catches: a transaction that stays open because its client never learned of it.
#[tokio::test]
async fn a_begin_without_an_answer_leaves_no_transaction_open() {
    let (room, grant) = claimed::<Room>().await;
    let (store, _wire) = lossy(&room, Call::Begin, true);
    assert_kind!(store.begin(&grant).await.unwrap_err(), Db);
    assert_eq!(store.memory().open_transactions(), 0);
}

/// Catches: a claim that is not repeated, or that counts twice.
#[tokio::test]
async fn a_claim_without_an_answer_can_be_made_again() {
    let (room, _) = claimed::<Room>().await;
    let next = grant("account:42", 34);
    let (store, _wire) = lossy(&room, Call::Claim, true);
    assert_kind!(store.claim(&next).await.unwrap_err(), Db);
    room.store().claim(&next).await.unwrap();
    assert_eq!(high_water(&room, "account:42").await, Some(34));
}

/// Catches: a memory that a wire copies.
#[test]
fn a_wire_leads_to_the_same_memory() {
    let memory = Memory::new(Arc::new(TokioRuntime));
    let wire = Arc::new(Lossy {
        call: Call::Read,
        arrives: true,
        messages: Mutex::default(),
    });
    memory.through(wire).set("name", &1).unwrap();
    assert_eq!(memory.get("name").unwrap(), Some(1));
}
