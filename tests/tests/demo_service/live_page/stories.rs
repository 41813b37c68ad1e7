use crate::live_page::page::Page;

#[tokio::test]
async fn a_client_that_is_killed_blocks_nobody_for_ever() {
    let page = Page::open("kill").await;
    for verdict in page.play("kill").await {
        assert!(
            verdict.contains("the lease of the dead client"),
            "{verdict}"
        );
        assert!(verdict.contains("the balance is 150"), "{verdict}");
    }
    // The dead cannot give anything back, and nobody else may. What was before is of no account: on
    // a busy machine client 1 may have lost a lease to the clock while it still lived.
    let told = page.text("#fenced .events").await;
    let (before, after) = told.split_once("SIGKILL").unwrap();
    assert!(!before.contains("client 2 is granted"), "{told}");
    let expired = after.find("the lease of client 1 expires").unwrap();
    let next = after.find("client 2 is granted").unwrap();
    assert!(expired < next, "{told}");
    page.photograph("over").await;
    page.assert_sound().await;
}

#[tokio::test]
async fn of_two_writers_at_once_the_old_holder_is_refused_whoever_comes_first() {
    let page = Page::open("race").await;
    let [unfenced, fenced] = page.play("race").await;
    assert!(unfenced.contains("Lost update"), "{unfenced}");
    assert!(
        fenced.contains("the late write was refused (412)"),
        "{fenced}"
    );
    assert!(fenced.contains("the balance is 160"), "{fenced}");
    page.photograph("over").await;
    page.assert_sound().await;
}

#[tokio::test]
async fn a_token_that_was_made_up_is_refused_and_the_page_says_how() {
    let page = Page::open("forgery").await;
    let [unfenced, fenced] = page.play("forgery").await;
    assert!(unfenced.contains("made-up token was taken"), "{unfenced}");
    assert!(unfenced.contains("the balance is 0"), "{unfenced}");
    assert!(
        fenced.contains("each of 3 made-up tokens was refused (403)"),
        "{fenced}"
    );
    let told = page.text("#fenced .events").await;
    for forgery in [
        "without a signature",
        "signature of another",
        "signature of zeros",
    ] {
        assert!(told.contains(forgery), "{forgery}: {told}");
    }
    let refusals = told.matches("refused (403 fencing-token-not-accepted)");
    assert_eq!(refusals.count(), 3, "{told}");
    page.photograph("over").await;
    page.assert_sound().await;
}
