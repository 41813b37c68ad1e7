//! A recording that is played without a server.

use std::{fs, process::Command};

use e2e::{
    project::root,
    servers::{Browser, Colours, Screen},
    warden::workspace_binary,
};

/// Catches: a page that needs a server, begins at the wrong moment, or has no end.
#[tokio::test]
async fn a_recording_plays_without_a_server() {
    let mut draw = Command::new(workspace_binary("palisade-demo").unwrap());
    let draw = draw.arg("draw").arg(root().join("docs/pause.json"));
    let page = draw.arg("--play").output().unwrap();
    assert!(page.status.success(), "{page:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.html");
    fs::write(&file, &page.stdout).unwrap();

    let browser = Browser::start(Screen::Phone, Colours::Dark).await;
    browser.open(&format!("file://{}", file.display())).await;
    // At first the whole story is there.
    let told = "return document.querySelector('#acts').textContent.includes('Lost update') \
                && document.querySelectorAll('svg').length === 2";
    browser.until(told).await;
    let wrong = "return document.querySelectorAll('svg .bad-dot').length";
    let in_the_end = browser.script(wrong).await;
    assert_ne!(in_the_end, 0);
    browser.click("#play").await;
    let begun = "return !document.querySelector('#acts').textContent.includes('Lost update') \
                 && document.querySelector('svg .bad-dot') === null";
    browser.until(begun).await;
    let nearly_over = "const moment = document.querySelector('#moment'); \
                       moment.value = moment.max - 500; \
                       moment.dispatchEvent(new Event('input')); \
                       return document.querySelector('#play').textContent;";
    assert_eq!(browser.script(nearly_over).await, "▶ Play", "it goes on");
    browser.click("#play").await;
    browser.until(told).await;
    assert_eq!(browser.script(wrong).await, in_the_end);
    assert_eq!(browser.console().await, Vec::<String>::new());
}
