//! Starting up.

use std::process::Command;

use crate::data::Data;
use crate::measure::{Contestant, calls, in_turns};
use crate::report;

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
    report::times("Start-up", &in_turns(data.rounds.max(5) * 6, &contestants));
    let mut command = Command::new(&data.mu);
    command.arg("--version");
    report::calls("mu --version", calls(&command, &data.folder).as_ref());
}
