[package]
name = "schemas"
edition = "v0.11.0"
version = "0.1.0"

[dependencies]
konfig = "0.4.0"
