//! The tokens of Redlock hold in every scenario.

use models::{checking::assert_holds, redlock::tokens::Tokens};

const fn three(attempts: usize) -> Tokens<3> {
    Tokens::of(attempts)
}

const fn five(attempts: usize) -> Tokens<5> {
    Tokens::of(attempts)
}

#[test]
fn three_nodes() {
    let tokens = three(3).uneven(1).resent(1);
    assert_holds("three nodes", tokens);
}

#[test]
fn three_nodes_and_a_floor() {
    let tokens = three(3).uneven(1).at_least(4);
    assert_holds("three nodes and a floor", tokens);
}

#[test]
fn three_nodes_and_a_loss() {
    let tokens = three(3).losing(1, 1);
    assert_holds("three nodes and a loss", tokens);
}

#[test]
fn three_nodes_a_loss_and_a_resent_acquire() {
    let tokens = three(2).uneven(1).resent(1).losing(1, 1);
    assert_holds("three nodes, a loss, a resent acquire", tokens);
}

#[test]
fn three_nodes_and_two_losses() {
    let tokens = three(2).losing(2, 2);
    assert_holds("three nodes and two losses", tokens);
}

#[test]
fn three_nodes_a_new_resource_and_a_loss() {
    let tokens = three(3).losing(1, 1).listing();
    assert_holds("a new resource and a loss", tokens);
}

#[test]
fn three_nodes_a_new_resource_a_loss_and_a_resent_acquire() {
    let tokens = three(2).resent(1).losing(1, 1).listing();
    assert_holds("a new resource, a loss, a resent acquire", tokens);
}

#[test]
fn three_nodes_a_new_resource_and_two_losses() {
    let tokens = three(2).losing(2, 2).listing();
    assert_holds("a new resource and two losses", tokens);
}

#[test]
fn five_nodes_a_new_resource_and_a_loss() {
    let tokens = five(2).losing(1, 1).listing();
    assert_holds("five nodes, a new resource and a loss", tokens);
}

#[test]
fn three_nodes_one_of_which_is_replaced() {
    let tokens = Tokens::<4>::of(2).uneven(1).replacing();
    assert_holds("a node is replaced", tokens);
}

/// What the other scenarios forget does not hide any fault.
#[test]
fn nothing_is_forgotten() {
    let tokens = three(2).forgetting_nothing();
    assert_holds("a resent acquire", tokens.clone().uneven(1).resent(1));
    assert_holds("a loss", tokens.losing(1, 1));
    assert_holds("three attempts", three(3).forgetting_nothing());
    assert_holds("five nodes", five(2).forgetting_nothing());
}

#[test]
fn five_nodes() {
    assert_holds("five nodes", five(3));
}

#[test]
fn five_nodes_and_a_resent_acquire() {
    let tokens = five(2).uneven(1).resent(1);
    assert_holds("five nodes and a resent acquire", tokens);
}

#[test]
fn five_nodes_and_a_loss() {
    let tokens = five(2).losing(1, 1);
    assert_holds("five nodes and a loss", tokens);
}
