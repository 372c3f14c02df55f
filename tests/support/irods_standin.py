"""A stand-in for an iRODS server: what of its protocol the kind `irods` uses, in memory.

By the protocol's description in the headers of iRODS 4.3 (rodsPackInstruct.h, apiNumber.h); it is
no iRODS, and shows nothing of what a real one refuses, redirects or is slow at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socketserver
import struct
import threading
from contextlib import contextmanager
from xml.etree import ElementTree
from xml.sax.saxutils import escape

CONNECT, DISCONNECT, REPLY, VERSION = (
    "RODS_CONNECT",
    "RODS_DISCONNECT",
    "RODS_API_REPLY",
    "RODS_VERSION",
)
NO_ROWS, WRONG_PASSWORD, NO_FILE = -808000, -826000, -310000
CHALLENGE = "c" * 64
WRITE = 1  # in openFlags


class Standin:
    """Collections and data objects by path, and what it does wrong on request."""

    def __init__(self, password, home):
        self.password, self.home = password, home
        self.collections, self.objects = {home}, {}
        self.scheme, self.spoil, self.keep = "sha2", False, False

    def checksum(self, path):
        data = self.objects[path]
        if self.scheme == "md5":
            return hashlib.md5(data).hexdigest()
        digest = hashlib.new("sha256" if self.scheme == "sha2" else self.scheme, data).digest()
        return f"{self.scheme}:{base64.b64encode(digest).decode()}"

    def query(self, conditions):
        """Rows of collections: by their column COLL_NAME (501) or COLL_PARENT_NAME (502)."""
        wanted = {column: text.partition("'")[2].rstrip("'") for column, text in conditions.items()}
        for path in sorted(self.collections):
            parent = path.rpartition("/")[0]
            if wanted in ({501: path}, {502: parent}):
                yield {500: "1", 501: path, 502: parent, 508: "0", 509: "0"}


class _Connection(socketserver.StreamRequestHandler):
    def handle(self):
        self.open = {}
        while head := self.rfile.read(4):
            header = ElementTree.fromstring(self.rfile.read(struct.unpack(">i", head)[0]))
            kind, number = header.findtext("type"), int(header.findtext("intInfo"))
            sizes = (int(header.findtext(name)) for name in ("msgLen", "errorLen", "bsLen"))
            text, _, data = (self.rfile.read(size) for size in sizes)
            if kind == DISCONNECT:
                return
            if kind == CONNECT:
                self.send(
                    "<Version_PI><status>0</status><relVersion>rods4.3.4</relVersion>"
                    "<apiVersion>d</apiVersion></Version_PI>",
                    kind=VERSION,
                )
            else:
                body = ElementTree.fromstring(text) if text else ElementTree.Element("none")
                CALLS[number](self, body, data)

    def send(self, text="", number=0, data=b"", kind=REPLY):
        text = text.encode()
        header = (
            f"<MsgHeader_PI><type>{kind}</type><msgLen>{len(text)}</msgLen><errorLen>0"
            f"</errorLen><bsLen>{len(data)}</bsLen><intInfo>{number}</intInfo></MsgHeader_PI>"
        )
        self.wfile.write(struct.pack(">i", len(header)) + header.encode() + text + data)

    @property
    def far(self):
        return self.server.standin

    def authenticate(self, body, _data):
        asked = json.loads(base64.b64decode(body.findtext("buf")).rstrip(b"\0"))
        if asked["next_operation"] == "auth_agent_auth_request":
            asked["request_result"] = CHALLENGE
        else:
            padded = self.far.password.encode().ljust(50, b"\0")
            right = hashlib.md5(CHALLENGE.encode() + padded).digest().replace(b"\0", b"\1")
            if base64.b64decode(asked["digest"]) != right:
                self.send(number=WRONG_PASSWORD)
                return
        answer = json.dumps(asked).encode()
        coded = base64.b64encode(answer).decode()
        self.send(
            f"<BinBytesBuf_PI><buflen>{len(answer)}</buflen><buf>{coded}</buf></BinBytesBuf_PI>"
        )

    def gen_query(self, body, _data):
        columns = [int(one.text) for one in body.findall("InxIvalPair_PI/inx")]
        names = [int(one.text) for one in body.findall("InxValPair_PI/inx")]
        texts = [one.text for one in body.findall("InxValPair_PI/svalue")]
        rows = list(self.far.query(dict(zip(names, texts, strict=True))))
        if not rows:
            self.send(number=NO_ROWS)
            return
        found = "".join(
            f"<SqlResult_PI><attriInx>{column}</attriInx><reslen>99</reslen>"
            + "".join(f"<value>{escape(row.get(column, ''))}</value>" for row in rows)
            + "</SqlResult_PI>"
            for column in columns
        )
        self.send(
            f"<GenQueryOut_PI><rowCnt>{len(rows)}</rowCnt><attriCnt>{len(columns)}</attriCnt>"
            f"<continueInx>0</continueInx><totalRowCount>0</totalRowCount>{found}"
            "</GenQueryOut_PI>"
        )

    def make(self, body, _data):
        self.far.collections.add(body.findtext("collName"))
        self.send()

    def remove(self, body, _data):
        path = body.findtext("collName")
        if not self.far.keep:
            self.far.collections.discard(path)
            for name in [name for name in self.far.objects if name.startswith(f"{path}/")]:
                del self.far.objects[name]
        self.send()

    def open_object(self, body, _data):
        path, flags = body.findtext("objPath"), int(body.findtext("openFlags"))
        if flags & WRITE:
            self.far.objects[path] = b""
        elif path not in self.far.objects:
            self.send(number=NO_FILE)
            return
        self.open[3] = [path, 0]
        self.send(number=3)

    def write(self, _body, data):
        path = self.open[3][0]
        self.far.objects[path] += b"x" * len(data) if self.far.spoil else data
        self.send(number=len(data))

    def read(self, body, _data):
        path, start = self.open[3]
        part = self.far.objects[path][start : start + int(body.findtext("len"))]
        self.open[3][1] += len(part)
        self.send(number=len(part), data=part)

    def seek(self, _body, _data):
        self.send(f"<fileLseekOut_PI><offset>{self.open[3][1]}</offset></fileLseekOut_PI>")

    def close_object(self, _body, _data):
        del self.open[3]
        self.send()

    def chksum(self, body, _data):
        checksum = self.far.checksum(body.findtext("objPath"))
        self.send(f"<STR_PI><myStr>{checksum}</myStr></STR_PI>")


CALLS = {
    602: _Connection.open_object,
    629: _Connection.chksum,
    673: _Connection.close_object,
    674: _Connection.seek,
    675: _Connection.read,
    676: _Connection.write,
    679: _Connection.remove,
    681: _Connection.make,
    702: _Connection.gen_query,
    110000: _Connection.authenticate,
}


@contextmanager
def served(password="open sesame", home="/zone/home/alice"):
    """A stand-in on a free port of this machine; gives it and its port."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Connection)
    server.daemon_threads = True
    server.standin = Standin(password, home)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.standin, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
