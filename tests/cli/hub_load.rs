//! What a read costs `mu hub serve`, counted in calls of the system.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{Sandbox, Served};

/// How often each file is asked for.
const TIMES: usize = 40;

/// Asks for a path again and again on one connection.
fn ask_often(served: &Served, path: &str) {
    let mut sender = TcpStream::connect(served.address).expect("listens");
    let mut answers = BufReader::new(sender.try_clone().expect("is open"));
    for _ in 0..TIMES {
        write!(sender, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").expect("is taken");
        let (mut head, mut length) = (Vec::new(), 0);
        while head.last().is_none_or(|line| line != "\r\n") {
            let mut line = String::new();
            answers.read_line(&mut line).expect("is text");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("is a number");
            }
            head.push(line);
        }
        assert_eq!(head[0], "HTTP/1.1 200 OK\r\n");
        answers.read_exact(&mut vec![0; length]).expect("is whole");
    }
}

/// The calls that most requests for a path make, by their names, if one thread makes them all; `text` is what `strace` has written.
fn usual_calls(text: &str, path: &str) -> Vec<String> {
    let mut requests: Vec<Vec<(&str, &str)>> = Vec::new();
    // `PID NAME(ARGUMENTS…`
    let calls = text.lines().filter_map(|line| line.split_once(' '));
    for (thread, call) in calls.map(|(thread, call)| (thread, call.trim())) {
        let Some((name, _)) = call.split_once('(') else { continue };
        // The folder of the hub is opened first, and the line of the log is written last.
        if call.contains("/srv\", {") {
            requests.push(Vec::new());
        }
        let is_other = name == "write" && !call.starts_with("write(1,");
        if let Some(request) = requests.last_mut().filter(|_| !is_other) {
            request.push((thread, name));
        }
        if call.contains(path) && name == "openat2" {
            requests.last_mut().expect("its folder is open").insert(0, ("", path));
        }
    }
    let mut counted: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for mut request in requests {
        if !request.is_empty() && request.remove(0).1 == path {
            let is_by_one = request.iter().all(|(thread, _)| *thread == request[0].0);
            let names = request.iter().map(|(_, name)| (*name).to_owned());
            let names = if is_by_one { names.collect() } else { vec!["by several".to_owned()] };
            *counted.entry(names).or_default() += 1;
        }
    }
    let (calls, count) = counted.iter().max_by_key(|(_, count)| **count).expect("were asked");
    // What mounts something meanwhile, or changes it, makes a request wait for a thread now and then.
    assert!(*count > TIMES / 2, "{counted:#?}");
    calls.clone()
}

#[test]
fn a_file_in_memory_is_answered_by_the_thread_that_was_asked() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.write("data", &"data ".repeat(500));
    sandbox.mu(&["publish", "--to", "../srv"]).ok();
    let calls = sandbox.path("calls");
    let mut options = vec!["-D", "-f", "-qq", "-o", calls.to_str().expect("is UTF-8")];
    let traced = "trace=openat,openat2,statx,fstat,fstatfs,read,preadv2,pread64,close,write";
    options.extend(["-e", traced, env!("CARGO_BIN_EXE_mu")]);
    options.extend(["hub", "serve", "../srv", "--listen", "127.0.0.1:0"]);
    let served = Served::try_start(sandbox.command_of("strace", &options)).expect("starts");
    let paths = ["hub.json", "index/acme/web.jsonl", "packs/acme/web/web-1.0.0.tgz"];
    for path in paths {
        ask_often(&served, &format!("/{path}"));
    }
    served.end();
    let text = fs::read_to_string(&calls).expect("strace has written it");
    for path in paths {
        let calls = usual_calls(&text, path);
        // In a file system of memory alone, the system does not say what is there.
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let before = ["openat2", "openat2", "close", "statx"];
        let after = ["close", "write"];
        let on_disk = [&before[..], &["preadv2"], &after].concat();
        let in_memory = [&before[..], &["preadv2", "fstatfs", "pread64"], &after].concat();
        assert!(calls == on_disk || calls == in_memory, "{path}: {calls:?}");
    }
}
