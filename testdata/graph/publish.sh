#!/bin/sh
# Makes a hub in ./hub, and publishes in it what `versions` lists: a name, a version, and what it needs. What is needed
# stands first there: a version is only taken when others could use it.
set -eu
exec >/dev/null
hub=$PWD/hub
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
mu hub init "$hub"
mu -C "$packages" registry add hub.mu.com/ "$hub"
while read -r name version needs; do
    folder=$packages/$name
    mkdir -p "$folder"
    printf 'name: %s\nversion: %s\ndescription: Of the example\nlicense: MIT\n' "$name" "$version" >"$folder/Mu.yaml"
    [ -z "$needs" ] || printf 'dependencies: ["%s"]\n' "$needs" >>"$folder/Mu.yaml"
    mu -C "$folder" publish 2>"$packages/said" || {
        cat "$packages/said" >&2
        exit 1
    }
    rm -r "$folder"
done <versions
