"""An HTTP server that answers as it is told: with anything, in pieces, late, or not at all."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class RudeServer:
    """`answer` gets the request's text and the connection, and does with it what it wants."""

    def __init__(self, answer: Callable[[str, socket.socket], None]) -> None:
        self.answer, self.requests = answer, list[str]()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.done = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                threading.Thread(target=self._one, args=(peer,), daemon=True).start()

    def _one(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):
            text = peer.recv(65536).decode("latin-1")
            wanted = re.search(r"Content-Length: (\d+)", text)
            while wanted and len(text.partition("\r\n\r\n")[2]) < int(wanted[1]):
                text += peer.recv(65536).decode("latin-1")
            self.requests.append(text)
            self.answer(text, peer)

    def close(self) -> None:
        self.done.set()
        self._socket.close()


@contextmanager
def rude_server(answer: Callable[[str, socket.socket], None]) -> Iterator[RudeServer]:
    server = RudeServer(answer)
    try:
        yield server
    finally:
        server.close()


def reply(status: str, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def says(status: str, body: bytes, *headers: str) -> Callable[[str, socket.socket], None]:
    return lambda _, peer: peer.sendall(reply(status, body, *headers))
