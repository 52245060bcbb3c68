"""Takes the programs of Helm out of the packages of PyPI that have them: unpack.py FOLDER, where these are."""

import io
import pathlib
import sys
import tarfile
import zipfile

here = pathlib.Path(sys.argv[1])
for package, program in (("kubectl_v32", "helm3"), ("kubectl_v33", "helm4")):
    wheel = zipfile.ZipFile(next(here.glob(f"*{package}*.whl")))
    inner = next(name for name in wheel.namelist() if "_jsii/" in name and name.endswith(".tgz"))
    layer = tarfile.open(fileobj=io.BytesIO(wheel.read(inner))).extractfile("package/lib/layer.zip")
    target = here / program
    target.write_bytes(zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm"))
    target.chmod(0o755)
