//! The visitor decides who is stopped and killed.

use e2e::signal;

use crate::live_page::page::Page;

/// Lets client 1 of each act be stopped by the button, which is a process of the second act.
async fn freeze(page: &Page, milliseconds: &str) {
    page.browser.click("#by-hand").await;
    page.begin_with_ttl(milliseconds).await;
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
}

async fn until_enabled(page: &Page, id: &str) {
    let enabled = format!("return !document.getElementById('{id}').disabled");
    page.browser.until(&enabled).await;
}

/// Catches: buttons that do nothing, or are there when they must not be.
#[tokio::test]
async fn a_visitor_stops_a_real_process_and_resumes_it() {
    let page = Page::open("by-hand").await;
    freeze(&page, "1500").await;
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

/// The job is done by the client that is left, or was done before the other client had its turn.
/// Catches: a verdict of a lost update where nothing was lost.
#[tokio::test]
async fn a_job_is_done_once_if_its_runner_dies_or_wakes_in_time() {
    for (name, ttl, then) in [
        ("job-killed", "1500", "#kill"),
        ("job-woken", "5000", "#resume"),
    ] {
        let page = Page::open(name).await;
        page.choose_story("jobs").await;
        freeze(&page, ttl).await;
        page.browser.click(then).await;
        page.until_over().await;
        for verdict in page.verdicts().await {
            assert!(verdict.contains("Done once"), "{name}: {verdict}");
        }
        page.assert_sound().await;
    }
}
