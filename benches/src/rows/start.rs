//! Starting up.

use std::process::Command;

use crate::data::Data;
use crate::measure::{Contestant, Result, calls, in_turns};
use crate::report::{self, bounds};

pub(crate) fn measure(data: &Data) {
    let contestants = [
        Contestant {
            name: "mu --version",
            prepare: Box::new(|| {}),
            command: Box::new(|| {
                let mut command = Command::new(&data.mu);
                command.arg("--version");
                command
            }),
        },
        Contestant {
            name: "true",
            prepare: Box::new(|| {}),
            command: Box::new(|| Command::new("true")),
        },
    ];
    let results = in_turns(data.rounds.max(5) * 6, &contestants);
    report::times("Start-up", &results);
    let time = results.first().map(Result::median);
    data.standing.figure("`mu --version`", time, "ms", bounds(3.0, 2.0));
    let mut command = Command::new(&data.mu);
    command.arg("--version");
    report::calls("mu --version", calls(&command, &data.folder).as_ref());
}
