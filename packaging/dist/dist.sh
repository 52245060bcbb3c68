#!/usr/bin/env bash
# Makes all that a release uploads for this machine's kind of system, in `target/dist-files`: an archive, a Debian package, a Python wheel,
# npm packages, an OCI image, install scripts, an SBOM, and the checksums of all. `just dist` runs it.
#
# The same commit gives the same bytes, with the same compiler and programs: dates are the commit's, owners are root, entries are sorted.
#
# Environment:
#   DIST_PROGRAMS  a folder with `mu`, and `mu-hub` if it is to be included; else both are built here, for DIST_TARGET
#   DIST_TARGET    the target to build for; else this machine's own
#   DIST_URL       where the files will be downloaded from, which the install scripts ask; else they ask their user
#   DIST_OUT       where the files go
#   DIST_LEVEL     how well archives are compressed, 1 to 9
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C TZ=UTC
umask 022

own=packaging/dist
out=${DIST_OUT:-target/dist-files}
level=${DIST_LEVEL:-9}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
target=${DIST_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

fail() {
    echo "dist: $*" >&2
    exit 1
}
for program in cargo git gzip objdump python3 sha256sum strip tar; do
    command -v "$program" >/dev/null || fail "needs \`$program\`: install it"
done
case $target in
*-linux-*) ;;
*) fail "makes files for Linux; \`$target\` is another system, for which docs/releasing.md says what to do" ;;
esac
case $target in
x86_64-*) machine=x86_64 debian=amd64 node=x64 image=amd64 ;;
aarch64-*) machine=aarch64 debian=arm64 node=arm64 image=arm64 ;;
*) fail "knows no names for the processor of \`$target\` in Debian, npm and OCI" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
rm -rf "${out:?}"/*

# Packs entries of a folder, the same for the same files: `archive FOLDER INTO ENTRIES…`. What is compressed is a file, because how much a
# pipe gives at once can change the result.
archive() {
    tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$1" -cf "$2.tar" "${@:3}"
    gzip -n -"$level" <"$2.tar" >"$2"
    rm "$2.tar"
}

# The programs. Symbols that only a debugger reads are left out, as in every build of a distribution.
programs=${DIST_PROGRAMS:-}
if [ -z "$programs" ]; then
    # Its own zlib, so that it needs nothing but the C library. Paths of this machine would stand in messages of panics, and differ elsewhere.
    # jemalloc, which stands in for musl's allocator, ends on a system with larger pages than it was built for: on arm64, 64 KiB.
    [ "$machine" != aarch64 ] || export JEMALLOC_SYS_WITH_LG_PAGE=16
    LIBZ_SYS_STATIC=1 RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/mu --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
        cargo build --profile dist --features full --locked --target "$target"
    programs=${CARGO_TARGET_DIR:-target}/$target/dist
fi
mkdir -p "$work/bin"
for program in mu mu-hub; do
    [ ! -f "$programs/$program" ] || strip --strip-all -o "$work/bin/$program" "$programs/$program"
done
[ -x "$work/bin/mu" ] || fail "there is no program \`mu\` in \`$programs\`"

# What a program needs of the C library: nothing if it is linked statically. It is read to its end first: a program in front of `grep -q` can
# end with an error because nobody reads on.
needed=$(objdump -p "$work"/bin/* | awk '$1 == "NEEDED" { print $2 }' | sort -u)
others=$(grep -vE '^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|z))\.so\.[0-9]+$' <<<"$needed" || true)
[ -z "$others" ] || fail "the programs need $(echo $others), which these packages do not ask for"
zlib=$(grep -q '^libz\.' <<<"$needed" && echo ", zlib1g" || true)
glibc=$(objdump -T "$work"/bin/* 2>/dev/null | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -n 1)

# Manual, completions, licences: what lies beside the program in each kind of package.
mkdir -p "$work/share/man/man1" "$work/share/completions" "$work/doc"
"$work/bin/mu" man --quiet --into "$work/share/man/man1"
for shell in bash zsh fish powershell elvish; do
    "$work/bin/mu" completions "$shell" >"$work/share/completions/mu.$shell"
done
cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$work/doc/"
python3 "$own/dependencies.py" "$version" "$target" "$out/mu-$version-$target.cdx.json" "$work/doc/LICENSES-OF-DEPENDENCIES.txt"

# The archive.
make_archive() {
    local name=mu-$version-$target
    mkdir -p "$work/archive/$name"
    cp -r "$work"/bin/* "$work"/doc/* "$work/share/man" "$work/share/completions" "$work/archive/$name/"
    archive "$work/archive" "$work/$name.tar.gz" "$name"
    mv "$work/$name.tar.gz" "$out/"
}

# A member of an `ar` archive, as deb(5) wants it.
member() {
    local size
    size=$(stat -c %s "$1")
    printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' "$(basename "$1")" "$SOURCE_DATE_EPOCH" 0 0 100644 "$size"
    cat "$1"
    [ $((size % 2)) -eq 0 ] || echo
}

# The Debian package.
make_deb() {
    local deb=$work/deb/data control=$work/deb/control part
    mkdir -p "$control" "$deb/usr/bin" "$deb/usr/share/man/man1" "$deb/usr/share/doc/mu/examples" \
        "$deb/usr/share/bash-completion/completions" "$deb/usr/share/zsh/vendor-completions" "$deb/usr/share/fish/vendor_completions.d"
    cp "$work"/bin/* "$deb/usr/bin/"
    cp "$work"/share/man/man1/* "$deb/usr/share/man/man1/"
    gzip -n -9 "$deb"/usr/share/man/man1/*
    cp "$work/share/completions/mu.bash" "$deb/usr/share/bash-completion/completions/mu"
    cp "$work/share/completions/mu.zsh" "$deb/usr/share/zsh/vendor-completions/_mu"
    cp "$work/share/completions/mu.fish" "$deb/usr/share/fish/vendor_completions.d/mu.fish"
    cat LICENSE-MIT LICENSE-APACHE "$work/doc/LICENSES-OF-DEPENDENCIES.txt" >"$deb/usr/share/doc/mu/copyright"
    gzip -n -9 -c CHANGELOG.md >"$deb/usr/share/doc/mu/changelog.gz"
    cp packaging/mu-hub.service "$deb/usr/share/doc/mu/examples/"
    cat >"$control/control" <<END
Package: mu
Version: $version
Architecture: $debian
Maintainer: the maintainers of mu <maintainers@mu.example>
Section: utils
Priority: optional
Installed-Size: $(find "$deb/usr" -type f -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) + 1 }')
${glibc:+Depends: libc6 (>= $glibc), libgcc-s1$zlib
}Recommends: ca-certificates
Suggests: git, openssh-client, bubblewrap
Description: package manager for modules, configuration, schemas and charts
 It installs what teams share and what belongs to no programming language,
 from hubs, Git repositories, OCI registries and folders, with one lock.
END
    echo 2.0 >"$work/deb/debian-binary"
    archive "$control" "$work/deb/control.tar.gz" .
    archive "$deb" "$work/deb/data.tar.gz" .
    {
        printf '!<arch>\n'
        for part in debian-binary control.tar.gz data.tar.gz; do member "$work/deb/$part"; done
    } >"$out/mu_${version}_$debian.deb"
}

# The wheel, which brings the program as a script.
make_wheel() {
    python3 "$own/wheel.py" "$version" "$machine" "${glibc:-static}" "$level" "$work" "$out"
}

# The npm packages: one for this system, with the program, and one for all, which starts it.
make_npm() {
    local package
    for package in platform main; do
        mkdir -p "$work/npm/$package/package"
        sed "s/@VERSION@/$version/g; s/@NODE@/$node/g; s/@LIBC@/$([ -z "$glibc" ] || echo '"libc": ["glibc"],')/g" \
            "packaging/npm/$package.json" >"$work/npm/$package/package/package.json"
        cp LICENSE-MIT LICENSE-APACHE "$work/npm/$package/package/"
    done
    mkdir -p "$work/npm/platform/package/bin" "$work/npm/main/package/bin"
    cp "$work"/bin/mu "$work/npm/platform/package/bin/"
    cp "$work/doc/LICENSES-OF-DEPENDENCIES.txt" "$work/npm/platform/package/"
    cp packaging/npm/mu.js "$work/npm/main/package/bin/"
    cp README.md "$work/npm/main/package/"
    archive "$work/npm/platform" "$work/npm/platform.tgz" package
    archive "$work/npm/main" "$work/npm/main.tgz" package
    mv "$work/npm/platform.tgz" "$out/mu-cli-linux-$node-$version.tgz"
    mv "$work/npm/main.tgz" "$out/mu-cli-$version.tgz"
}

# The image: the program, certificates, a user without rights; neither a shell nor another program.
make_image() {
    local root=$work/image
    mkdir -p "$root"/{etc/ssl/certs,home/mu,tmp,usr/bin,work}
    cp "$work"/bin/* "$root/usr/bin/"
    mkdir -p "$root/usr/share/doc/mu"
    cp "$work"/doc/LICENSE* "$root/usr/share/doc/mu/"
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    printf 'root:x:0:0::/:/none\nmu:x:65532:65532::/home/mu:/none\n' >"$root/etc/passwd"
    printf 'root:x:0:\nmu:x:65532:\n' >"$root/etc/group"
    if [ -n "$glibc" ]; then
        # The libraries that the programs name, at the paths where the loader looks for them.
        ldd "$work"/bin/* | grep -o '/[^ ]*' | grep -v ':$' | sort -u | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    fi
    "$own/image.sh" "$root" "$image" "$version" "$level" "$out/mu-$version-linux-$image.oci.tar"
}

# Compressing takes the time, so all are made at once.
makers=()
for kind in archive deb wheel npm image; do
    "make_$kind" &
    makers+=($!)
done
for maker in "${makers[@]}"; do
    wait "$maker" || fail "could not make everything; what went wrong stands above"
done

# The install scripts know where the files are.
for script in install.sh install.ps1; do
    sed "s|@VERSION@|$version|g; s|@URL@|${DIST_URL:-}|g" "packaging/$script" >"$out/$script"
done

(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" SHA256SUMS && ls -l)
