#!/bin/sh
# Installs mu @VERSION@ for this user: downloads the archive for this system, compares it with its checksum, and puts the programs into
# ~/.local/bin. It changes nothing else.
#
#   MU_URL          where the files of the release are
#   MU_INSTALL_DIR  where the programs go
set -eu

version=@VERSION@
url=${MU_URL:-@URL@}
into=${MU_INSTALL_DIR:-$HOME/.local/bin}

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}

[ -n "$url" ] || fail "it is not known where the files of mu $version are" "set MU_URL to the address of the release's files"
case $(uname -s)-$(uname -m) in
Linux-x86_64) processor=x86_64 ;;
Linux-aarch64 | Linux-arm64) processor=aarch64 ;;
*) fail "there is no archive for $(uname -s) on $(uname -m)" "docs/install.md says how to compile mu" ;;
esac

if command -v curl >/dev/null; then
    download() { curl --fail --silent --show-error --location --proto-redir =https,http --output "$2" "$1"; }
elif command -v wget >/dev/null; then
    download() { wget --quiet --output-document="$2" "$1"; }
else
    fail "neither curl nor wget is installed" "install one of them"
fi
if command -v sha256sum >/dev/null; then
    digest() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
    digest() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
    fail "neither sha256sum nor shasum is installed, so the archive cannot be checked" "install one of them"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

download "$url/SHA256SUMS" "$work/SHA256SUMS" || fail "could not download $url/SHA256SUMS" "look whether the address is right"
# What runs everywhere is preferred.
for kind in musl gnu; do
    archive=mu-$version-$processor-unknown-linux-$kind.tar.gz
    expected=$(while read -r sum name; do [ "$name" != "$archive" ] || echo "$sum"; done <"$work/SHA256SUMS")
    [ -z "$expected" ] || break
done
[ -n "$expected" ] || fail "SHA256SUMS has no archive for $processor" "docs/install.md says how to compile mu"

download "$url/$archive" "$work/$archive" || fail "could not download $url/$archive" "try again"
found=$(digest "$work/$archive")
[ "$found" = "$expected" ] ||
    fail "$archive has the checksum $found, but SHA256SUMS says $expected; nothing was installed" "try again; if it stays so, tell whoever runs $url"
tar -xzf "$work/$archive" -C "$work"

mkdir -p "$into"
for program in mu mu-hub; do
    from=$work/mu-$version-$processor-unknown-linux-$kind/$program
    [ -f "$from" ] || continue
    # A program that runs stays whole, because the new one takes its place at once.
    cp "$from" "$into/.$program-new" && chmod 755 "$into/.$program-new" && mv -f "$into/.$program-new" "$into/$program"
done
"$into/mu" --version >/dev/null || fail "$into/mu does not run here" "docs/install.md says how to compile mu"
echo "installed mu $version in $into"
case :$PATH: in
*:"$into":*) ;;
*) echo "add it to the path: export PATH=\"$into:\$PATH\"" ;;
esac
