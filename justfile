# scripts/test is the gate and needs nothing but a Rust toolchain. What is here is shorthand for it,
# and what else is worth running if the tools are there: `cargo install` them yourself.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Lists the recipes.
default:
    @just --list

# Everything that has to be green, and the optional tools. Changes no file.
verify: deny typos
    scripts/test

# Changes files: formats, and applies what clippy suggests.
fix:
    cargo fmt --all
    cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets --all-features
    cargo fmt --all

# All tests, on real servers.
test:
    scripts/test setup build test

# The figures against floors and peers: `just bench redis`, the lock service; `just bench store`;
# `just bench http`, the edge; `just bench consensus`, services that ask a majority;
# `just bench gateway`, after `cargo build --release -p palisade-demo`.
bench *options:
    cargo build --release -p bench -p e2e
    cargo run --release -p bench -- {{ options }}

# Whether contract and conformance cases, and scripts and their headers, say the same.
contract:
    cargo test --workspace --all-features --test project -- contract lua

# Licences, advisories and sources of all dependencies: cargo-deny.
deny:
    cargo deny --all-features check

# Spelling: typos-cli.
typos:
    typos

# Before a release: cargo-semver-checks.
semver:
    cargo semver-checks --package palisade-lock --package lock-core --package fenced-store --package fenced-jobs
