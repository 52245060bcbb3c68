[package]
name = "k8s"
edition = "v0.11.0"
version = "1.31.2"
