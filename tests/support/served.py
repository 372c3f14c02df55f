"""A real HTTP server on a free port of this machine, with certificates of any dates; steps run."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from siteproof.services.steps import Job, StepFailed, Steps
from siteproof.sites import Service

MARK = "siteproof-one-20261125T120000Z-abcdef0"


@contextmanager
def pages(answers, certificate=None):
    """Serve path -> (status, headers, body); or a function of the handler. Gives its host:port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = answers.get(self.path, (404, {}, b""))
            if callable(answer):
                answer(self)
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *words: None  # a client that trusts nobody hangs up
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    # It looks that often whether it is to end: by default each half second.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def certificate(path, *, days, since=-100, name="127.0.0.1"):
    """Write a self-signed certificate and its key; days: until it ends."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + timedelta(days=since))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, *plain))
    return str(path)


def job(tmp_path, **keys):
    """A test of a service of these keys."""
    return Job("one", Service.model_validate(keys), MARK, tmp_path, "example")


def step(explain, seconds=9.0):
    """A step of a kind of service with these errors."""
    return Steps(lambda record: None, seconds, explain).step("any")


def steps_of(module, job):
    """Test a service; its steps as (name, status, why), and its values by metric."""
    records, kind = [], module.KINDS[job.service.kind]
    with suppress(StepFailed):
        kind.test(job, Steps(records.append, job.seconds, kind.explain))
    ended = [(r["end"]["step"], r["status"], r["why"]) for r in records if "end" in r]
    return ended, {r["metric"]: r for r in records if "metric" in r}
