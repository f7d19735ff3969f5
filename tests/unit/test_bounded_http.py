"""One request to a server that is away, hangs, redirects, sends a web page, or far too much."""

from __future__ import annotations

import socket
import tracemalloc

import pytest

from sar_agent.errors import Unavailable
from sar_agent.util.bounded_http import HttpRefused, fetch
from tests.worlds.rude_server import RudeServer, reply, rude_server, says


def asked(server: RudeServer, deadline: float = 30.0, most: int = 1 << 20) -> bytes:
    return fetch(f"{server.url}/x?y=1", "a server", deadline=deadline, most=most)


def test_the_body_and_what_was_sent():
    with rude_server(says("200 OK", b"[1]")) as server:
        assert asked(server) == b"[1]"
        assert server.requests[0].startswith("GET /x?y=1 HTTP/1.1")
        body = fetch(server.url, "a", deadline=30, most=9, headers={"X-A": "b"}, form={"q": "a b"})
        assert body == b"[1]" and "X-A: b" in server.requests[1]
        assert server.requests[1].startswith("POST / ") and server.requests[1].endswith("q=a+b")


@pytest.mark.parametrize("slow", ["silent", "header", "body"])
def test_a_server_that_hangs_or_sends_a_byte_now_and_then_ends_with_the_deadline(slow):
    def answer(_: str, peer: socket.socket) -> None:
        if slow == "silent":
            server.done.wait(60)
        if slow == "body":
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
        elif slow == "header":
            peer.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not server.done.wait(0.05):
            peer.sendall(b"x")

    why = r"a server gave no whole answer within 0\.5 s$"
    with rude_server(answer) as server, pytest.raises(Unavailable, match=why):
        asked(server, 0.5)


def test_a_redirect_is_not_followed_so_a_token_stays_with_its_server():
    with rude_server(says("200 OK", b"[]")) as thief:
        sends_on = says("302 Found", b"", f"Location: {thief.url}/login")
        why = r"redirects to http.*/login; redirects are not"
        with rude_server(sends_on) as server, pytest.raises(Unavailable, match=why):
            asked(server)
        assert not thief.requests


def test_a_web_page_half_an_answer_and_a_status():
    for answer, why in (
        (says("200 OK", b"\n <!DOCTYPE html><html>log in</html>"), "sent a web page, not data"),
        (lambda _, peer: peer.sendall(reply("200 OK", b"1234")[:-2]), r"broke off after 2 of 4"),
        (lambda _, peer: peer.sendall(b"SSH-2.0-OpenSSH_9\r\n"), "does not speak HTTP"),
        (lambda _, peer: peer.close(), "broke off or does not speak|does not answer"),
    ):
        with rude_server(answer) as server, pytest.raises(Unavailable, match=why):
            asked(server)
    with rude_server(says("403 Forbidden", b"no\n  rights")) as server:
        with pytest.raises(HttpRefused, match=r"answered HTTP 403: no rights$") as found:
            asked(server)
        assert found.value.status == 403


def test_two_gigabytes_are_refused_before_they_are_read_and_while_they_come():
    def endless(_: str, peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not server.done.is_set():
            peer.sendall(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")

    said = b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n"
    promises = rude_server(lambda _, peer: peer.sendall(said))
    with promises as server, pytest.raises(Unavailable, match="longer than 4 MiB"):
        asked(server, most=4 << 20)
    tracemalloc.start()
    try:
        with rude_server(endless) as server, pytest.raises(Unavailable, match="longer than 4 MiB"):
            asked(server, most=4 << 20)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_nobody_listens_and_what_is_no_address():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match=r"a server does not answer .*is the address right"):
        fetch(f"http://127.0.0.1:{port}/", "a server", deadline=5, most=9)
    with pytest.raises(Unavailable, match="cannot be asked"):
        fetch("http://127.0.0.1:99999/", "a server", deadline=5, most=9)
