"""nginx with TLS, a bearer token, and WebDAV's PUT and DELETE."""

import secrets
import subprocess
from pathlib import Path

from serving import lines
from serving.place import Place

WHAT = "HTTPS with PUT and GET: nginx"
PORT, BEHIND = 8443, 18443
DAV_EXT = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
PACKAGES = {"nginx": "nginx-light", DAV_EXT: "libnginx-mod-http-dav-ext", "openssl": "openssl"}
FAULTS = {
    **lines.FAULTS,
    "500": "each request is answered with status 500",
    "expired-token": "the token is not accepted any more",
    "expired-certificate": "the certificate was valid until yesterday",
    "full-disk": "the folder has almost no room",
    "wrong-checksum": "the bytes that are read are not those that were written",
}


def start(place: Place) -> None:
    """Certificates, token, nginx."""
    for name in ("data", "data/dav", "tmp"):
        (place.folder / name).mkdir()
    (place.folder / "data/index.html").write_text("<title>The front page</title>\n")
    authority(place)
    for name, days in (("good", "30"), ("old", "-1")):
        certificate(place, name, days)
    place.write("token", secrets.token_hex(20) + "\n")
    serve(place)
    place.relay(PORT, BEHIND)


def authority(place: Place) -> None:
    """A certificate authority of this bed."""
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "60"]
    out = ["-keyout", f"{place.folder}/ca.key", "-out", f"{place.folder}/ca.pem"]
    subprocess.run([*openssl, *out, "-subj", "/CN=test bed"], check=True, capture_output=True)


def certificate(place: Place, name: str, days: str) -> None:
    """A certificate of the bed's address, valid for some days from now."""
    at = place.folder
    request = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={place.address}"]
    place.write("san", f"subjectAltName=IP:{place.address}\n")
    sign = ["openssl", "x509", "-req", "-CA", f"{at}/ca.pem", "-CAkey", f"{at}/ca.key"]
    files = ["-in", f"{at}/{name}.csr", "-out", f"{at}/{name}.pem", "-extfile", f"{at}/san"]
    for command in (
        [*request, "-keyout", f"{at}/{name}.key", "-out", f"{at}/{name}.csr"],
        [*sign, "-CAcreateserial", "-days", days, *files],
    ):
        subprocess.run(command, check=True, capture_output=True)


def serve(
    place: Place,
    *,
    pair: str = "good",
    token: str = "",
    broken: bool = False,
    altered: bool = False,
) -> None:
    """nginx with this certificate and token, in place of one that runs."""
    at = place.folder
    token = token or (at / "token").read_text().strip()
    refuse = "return 500;" if broken else ""
    alter = "sub_filter A B; sub_filter_once off;" if altered else ""
    conf = place.write(
        "nginx.conf",
        f"""\
load_module {DAV_EXT};
user root;
daemon off;
pid {at}/nginx.pid;
error_log {at}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {at}/tmp;
    client_max_body_size 0;
    server {{
        listen 127.0.0.1:{BEHIND} ssl;
        ssl_certificate {at}/{pair}.pem;
        ssl_certificate_key {at}/{pair}.key;
        root {at}/data;
        {refuse}
        location /dav/ {{
            if ($http_authorization != "Bearer {token}") {{ return 401; }}
            dav_methods PUT DELETE MKCOL;
            dav_ext_methods PROPFIND OPTIONS;
            create_full_put_path on;
            autoindex on;
            default_type application/octet-stream;
            sub_filter_types application/octet-stream;
            {alter}
        }}
    }}
}}
""",
    )
    place.stop(f"nginx -c {conf}")
    place.stop("nginx: worker")
    place.daemon(["/usr/sbin/nginx", "-c", str(conf)])
    place.wait_inside(BEHIND)


def probe(place: Place) -> None:
    """The front page."""
    ask = f"GET / HTTP/1.0\r\nHost: {place.address}\r\n\r\n"
    place.hear(PORT, b"HTTP/1.1 200", ask.encode(), tls=True)


def facts(place: Place) -> dict[str, dict[str, object]]:
    """Its files, and its front page."""
    url = f"https://{place.address}:{PORT}"
    trust: dict[str, object] = {"certificates": f"{place.folder}/ca.pem"}
    token = f"{place.folder}/token"
    return {
        "http": {"kind": "http", "address": f"{url}/dav/", "token": token, **trust},
        "portal": {"kind": "web", "address": f"{url}/", "content": "The front page", **trust},
    }


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    if lines.fault(place, name, value):
        return
    if name == "500":
        serve(place, broken=True)
    elif name == "expired-token":
        serve(place, token=secrets.token_hex(20))
    elif name == "expired-certificate":
        serve(place, pair="old")
    elif name == "full-disk":
        place.fill(place.folder / "data/dav")
        place.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", f"{place.folder}/tmp"])
    elif name == "wrong-checksum":
        serve(place, altered=True)


def mend(place: Place) -> None:
    """As it was started."""
    for name in ("data/dav", "tmp"):
        place.empty(Path(place.folder, name))
    serve(place)
