"""The policy server against its own description, and against clients that keep to nothing."""

import json
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, settings

from flappybird import server
from flappybird.players.policies import POLICIES
from tests.conftest import serving
from tests.test_server import CONFIG, CONVERSATION, SEEN, error_of

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: uv sync --group trust")

described = schemathesis.openapi.from_dict(server.openapi())


@described.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_request_that_the_description_allows_is_answered_as_described(case, policy_server):
    case.call_and_validate(base_url=policy_server.removesuffix("/v1"), timeout=20)


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def all_of(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def refusal(answer: bytes) -> dict:
    """The error of a refused request, which must be delimited and JSON like every other answer."""
    head, body = answer.split(b"\r\n\r\n", 1)
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert fields[b"content-type"] == b"application/json"
    assert int(fields[b"content-length"]) == len(body)
    return json.loads(body)["error"]


@pytest.mark.parametrize(
    "request_",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # without a host
        b"GET /\x00 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 66_000,  # and more to come
        b"GET /" + b"a" * 66_000,
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
    ],
    ids=range(10),
)
def test_G06_what_is_no_http_is_refused_in_json_and_the_server_goes_on(policy_server, request_):
    with connect(policy_server) as connection:
        connection.sendall(request_)
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 4")
    assert refusal(answer)["code"] == "invalid_request"
    assert httpx.get(f"{policy_server}/models").status_code == 200


def test_G06_a_huge_content_length_is_refused_before_anything_is_sent(policy_server):
    with connect(policy_server) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 413")
    assert refusal(answer)["code"] == "body_too_large"


def test_G06_requests_sent_ahead_are_answered_in_order(policy_server):
    body = json.dumps({"model": "noop", "messages": CONVERSATION}).encode()
    post = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    get = b"GET /v1/models/noop HTTP/1.1\r\nhost: x\r\n\r\n"
    with connect(policy_server) as connection:
        connection.sendall(post + get + post + get[:-2] + b"connection: close\r\n\r\n")
        answer = all_of(connection)
    kinds = [part.split(b'"')[0] for part in answer.split(b'"object":"')[1:]]
    assert [kind for kind in kinds if kind in (b"chat.completion", b"model")] == [b"chat.completion", b"model"] * 2


def test_G07_a_head_or_a_body_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 1)
    monkeypatch.setattr(server, "BODY_SECONDS", 1.0)
    with serving() as url:
        with connect(url) as connection:  # a byte now and then keeps nobody's connection open
            closed = False
            connection.settimeout(0.2)
            for byte in b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20:
                try:
                    connection.sendall(bytes([byte]))
                    closed = connection.recv(100) == b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    closed = True
                if closed:
                    break
            assert closed
        with connect(url) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{")
            assert all_of(connection).startswith(b"HTTP/1.1 408")
        with connect(url) as connection:  # one that asked in time is served as ever, and again after a while
            for _ in range(3):
                connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
                assert b"200 OK" in connection.recv(65536)
                time.sleep(0.5)


def test_G07_a_client_that_leaves_in_the_middle_of_a_stream_leaves_the_server_well(policy_server, capfd):
    body = json.dumps({"model": "planner", "messages": CONVERSATION, "stream": True, "n": 50}).encode()
    for _ in range(20):
        with connect(policy_server) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            connection.recv(10)
    assert httpx.get(f"{policy_server}/models").status_code == 200
    assert capfd.readouterr().err == ""


HOSTILE = {
    "a lone surrogate": {"messages": [{"role": "user", "content": "\ud800" + SEEN}]},
    "a million characters": {"messages": [{"role": "user", "content": "word " * 200_000 + SEEN}]},
    "a thousand messages": {"messages": [{"role": "user", "content": SEEN}] * 1_000},
    "a huge whole number": {"seed": 10**4_000, "messages": CONVERSATION},
    "a world too fine to search": {
        "messages": [
            {"role": "system", "content": "Physics: gravity=-0.0001 jump_impulse=0.0003 world_h=1000.00"},
            CONVERSATION[1],
        ]
    },
    "an impossible world": {"messages": [{"role": "system", "content": "Physics: gravity=5.00 world_h=0.00"}, CONVERSATION[1]]},
    "a plan of 999 ticks": {"messages": [{"role": "system", "content": "for the next 999 ticks in order"}, CONVERSATION[1]]},
    "pipes without end": {
        "messages": [{"role": "user", "content": SEEN.replace("pipes:[", "pipes:[" + "(9.00,0.00)," * 50_000)}]
    },
    "pipes from nowhere": {"messages": [{"role": "user", "content": SEEN.replace("pipes:[", "pipes:[(999999999,0.00),")}]},
    "openings without end": {"messages": [{"role": "user", "content": "<FLAPPY id=1>\n<OBS>\n" * 20_000}]},
    "stop sequences without end": {"messages": CONVERSATION, "stop": ["x" * 1_000] * 1_000},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_answered_soon_and_never_with_a_500(policy_server, name):
    response = httpx.post(
        f"{policy_server}/chat/completions",
        content=json.dumps({"model": "planner", **HOSTILE[name]}),
        headers={"content-type": "application/json"},
        timeout=20,
    )
    assert response.status_code in (200, 400)
    if response.status_code == 400:
        error_of(response)


@pytest.mark.parametrize("path", ["/v1/a%0Ab", "/v1/%1b%5b2J", "/v1/%ff", "/v1/models/%0a", "/v1/models/" + "x" * 5_000])
def test_a_path_comes_back_on_one_line_and_cut(policy_server, path):
    response = httpx.get(policy_server.removesuffix("/v1") + path)
    assert response.status_code == 404
    assert error_of(response)["message"].isprintable()
    assert len(response.content) < 1_000


def test_the_policies_are_named_where_the_conversation_has_no_rules(policy_server):
    for policy in POLICIES:
        answer = httpx.post(f"{policy_server}/chat/completions", json={"model": policy, "messages": CONVERSATION[1:]})
        assert answer.status_code == 200
    assert CONFIG.changed() == {}
