"""Writes what the program is made of: `dependencies.py VERSION TARGET SBOM NOTICES`.

SBOM is CycloneDX 1.5 as JSON. NOTICES has the licence texts that the packages bring, each text once. Both are made of `cargo metadata`: the
packages that the program with all its features is linked with, on that target, with the checksums in Cargo.lock.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

version, target, sbom, notices = sys.argv[1:]
command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline", "--features=full", f"--filter-platform={target}"]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
needs = {
    node["id"]: sorted(
        one["pkg"] for one in node["deps"] if any(kind["kind"] in (None, "build") for kind in one["dep_kinds"])
    )
    for node in metadata["resolve"]["nodes"]
}

# What the program reaches; packages that only tests need are not reached.
program = metadata["resolve"]["root"]
reached, open_ones = set(), [program]
while open_ones:
    one = open_ones.pop()
    if one not in reached:
        reached.add(one)
        open_ones += needs[one]

checksums, name = {}, None
for line in Path("Cargo.lock").read_text().splitlines():
    key, _, value = line.partition(" = ")
    if key == "name":
        name = value.strip('"')
    elif key == "version":
        name = (name, value.strip('"'))
    elif key == "checksum":
        checksums[name] = value.strip('"')


def purl(package):
    return f"pkg:cargo/{quote(package['name'])}@{quote(package['version'])}"


def component(package):
    found = {
        "type": "application" if package["id"] == program else "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


ordered = sorted((packages[one] for one in reached), key=lambda one: (one["name"], one["version"]))
date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"timestamp": date, "component": component(packages[program])},
    "components": [component(one) for one in ordered if one["id"] != program],
    "dependencies": [
        {"ref": purl(one), "dependsOn": sorted(purl(packages[need]) for need in needs[one["id"]] if need in reached)}
        for one in ordered
    ],
}
Path(sbom).write_text(json.dumps(document, indent=1) + "\n")

texts = {}
for package in ordered:
    if package["source"] is None:
        continue
    folder = Path(package["manifest_path"]).parent
    names = ("license", "licence", "copying", "notice", "copyright", "unlicense")
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(names))
    called = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
    texts.setdefault(None, []).append(called)
    for path in files:
        text = "\n".join(line.rstrip() for line in path.read_text(errors="replace").splitlines()).strip()
        texts.setdefault(text, []).append(called)
every = texts.pop(None, [])
with open(notices, "w") as file:
    file.write("mu is made with these packages, under these licences:\n\n" + "".join(f"  {one}\n" for one in every))
    for text, used_by in sorted(texts.items(), key=lambda one: (one[1], one[0])):
        file.write("\n" + "-" * 80 + "\n" + "".join(f"{one}\n" for one in dict.fromkeys(used_by)) + "\n" + text + "\n")
