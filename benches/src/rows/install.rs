//! Installing: cold, from the store, and when there is nothing to do.

use std::cell::Cell;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::data::{Data, Place};
use crate::measure::{Contestant, calls, in_turns, peak_memory, remove, run};
use crate::peers::{npm_name, python_name};
use crate::report::{self, Bounds, UNBOUNDED, bounds};

const ALL: &str = "all 303";
const SMALL: &str = "300 small";

pub(crate) fn measure(data: &Data) {
    let small = crate::hub::small_names(crate::hub::SMALL);
    let large = (1..=crate::hub::LARGE).map(|n| format!("large/pack-{n:03}"));
    let all: Vec<String> = small.iter().cloned().chain(large).collect();
    let many = crate::hub::small_names(crate::hub::MANY);
    for (title, names) in
        [(ALL, &all), (SMALL, &small), ("30 small", &small[..30].to_vec()), ("2,000 small", &many)]
    {
        let place = data.place(&format!("install-{}", names.len()));
        prepare(data, &place, names);
        counts(data, &place, title);
        cold(data, &place, title);
        warm(data, &place, title);
        nothing(data, &place, title);
    }
}

/// The bounds of the two that performance is promised for.
fn of(title: &str, bounds: Bounds) -> Bounds {
    if title == ALL || title == SMALL { bounds } else { UNBOUNDED }
}

fn prepare(data: &Data, place: &Place<'_>, names: &[String]) {
    let references: Vec<String> = names.iter().map(|name| format!("{name}#^1.0.0")).collect();
    place.write_workspace("hub/", &references);
    // The list of downloads for the comparison, with their checksums.
    let (mut urls, mut sums) = (String::new(), String::new());
    for name in names {
        let leaf = name.rsplit('/').next().unwrap_or_default();
        let path = format!("hub/packs/{name}/{leaf}-1.0.0.tgz");
        let file = format!("{}.tgz", npm_name(name));
        urls.push_str(&format!("url = \"{}\"\noutput = \"{file}\"\n", data.web.url(&path)));
        let index = data.folder.join(format!("served/hub/index/{name}.jsonl"));
        let line = fs::read_to_string(index).expect("was written");
        let line: serde_json::Value = serde_json::from_str(&line).expect("is JSON");
        let digest = line["archive"].as_str().unwrap_or_default().trim_start_matches("sha256:");
        sums.push_str(&format!("{digest}  {file}\n"));
    }
    place.write("urls", &urls);
    place.write("sums", &sums);
    let dependencies: serde_json::Map<String, serde_json::Value> =
        names.iter().map(|name| (npm_name(name), json!("^1.0.0"))).collect();
    let manifest = json!({"name": "root", "version": "1.0.0", "dependencies": dependencies});
    place.write("bun/package.json", &manifest.to_string());
    place.write(
        "bun/bunfig.toml",
        &format!("telemetry = false\n[install]\nregistry = \"{}\"\n", data.web.url("npm/")),
    );
    let lines: String = names.iter().map(|name| format!("{}\n", python_name(name))).collect();
    place.write("requirements.txt", &lines);
    run(&mut place.mu(&["get"]));
    if let Some(command) = bun(data, place) {
        let mut command = command;
        run(command.arg("--ignore-scripts"));
    }
}

fn bun(data: &Data, place: &Place<'_>) -> Option<Command> {
    let mut command = Command::new(data.bun.as_ref()?);
    command
        .arg("install")
        .current_dir(place.join("bun"))
        .env("BUN_INSTALL_CACHE_DIR", place.join("bun-cache"))
        .env("DO_NOT_TRACK", "1");
    Some(command)
}

fn forget(place: &Place<'_>) {
    remove(&place.join("cache"));
    remove(&place.join("work/.mu/packs"));
}

fn counts(data: &Data, place: &Place<'_>, title: &str) {
    println!("\n#### Installing {title}: counts\n");
    let get = || place.mu(&["get"]);
    forget(place);
    let cold = data.traffic(|| run(&mut get()));
    println!("- cold, with a lock: {} requests, {} bytes", cold.requests, cold.bytes);
    forget(place);
    report::calls("cold", calls(&get(), &place.folder).as_ref());
    forget(place);
    let memory = peak_memory(&get(), &place.folder);
    report::memory("cold", memory);
    let of_memory = if title == ALL { bounds(40.0, 32.0) } else { UNBOUNDED };
    data.standing.figure(
        &format!("peak memory, installing {title}, cold"),
        memory,
        "MiB",
        of_memory,
    );
    remove(&place.join("work/.mu/packs"));
    let warm = data.traffic(|| run(&mut get()));
    println!("- store warm: {} requests", warm.requests);
    remove(&place.join("work/.mu/packs"));
    report::calls("store warm", calls(&get(), &place.folder).as_ref());
    remove(&place.join("work/.mu/packs"));
    report::memory("store warm", peak_memory(&get(), &place.folder));
    let nothing = data.traffic(|| run(&mut get()));
    println!("- nothing to do: {} requests", nothing.requests);
    report::calls("nothing to do", calls(&get(), &place.folder).as_ref());
    report::memory("nothing to do", peak_memory(&get(), &place.folder));
}

fn cold(data: &Data, place: &Place<'_>, title: &str) {
    let mu = || Contestant {
        name: "mu get",
        prepare: Box::new(|| forget(place)),
        command: Box::new(|| place.mu(&["get"])),
    };
    let work = format!("install {title}, cold");
    let (of_floor, of_bun) = match title {
        ALL => (bounds(0.45, 0.30), bounds(0.95, 0.80)),
        SMALL => (UNBOUNDED, bounds(0.95, 0.80)),
        _ => (UNBOUNDED, UNBOUNDED),
    };
    // Each of these runs beside mu alone: whatever runs after a thousand small processes pays for what they
    // leave behind.
    if data.bun.is_some() {
        let bun = Contestant {
            name: "bun install",
            prepare: Box::new(|| {
                remove(&place.join("bun/node_modules"));
                remove(&place.join("bun-cache"));
            }),
            command: Box::new(|| bun(data, place).expect("is installed")),
        };
        let results = in_turns(data.rounds, &[mu(), bun]);
        report::times(&work, &results);
        data.standing.ratio(&work, &results, "bun install", of_bun);
    } else {
        println!("\nbun install: not measured: bun is not installed");
    }
    if title == ALL || title == SMALL {
        let floor = Contestant {
            name: "curl --parallel, sha256sum, tar",
            prepare: Box::new(|| {
                remove(&place.join("floor"));
                fs::create_dir_all(place.join("floor")).expect("can be made");
            }),
            command: Box::new(|| {
                place.shell(
                    "cd floor && curl -sS --parallel --config ../urls && sha256sum --quiet -c ../sums \
                     && for file in *.tgz; do mkdir ${file%.tgz} && tar xzf $file -C ${file%.tgz}; done",
                )
            }),
        };
        let results = in_turns(data.rounds, &[mu(), floor]);
        report::times(&work, &results);
        data.standing.ratio(&work, &results, "curl --parallel, sha256sum, tar", of_floor);
    }
}

fn warm(data: &Data, place: &Place<'_>, title: &str) {
    run(&mut place.mu(&["get"]));
    // Links of others to the store's files would count as changes of them.
    run(&mut place.shell("cp -a work/.mu/packs/hub.mu.com copied"));
    fs::create_dir_all(place.join("aside")).expect("can be made");
    let aside = Cell::new(0);
    let packs = place.join("work/.mu/packs");
    let mut contestants = vec![
        // As in another checkout.
        Contestant {
            name: "mu get",
            prepare: Box::new(|| {
                aside.set(aside.get() + 1);
                let away = place.join(&format!("aside/{}", aside.get()));
                fs::rename(&packs, away).expect("can be moved");
            }),
            command: Box::new(|| place.mu(&["get"])),
        },
        // What is deleted changes the files in the store, which lose a name, so they are hashed.
        Contestant {
            name: "mu get, packs deleted",
            prepare: Box::new(|| remove(&packs)),
            command: Box::new(|| place.mu(&["get"])),
        },
    ];
    if data.bun.is_some() {
        contestants.push(Contestant {
            name: "bun install",
            prepare: Box::new(|| remove(&place.join("bun/node_modules"))),
            command: Box::new(|| bun(data, place).expect("is installed")),
        });
    }
    contestants.push(Contestant {
        name: "cp -al",
        prepare: Box::new(|| remove(&place.join("linked"))),
        command: Box::new(|| place.shell("cp -al copied linked")),
    });
    let results = in_turns(data.rounds, &contestants);
    let work = format!("install {title}, store warm");
    report::times(&work, &results);
    for folder in ["aside", "copied", "linked"] {
        remove(&place.join(folder));
    }
    data.standing.ratio(&work, &results, "cp -al", of(title, bounds(0.45, 0.40)));
    data.standing.ratio(&work, &results, "bun install", of(title, bounds(1.0, 0.8)));
}

fn nothing(data: &Data, place: &Place<'_>, title: &str) {
    run(&mut place.mu(&["get"]));
    let mut contestants = vec![Contestant {
        name: "mu get",
        prepare: Box::new(|| {}),
        command: Box::new(|| place.mu(&["get"])),
    }];
    if data.bun.is_some() {
        contestants.push(Contestant {
            name: "bun install",
            prepare: Box::new(|| {}),
            command: Box::new(|| bun(data, place).expect("is installed")),
        });
    }
    match &data.uv {
        Some(uv) => {
            run(Command::new(uv).args(["venv", "--quiet", "--no-config"]).arg(place.join("venv")));
            contestants.push(Contestant {
                name: "uv pip install",
                prepare: Box::new(|| {}),
                command: Box::new(move || {
                    let mut command = Command::new(uv);
                    command
                        .args(["pip", "install", "--quiet", "--no-config", "-r"])
                        .arg("requirements.txt")
                        .args(["--default-index", &data.web.url("simple/")])
                        .arg("--cache-dir")
                        .arg(place.join("uv-cache"))
                        .env("VIRTUAL_ENV", place.join("venv"))
                        .current_dir(&place.folder);
                    command
                }),
            });
        }
        None => println!("\nuv pip install: not measured: uv is not installed"),
    }
    let results = in_turns(data.rounds, &contestants);
    let work = format!("nothing to do, {title}");
    report::times(&work, &results);
    data.standing.ratio(&work, &results, "uv pip install", of(title, bounds(0.5, 0.5)));
    data.standing.ratio(&work, &results, "bun install", of(title, bounds(1.0, 0.8)));
}
