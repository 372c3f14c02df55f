"""Passes connections on: relay.py ADDRESS PORT TARGET_PORT MODE_FILE.

The file has what is to go wrong: nothing; hang; down; 500; `slow BYTES_PER_SECOND`; `cut BYTES`;
alter (files that come back by HTTP).
"""

import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

CHUNK = 16384
BUFFER = 1 << 17
SMALL = 2048  # bytes: an answer that is no file


def main() -> None:
    """Take connections for ever."""
    address, port, target, file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(50)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client, target, file), daemon=True).start()


def _serve(client: socket.socket, target: int, file: Path) -> None:
    mode = file.read_text().split()
    if mode[:1] == ["down"]:
        client.close()
    elif mode[:1] == ["hang"]:
        time.sleep(3600)
    elif mode[:1] == ["500"]:
        _answer_500(client)
    else:
        try:
            server = socket.create_connection(("127.0.0.1", target))
        except OSError:  # the service has died: its users meet a closed connection
            client.close()
            return
        left = [int(mode[1])] if mode[:1] == ["cut"] else []
        rate = int(mode[1]) if mode[:1] == ["slow"] else 0
        if rate:  # what fits into the buffers of the kernel is not slow: so they shall hold little
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        alter = mode[:1] == ["alter"]
        for way in ((client, server, rate, left, False), (server, client, rate, left, alter)):
            threading.Thread(target=_pass, args=way, daemon=True).start()


def _answer_500(client: socket.socket) -> None:
    client.settimeout(10)
    with suppress(OSError):
        client.recv(CHUNK)
        client.sendall(
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        client.shutdown(socket.SHUT_WR)
        while client.recv(CHUNK):  # what is still sent: else the answer would be lost with a reset
            pass
    client.close()


def _pass(
    one: socket.socket, other: socket.socket, rate: int, left: list[int], alter: bool
) -> None:
    try:
        while data := one.recv(CHUNK):
            if left:
                left[0] -= len(data)
                if left[0] <= 0:
                    break
            if rate:
                time.sleep(len(data) / rate)
            if alter and len(data) > SMALL and b"<?xml" not in data:
                data = data[:-1] + bytes([data[-1] ^ 0xFF])
            other.sendall(data)
        if not left or left[0] > 0:
            other.shutdown(socket.SHUT_WR)
            return
    except OSError:
        pass
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)  # wakes the other thread
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()  # with a reset, as of a process that was killed


if __name__ == "__main__":
    main()
