[package]
name = "konfig"
edition = "v0.11.0"
version = "0.4.2"

[dependencies]
k8s = "1.30"
