//! The viewer of the API's document.

use crate::live_page::page::Page;

/// Catches: a viewer that loads something from elsewhere.
#[tokio::test]
async fn the_document_is_drawn_without_a_network_and_without_complaints() {
    let page = Page::open("docs").await;
    page.browser.open(&format!("{}/docs/", page.url)).await;
    let drawn = "return document.querySelectorAll('.opblock').length > 10 \
                 && document.querySelector('.title').textContent.includes('Palisade')";
    page.browser.until(drawn).await;
    let endpoint = "document.querySelector('[id$=acquireLease] .opblock-control-arrow').click()";
    page.browser.script(endpoint).await;
    let opened = "return document.querySelector('[id$=acquireLease] .opblock-body') !== null";
    page.browser.until(opened).await;
    page.photograph("open").await;
    // The viewer shows only the requested parts, and headings are not Markdown.
    let groups =
        "return [...document.querySelectorAll('.opblock-tag')].map((it) => it.dataset.tag)";
    let groups = page.browser.script(groups).await;
    assert_eq!(
        groups,
        serde_json::json!(["leases", "service", "accounts", "jobs"])
    );
    let headings = "return [...document.querySelectorAll('.opblock-summary-description')] \
                    .map((it) => it.textContent).join('; ')";
    let headings = page.browser.script(headings).await;
    assert!(!headings.to_string().contains('`'), "{headings}");
    // Everything that the page has loaded is from the gateway.
    let elsewhere = "return performance.getEntriesByType('resource').map(({ name }) => name) \
                     .filter((name) => !name.startsWith(location.origin) \
                       && !name.startsWith('data:'))";
    let elsewhere = page.browser.script(elsewhere).await;
    assert_eq!(elsewhere, serde_json::json!([]));
    assert_eq!(page.browser.console().await, [""; 0]);
}
