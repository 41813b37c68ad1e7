//! Readers of the file, and programs that write it directly.

use std::fs;

use crate::{
    file::SqliteFile,
    rule::{Harness, claimed},
};

/// The file, its log and its index, as a backup would have them.
fn files_of(world: &SqliteFile) -> Vec<u8> {
    let files = fs::read_dir(world.directory()).unwrap();
    let files = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    files.collect::<Vec<_>>().concat()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_copy_of_the_file_lets_nobody_act_as_a_holder() {
    let (world, own) = claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    let copy = files_of(&world);
    // The control: the mark is there.
    assert!(has(&copy, &own.holder().kept_digest()));
    for presented in [own.holder().digest(), own.holder().expose()] {
        assert!(!has(&copy, &presented), "{presented}");
    }
}
