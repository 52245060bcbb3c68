// Starts Azurite, Microsoft's own emulator of Azure Blob Storage, on a free port, with one container: `packages`.
// Everything is kept in memory. It prints its URL as its only line, and goes on until it is killed.
//
// `node serve.js MODULES`: MODULES is the folder that npm installed Azurite into.
"use strict";
const crypto = require("node:crypto");
const path = require("node:path");

const modules = path.resolve(process.argv[2] ?? "node_modules");
const load = (name) => require(path.join(modules, "azurite/dist/src/blob", name)).default;
const Configuration = load("BlobConfiguration");
const Server = load("BlobServer");

// Public constants of every emulator of Azure's storage.
const ACCOUNT = "devstoreaccount1";
const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

async function makeContainer(url, name) {
    const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2023-11-03" };
    const signed = [
        "PUT", ...Array(11).fill(""),
        ...Object.entries(headers).map(([key, value]) => `${key}:${value}`),
        `/${ACCOUNT}/${ACCOUNT}/${name}`, "restype:container",
    ].join("\n");
    const signature = crypto.createHmac("sha256", Buffer.from(KEY, "base64")).update(signed).digest("base64");
    headers.authorization = `SharedKey ${ACCOUNT}:${signature}`;
    const answer = await fetch(`${url}/${name}?restype=container`, { method: "PUT", headers });
    if (answer.status !== 201) {
        throw new Error(`the container cannot be made: ${answer.status} ${await answer.text()}`);
    }
}

async function main() {
    const configuration = new Configuration("127.0.0.1", 0);
    configuration.isMemoryPersistence = true;
    configuration.enableAccessLog = false;
    const server = new Server(configuration);
    await server.start();
    const url = `${server.getHttpServerAddress()}/${ACCOUNT}`;
    await makeContainer(url, "packages");
    console.log(url);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
