use std::process::Command;

use crate::live_page::page::Page;

/// WebDriver's name of the key.
const ENTER: char = '\u{E007}';

/// Runs the copied command in a shell, as a visitor would.
async fn in_a_shell(command: String) -> String {
    let run = move || Command::new("bash").args(["-euc", &command]).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Catches: a command to copy that sends another request than the page shows, or an element that
/// only a mouse can reach.
#[tokio::test]
async fn the_late_write_is_shown_as_it_was_and_repeated_by_curl() {
    let page = Page::open("wire").await;
    let press_on = async |focus: &str| {
        page.browser.script(focus).await;
        page.browser.press(ENTER).await;
    };
    press_on("document.querySelector('#run').focus()").await;
    page.until_over().await;
    press_on("document.querySelector('#fenced summary').focus()").await;
    let late = "[...document.querySelectorAll('#fenced .events button')] \
                .find((event) => event.textContent.includes('refused (412 ')).focus()";
    press_on(late).await;
    page.until_request_is_shown().await;
    let request = page.text("#fenced .request").await;
    assert!(request.starts_with("PUT /v1/accounts/"), "{request}");
    assert!(request.contains("\nfencing-token: "), "{request}");
    assert!(request.contains("\"balance\": 110"), "{request}");
    let response = page.text("#fenced .response").await;
    assert!(response.starts_with("HTTP/1.1 412 "), "{response}");
    assert!(response.contains("fencing-high-water: "), "{response}");
    assert!(
        response.contains("problem:fencing-token-stale"),
        "{response}"
    );
    page.photograph("stale").await;
    page.browser.click("#fenced .copy").await;
    let copied = "return ['Copied', 'Selected'] \
                  .includes(document.querySelector('#fenced .copy').textContent)";
    page.browser.until(copied).await;

    let said = in_a_shell(page.text("#fenced .curl").await).await;
    assert!(said.starts_with("HTTP/1.1 412 "), "{said}");
    assert!(said.contains("problem:fencing-token-stale"), "{said}");
    page.assert_sound().await;
}
