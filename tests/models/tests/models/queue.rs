//! The protocol of the fair queue holds in every scenario.

use models::{checking::assert_holds, queue::Queue};

#[test]
fn duel() {
    assert_holds("duel", Queue::duel());
}

#[test]
fn pause() {
    assert_holds("pause", Queue::pause());
}

#[test]
fn cut_off() {
    assert_holds("cut off", Queue::cut_off());
}

#[test]
fn line() {
    assert_holds("line", Queue::line());
}

#[test]
fn two_gateways() {
    assert_holds("two gateways", Queue::two_gateways());
}

#[test]
fn second_attempt() {
    assert_holds("second attempt", Queue::second_attempt());
}
