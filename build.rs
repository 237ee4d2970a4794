//! The ledger's migrations are compiled in: a new file among them must start a new build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/ledger/migrations");
}
