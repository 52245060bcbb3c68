#!/usr/bin/env bash
# Makes the site of the documentation: `build.sh INTO`. `just site` runs it. It needs Sphinx with the parser for Markdown and the theme: in
# Debian, `python3-myst-parser` and `furo`. A warning, such as of a link that leads nowhere, is an error.
set -euo pipefail
own=$(cd "$(dirname "$0")" && pwd)
into=${1:?"say where the site goes"}
SITE_SOURCE=$(mktemp -d)
export SITE_SOURCE
trap 'rm -rf "$SITE_SOURCE"' EXIT
# Debian's python3, which has Debian's Sphinx.
python=/usr/bin/python3
"$python" -c 'import furo, myst_parser, sphinx' || {
    echo "site: needs Sphinx: apt install python3-myst-parser furo" >&2
    exit 1
}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$own" log -1 --format=%ct)} PYTHONDONTWRITEBYTECODE=1 \
    "$python" -m sphinx -W --keep-going -q -c "$own" -b html -d "$SITE_SOURCE/.read" "$SITE_SOURCE" "$into"
