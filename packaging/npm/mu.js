#!/usr/bin/env node
// Starts the program that the package for this system brings.
"use strict";
const { spawnSync } = require("child_process");

const name = `mu-cli-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/mu${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`error: the package \`${name}\` is not installed, which brings the program for this system`);
  console.error("hint: install mu-cli without --omit=optional; if there is no such package, see docs/install.md for other ways");
  process.exit(1);
}
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`error: could not start \`${program}\`: ${ended.error.message}`);
  process.exit(1);
}
if (ended.signal) {
  process.kill(process.pid, ended.signal);
} else {
  process.exit(ended.status);
}
