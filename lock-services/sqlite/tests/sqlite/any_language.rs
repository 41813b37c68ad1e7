//! The tables as an interface, used by the shell of SQLite alone. The cases of all databases use
//! Python.

use std::process::Stdio;

use lock_core::Ttl;
use tokio::process::Command;

use crate::{
    in_a_database::{World, example},
    world::Folder,
};

async fn shell(folder: &Folder) -> String {
    let example = std::fs::File::open(example("fenced_deposit_sqlite.sql")).unwrap();
    let shell = Command::new("sqlite3")
        .args(["-batch", "-bail"])
        .arg(folder.file())
        .stdin(Stdio::from(example))
        .output();
    let output = shell.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_shell_alone_makes_a_fenced_deposit() {
    let world = World::<Folder>::new().await;
    let first: u64 = shell(&world.database).await.parse().unwrap();
    assert_eq!(world.balance().await, 110);
    let second: u64 = shell(&world.database).await.parse().unwrap();
    assert!(second > first);
    assert_eq!(world.balance().await, 120);
    let held = world.locks.acquire("account:1").ttl(Ttl::secs(60)).await;
    let held = held.unwrap();
    assert!(held.token().get() > second);
    assert_eq!(shell(&world.database).await, "", "it is held");
    assert_eq!(world.balance().await, 120);
}
