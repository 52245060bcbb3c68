#!/usr/bin/env bash
# Packs a folder as an OCI image with one layer, in an archive: `image.sh ROOT PROCESSOR VERSION LEVEL ARCHIVE`.
# It needs no program for images, and gives the same bytes for the same files.
set -euo pipefail
root=$1 processor=$2 version=$3 level=$4 into=$5
export LC_ALL=C

layout=$(mktemp -d)
trap 'rm -rf "$layout"' EXIT
mkdir -p "$layout/blobs/sha256"

# Files belong to root, so that the program cannot change itself; the home, the work folder and /tmp to the user.
own=(--owner=65532 --group=65532 --numeric-owner)
packed() { tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" -C "$root" "$@"; }
packed --numeric-owner --owner=0 --group=0 --exclude=./home/mu --exclude=./work --exclude=./tmp -cf "$layout/layer.tar" .
packed "${own[@]}" --mode=0755 -rf "$layout/layer.tar" ./home/mu ./work
packed "${own[@]}" --mode=1777 -rf "$layout/layer.tar" ./tmp
files=sha256:$(sha256sum "$layout/layer.tar" | cut -d ' ' -f 1)

# Moves a file to where its digest leads; prints digest and size, as a descriptor has them.
blob() {
    local digest
    digest=$(sha256sum "$1" | cut -d ' ' -f 1)
    printf '"digest":"sha256:%s","size":%s' "$digest" "$(stat -c %s "$1")"
    mv "$1" "$layout/blobs/sha256/$digest"
}
gzip -n -"$level" "$layout/layer.tar"
layer=$(blob "$layout/layer.tar.gz")

created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
cat >"$layout/config" <<END
{"created":"$created","architecture":"$processor","os":"linux","config":{"User":"65532:65532","Env":["PATH=/usr/bin","HOME=/home/mu","SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],"Entrypoint":["/usr/bin/mu"],"Cmd":["--help"],"WorkingDir":"/work","Labels":{"org.opencontainers.image.title":"mu","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"MIT OR Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["$files"]},"history":[{"created":"$created","created_by":"packaging/dist"}]}
END
config=$(blob "$layout/config")
cat >"$layout/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json",$config},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip",$layer}]}
END
manifest=$(blob "$layout/manifest")
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
cat >"$layout/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",$manifest,"platform":{"architecture":"$processor","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"$version"}}]}
END
tar --format=ustar --sort=name --numeric-owner --owner=0 --group=0 --mtime="@$SOURCE_DATE_EPOCH" -C "$layout" -cf "$into" blobs index.json oci-layout
