"""Packs the program as a wheel: `wheel.py VERSION MACHINE GLIBC|static LEVEL WORK OUT`.

A wheel may have programs in `NAME.data/scripts`, which pip and uv put onto the path. There is no Python code in it.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

version, machine, libc, level, work, out = sys.argv[1:]
work, out = Path(work), Path(out)

# What is linked statically runs with every C library. Else the oldest glibc that has all symbols counts.
if libc == "static":
    platforms = [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
else:
    platforms = [f"manylinux_{libc.replace('.', '_')}_{machine}"]
tag = f"py3-none-{'.'.join(platforms)}"
info, data = f"mu_cli-{version}.dist-info", f"mu_cli-{version}.data"

metadata = f"""Metadata-Version: 2.3
Name: mu-cli
Version: {version}
Summary: A package manager for infrastructure modules, configuration, schemas, charts and templates
License: MIT OR Apache-2.0
Description-Content-Type: text/markdown

{(work / 'doc/README.md').read_text()}"""
wheel = "Wheel-Version: 1.0\nGenerator: packaging/dist\nRoot-Is-Purelib: false\n" + "".join(
    f"Tag: py3-none-{platform}\n" for platform in platforms
)
files = [(f"{data}/scripts/{path.name}", path.read_bytes(), 0o755) for path in sorted((work / "bin").iterdir())]
files += [
    (f"{data}/data/share/man/man1/{path.name}", path.read_bytes(), 0o644)
    for path in sorted((work / "share/man/man1").iterdir())
]
files += [
    (f"{info}/licenses/{name}", (work / "doc" / name).read_bytes(), 0o644)
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "LICENSES-OF-DEPENDENCIES.txt"]
]
files += [(f"{info}/METADATA", metadata.encode(), 0o644), (f"{info}/WHEEL", wheel.encode(), 0o644)]


def row(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


record = "".join(row(name, content) for name, content, _ in files) + f"{info}/RECORD,,\n"
files.append((f"{info}/RECORD", record.encode(), 0o644))

date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(out / f"mu_cli-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=int(level)) as archive:
    for name, content, mode in files:
        entry = zipfile.ZipInfo(name, date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = (0o100000 | mode) << 16
        archive.writestr(entry, content)
