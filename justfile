# Short names for what CONTRIBUTING.md describes: `just NAME`, with https://just.systems.

# Lists the names.
default:
    @just --list

# Runs all tests, after installing what they need.
test:
    .ci/setup
    cargo test --workspace --all-features

# Runs what a change has to pass.
ci:
    .ci/run

# Writes the generated files: help, answers in the documents, the demo.
bless:
    BLESS=1 cargo test --test project

# Makes all that a release uploads, in `target/dist-files`: archive, packages, image, scripts, checksums.
dist:
    packaging/dist/dist.sh

# Makes the site of the documentation, in `target/site`.
site:
    packaging/site/build.sh target/site

# Measures mu against floors and peers; `just bench resolve` runs one group.
bench *GROUPS:
    cargo run --release --manifest-path benches/Cargo.toml -- {{GROUPS}}

# Fuzzes one target for a minute.
fuzz NAME:
    cargo fuzz run {{NAME}} -- -max_total_time=60

# Formats everything.
format:
    cargo fmt --all
