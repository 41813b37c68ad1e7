//! The visitor is the director.

use e2e::{
    servers::{Colours, Screen},
    signal,
};
use rustix::process::Pid;

use crate::live_page::page::Page;

/// Lets client 1 of each act be stopped by the button, and returns the process of the second act.
async fn freeze(page: &Page) -> Pid {
    page.browser.click("#by-hand").await;
    page.begin().await;
    until_enabled(page, "stop").await;
    page.browser.click("#stop").await;
    until_enabled(page, "resume").await;
    let stopped = "return document.querySelector('#fenced .events').textContent.includes('(pid ')";
    page.browser.until(stopped).await;
    let told = page.text("#fenced .events").await;
    let pid = told.split_once("(pid ").unwrap().1;
    let pid = pid.split_once(')').unwrap().0;
    let pid = signal::pid(pid.parse().unwrap()).unwrap();
    assert_eq!(signal::state(pid), Some('T'));
    pid
}

async fn until_enabled(page: &Page, id: &str) {
    let enabled = format!("return !document.getElementById('{id}').disabled");
    page.browser.until(&enabled).await;
}

#[tokio::test]
async fn a_visitor_stops_a_real_process_and_resumes_it() {
    let page = Page::open("by-hand").await;
    freeze(&page).await;
    page.photograph("stopped").await;
    let written = "return document.querySelectorAll('svg .good-dot').length === 2";
    page.browser.until(written).await;
    page.browser.click("#resume").await;
    page.until_over().await;
    let [unfenced, fenced] = page.verdicts().await;
    assert!(unfenced.contains("Lost update"), "{unfenced}");
    assert!(fenced.contains("(412)"), "{fenced}");
    page.assert_sound().await;
}

#[tokio::test]
async fn a_visitor_kills_a_real_process_and_its_lease_ends_by_itself() {
    let page = Page::open("killed").await;
    let pid = freeze(&page).await;
    page.browser.click("#kill").await;
    page.until_over().await;
    assert!(
        signal::state(pid).is_none_or(|state| state == 'Z'),
        "it lives on"
    );
    for verdict in page.verdicts().await {
        assert!(verdict.contains("the balance is 150"), "{verdict}");
    }
    let told = page.text("#fenced .events").await;
    assert!(told.contains("killed by SIGKILL"), "{told}");
    assert!(told.contains("the lease of client 1 expires"), "{told}");
    assert!(!told.contains("client 1 writes"), "{told}");
    page.assert_sound().await;
}

/// On a small screen, whoever begins sees what happens, and the buttons to take part in it.
#[tokio::test]
async fn on_a_phone_the_pictures_and_the_buttons_are_in_sight_together() {
    let page = Page::open_on("by-hand-phone", Screen::Phone, Colours::Light).await;
    page.browser.click("#by-hand").await;
    page.begin().await;
    until_enabled(&page, "stop").await;
    // Nothing is scrolled to by the test: a click would.
    let in_sight = "return ['#unfenced .picture', '#stop', '#resume', '#kill'].every((it) => { \
          const { top, bottom } = document.querySelector(it).getBoundingClientRect(); \
          return 0 <= top && bottom <= innerHeight; \
        })";
    page.browser.until(in_sight).await;
    page.photograph("begun").await;
    page.assert_sound().await;
}
