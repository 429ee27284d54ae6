"""The policy server, asked over real sockets."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from flappybird import cli, server
from flappybird.errors import ConfigError
from flappybird.players import policies, sight
from flappybird.players.policies import POLICIES
from flappybird.protocol.prompt import system_prompt
from flappybird.protocol.reply import read_reply
from flappybird.server import Options, listen, make_server, openapi
from flappybird.server.chat import count_tokens
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame
from tests.conftest import ROOT, serving

CONFIG = FlappyConfig()
GAME = FlappyGame(CONFIG, 3)
for _ in range(6):
    GAME.step(False)
SEEN = str(GAME.observation())
CONVERSATION = [{"role": "system", "content": system_prompt(CONFIG)}, {"role": "user", "content": SEEN}]
TAP_EXPECTED = (True,)  # at tick 6 the bird has fallen to -6.3: the planner taps


@pytest.fixture
def client(policy_server):
    with httpx.Client(base_url=policy_server, timeout=20) as client:
        yield client


def ask(client, **fields):
    return client.post("/chat/completions", json={"model": "planner", "messages": CONVERSATION, **fields})


def error_of(response):
    error = response.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert "\n" not in error["message"]
    return error


def test_models_are_the_policies(client):
    listed = client.get("/models").json()
    assert [model["id"] for model in listed["data"]] == list(POLICIES)
    assert client.get("/models/planner").json()["id"] == "planner"
    assert error_of(client.get("/models/gpt-4"))["code"] == "model_not_found"


def test_a_completion_is_a_legal_reply_with_usage(client):
    answer = ask(client).json()
    (choice,) = answer["choices"]
    reply = read_reply(choice["message"]["content"])
    assert (reply.format, reply.actions) == (1.0, TAP_EXPECTED)
    assert choice["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["completion_tokens"] == count_tokens(choice["message"]["content"])
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.parametrize(("n", "choices"), [("absent", 1), (None, 1), (1, 1), (3, 3)])
def test_G01_n_gives_that_many_choices(client, n, choices):
    answer = ask(client, **({} if n == "absent" else {"n": n})).json()
    assert [choice["index"] for choice in answer["choices"]] == list(range(choices))


@pytest.mark.parametrize("n", [0, "x", -1, 1.5, 10_000, True])
def test_G01_a_bad_n_is_refused_by_name(client, n):
    response = ask(client, n=n)
    assert response.status_code == 400
    assert error_of(response)["param"] == "n"


def test_G02_content_may_be_a_list_of_parts(client):
    half = SEEN.index("velY")
    parts = [
        SEEN,
        [{"type": "text", "text": SEEN}],
        [{"type": "text", "text": SEEN[:half]}, {"type": "text", "text": SEEN[half:]}],
        [{"type": "text", "text": SEEN}, {"type": "image_url", "image_url": {"url": "data:,"}}],
    ]
    answers = [ask(client, messages=[CONVERSATION[0], {"role": "user", "content": content}]).json() for content in parts]
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == 1
    empty = ask(client, messages=[{"role": "user", "content": []}])
    assert empty.status_code == 200
    assert read_reply(empty.json()["choices"][0]["message"]["content"]).actions == (False,)


def test_G04_unknown_and_newer_fields_are_ignored(client):
    response = ask(
        client,
        max_completion_tokens=500,
        seed=1,
        tools=[],
        tool_choice="auto",
        response_format={"type": "text"},
        logprobs=False,
        stream_options=None,
        user="me",
        x_foo={"a": [1]},
        temperature=None,
        top_k=5,
        metadata={},
        extra_body={},
    )
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messages", "hi"),
        ("messages", []),
        ("messages", [{"content": "x"}]),
        ("messages", [{"role": "user", "content": 7}]),
        ("model", 7),
        ("stream", "yes"),
        ("max_tokens", "many"),
        ("max_tokens", 0),
        ("temperature", "hot"),
        ("stop", 3),
        ("seed", "x"),
    ],
)
def test_G04_wrong_types_of_known_fields_are_refused_by_name(client, field, value):
    response = ask(client, **{field: value})
    assert response.status_code == 400
    assert error_of(response)["param"].split(".")[0] == field


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_G04_a_token_limit_cuts_the_answer_and_says_so(client, name):
    answer = ask(client, **{name: 5}).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5


def test_a_stop_sequence_cuts_the_answer(client):
    for stop in ("</ACTIONS>", ["</ACTIONS>", "nowhere"]):
        (choice,) = ask(client, stop=stop).json()["choices"]
        assert choice["message"]["content"].endswith("<ACTIONS>[TAP]")
        assert choice["finish_reason"] == "stop"


def test_a_streamed_answer_is_the_same_answer(client):
    whole = ask(client).json()["choices"][0]["message"]["content"]
    with client.stream(
        "POST",
        "/chat/completions",
        json={"model": "planner", "messages": CONVERSATION, "stream": True, "stream_options": {"include_usage": True}},
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"]]
    assert "".join(deltas) == whole
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_the_rules_come_from_the_system_prompt(client):
    # In a world of strong gravity the planner must tap where it may wait in the card's.
    heavy = FlappyConfig(gravity=-3.0)
    game = FlappyGame(heavy, 3)
    game.step(False)
    seen = str(game.observation())
    messages = [{"role": "system", "content": system_prompt(heavy)}, {"role": "user", "content": seen}]
    heavy_reply = ask(client, messages=messages).json()["choices"][0]["message"]["content"]
    assert "velY 1.60" in heavy_reply or "velY -6.00" in heavy_reply
    four = [{"role": "system", "content": system_prompt(CONFIG, 4)}, {"role": "user", "content": SEEN}]
    planned = ask(client, messages=four).json()["choices"][0]["message"]["content"]
    assert len(read_reply(planned, ticks=4).actions) == 4
    assert planned.count("TAP") + planned.count("NOOP") >= 4


@pytest.mark.parametrize("name", ["planer", "planner:speed=3", "planner:malformed=x", "planner:malformed=2", "gpt-4.1-mini", ""])
def test_an_unknown_model_or_option_is_a_clear_404(client, name):
    response = ask(client, model=name)
    assert response.status_code == 404
    assert error_of(response)["param"] == "model"


def test_malformed_answers_are_mixed_in_and_repeatable(client):
    def statuses(model):
        found = []
        for tick in range(60):
            text = str(FlappyGame(CONFIG, tick).observation())
            answer = ask(client, model=model, messages=[{"role": "user", "content": text.replace("id=0", f"id={tick}")}]).json()
            found.append(read_reply(answer["choices"][0]["message"]["content"]).status.value)
        return found

    spoilt = statuses("heuristic:malformed=0.5,seed=4")
    assert 10 < sum(status != "ok" for status in spoilt) < 50
    assert statuses("heuristic:malformed=0.5,seed=4") == spoilt
    assert set(statuses("heuristic")) == {"ok"}


def test_latency_is_waited_for(client):
    started = time.monotonic()
    assert ask(client, model="noop:latency=0.3").status_code == 200
    assert time.monotonic() - started >= 0.3


def test_G06_one_connection_serves_good_bad_and_unknown_requests(policy_server):
    address = urlsplit(policy_server)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    body = json.dumps({"model": "noop", "messages": CONVERSATION})
    headers = {"content-type": "application/json"}
    first_socket = None
    for method, path, content, expected in [
        ("POST", "/v1/chat/completions", body, 200),
        ("POST", "/v1/chat/completions", "{bad json", 400),
        ("POST", "/v1/chat/completions", "[]", 400),
        ("POST", "/v1/chat/completions", "[" * 100_000, 400),
        ("POST", "/v1/chat/completions", body, 200),
        ("GET", "/v1/models", None, 200),
        ("GET", "/v1/unknown", None, 404),
        ("GET", "/", None, 200),
        ("GET", "/openapi.json", None, 200),
        ("GET", "/v1/chat/completions", None, 405),
        ("DELETE", "/v1/models", None, 405),
        ("OPTIONS", "/v1/chat/completions", None, 405),
        ("POST", "/v1/chat/completions", body, 200),
    ]:
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        told = json.loads(response.read())
        assert response.status == expected, (method, path)
        assert response.version == 11
        assert ("error" in told) == (expected >= 400)
        first_socket = first_socket or connection.sock
        assert connection.sock is first_socket, (method, path)
    connection.close()


def _raw(policy_server, request: bytes) -> bytes:
    address = urlsplit(policy_server)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received


def test_G06_odd_lengths_and_chunks_are_answered(policy_server):
    body = json.dumps({"model": "noop", "messages": CONVERSATION}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n" + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    assert b"200 OK" in _raw(policy_server, chunked)
    assert b"400" in _raw(policy_server, head + b"\r\n").split(b"\r\n")[0]
    assert b"400" in _raw(policy_server, head + b"content-length: x\r\n\r\n").split(b"\r\n")[0]


def test_a_body_that_is_too_large_is_refused(policy_server, monkeypatch):
    monkeypatch.setattr(server, "MAX_BODY", 10_000)
    response = httpx.post(f"{policy_server}/chat/completions", content=b"x" * 20_000)
    assert response.status_code == 413
    assert error_of(response)["code"] == "body_too_large"


def test_G07_idle_and_slow_connections_hold_nobody_up(policy_server):
    address = urlsplit(policy_server)
    idle = socket.create_connection((address.hostname, address.port))
    half = socket.create_connection((address.hostname, address.port))
    half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{")

    async def many() -> list[str]:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=policy_server, timeout=20, limits=limits) as client:
            asked = [client.post("/chat/completions", json={"model": "heuristic", "messages": CONVERSATION}) for _ in range(64)]
            return [response.json()["choices"][0]["message"]["content"] for response in await asyncio.gather(*asked)]

    answers = asyncio.run(many())
    assert len(set(answers)) == 1  # answers do not depend on order
    idle.close()
    half.close()  # a client that dies mid-request leaves the server well
    assert httpx.get(f"{policy_server}/models").status_code == 200


def test_G07_a_connection_on_which_nothing_is_asked_is_closed(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 1)
    with serving() as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            assert connection.recv(1) == b""


def test_the_openai_client_is_served(policy_server):
    import openai

    client = openai.OpenAI(base_url=policy_server, api_key="EMPTY")
    assert [model.id for model in client.models.list()] == list(POLICIES)
    answer = client.chat.completions.create(model="planner", messages=CONVERSATION, temperature=0.7, max_tokens=200, n=2)
    assert len(answer.choices) == 2
    streamed = client.chat.completions.create(model="planner", messages=CONVERSATION, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
    assert read_reply(text).actions == TAP_EXPECTED
    with pytest.raises(openai.NotFoundError, match="did you mean 'planner'"):
        client.chat.completions.create(model="planer", messages=CONVERSATION)


def test_the_description_names_every_route(client):
    told = client.get(str(client.base_url).replace("/v1/", "/openapi.json")).json()
    assert told == openapi()
    assert set(told["paths"]) == {"/", "/openapi.json", "/v1/models", "/v1/models/{model}", "/v1/chat/completions"}


def test_a_taken_or_impossible_address_is_refused_in_one_line():
    with listen("127.0.0.1", 0) as bound, pytest.raises(ConfigError, match="cannot listen on 127.0.0.1 port"):
        listen("127.0.0.1", bound.getsockname()[1])
    for host, port in (("127.0.0.1", 70_000), ("256.0.0.1", 0)):
        with pytest.raises(ConfigError, match="cannot listen on"):
            listen(host, port)
    with pytest.raises(ConfigError, match="malformed = 2"):
        Options(malformed=2)


def test_a_signal_that_came_before_the_server_listened_for_it_stops_it():
    with listen("127.0.0.1", 0) as bound:
        server = make_server()
        server.came = [signal.SIGTERM]
        server.run(sockets=[bound])  # else it would never end
    assert server.started


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_prints_its_port_and_stops_on_a_signal(sent, code):
    command = [sys.executable, "-m", "flappybird", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        assert httpx.get(f"{url}/models").status_code == 200
        process.send_signal(sent)
        assert process.wait(10) == code
        assert process.stderr.read() == ""


def test_a_host_that_others_reach_is_warned_of():
    command = [sys.executable, "-m", "flappybird", "serve", "--port", "0", "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.readline()
        process.terminate()
        process.wait(10)
        assert "0.0.0.0 is not a loopback address" in process.stderr.read()


# --- work is bounded, and nobody waits for it ------------------------------------------------------------------------


FINE = FlappyConfig(gravity=-0.2999)  # whose search goes over 200,000 heights: 30 ms, and 2 MB
FINE_GAME = FlappyGame(FINE, 3)
FINE_PLAN = [
    {"role": "system", "content": system_prompt(FINE, 100)},
    {"role": "user", "content": str(FINE_GAME.observation())},
]


def test_a_plan_is_searched_a_few_times_however_long_it_is_and_however_many_are_asked_for(client, monkeypatch):
    searched = []

    class Counted(sight.Survival):
        def __init__(self, *args):
            searched.append(args)
            super().__init__(*args)

    monkeypatch.setattr(sight, "Survival", Counted)
    sight._survival.cache.clear()  # of what other tests have searched
    choices = ask(client, messages=FINE_PLAN, n=128).json()["choices"]
    assert len({choice["message"]["content"] for choice in choices}) == 1
    assert len(read_reply(choices[0]["message"]["content"], ticks=100).actions) == 100
    assert 1 <= len(searched) <= 1 + policies.MOST_SEARCHES


def test_others_are_answered_while_a_policy_thinks(client, monkeypatch):
    let_go, thinking = threading.Event(), threading.Event()
    answer = server.answer

    def slow(policy, *more):
        if policy == "planner":
            thinking.set()
            assert let_go.wait(20)
        return answer(policy, *more)

    monkeypatch.setattr(server, "answer", slow)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(ask, client)
        assert thinking.wait(20)
        assert ask(client, model="heuristic").status_code == 200
        assert not waiting.done()
        let_go.set()
        assert waiting.result().status_code == 200


def test_a_body_of_more_values_than_a_conversation_has_is_refused(client):
    response = ask(client, messages=CONVERSATION, x=[[]] * 100_001)
    assert response.status_code == 400
    assert error_of(response)["code"] == "too_many_values"
    turn = [
        CONVERSATION[1],
        {"role": "assistant", "content": "<THINK>velY 1.60: up, towards the gap</THINK>\n<ACTIONS>[TAP]</ACTIONS>"},
    ]
    assert ask(client, messages=[CONVERSATION[0], *turn * 10_000, CONVERSATION[1]]).status_code == 200


# --- what cannot be had is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messages", [{"role": "wizard", "content": SEEN}]),
        ("messages", [{"role": "", "content": SEEN}]),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "tap"}}),
        ("function_call", {"name": "tap"}),
        ("response_format", {"type": "json_object"}),
        ("modalities", ["text", "audio"]),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(client, field, value):
    response = ask(client, **{field: value})
    assert response.status_code == 400
    assert error_of(response)["param"].split(".")[0] == field


def test_what_is_ignored_is_listed_in_the_description():
    said = openapi()["components"]["schemas"]["ChatRequest"]["description"]
    for name in ("temperature", "top_p", "tools", "logit_bias", "metadata"):
        assert name in said


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions", "/models", "/v2/models/"])
def test_a_base_url_without_v1_gets_a_hint(client, path):
    response = httpx.post(str(client.base_url).replace("/v1/", path), json={})
    assert response.status_code == 404
    assert f"did you mean /v1/{'models' if 'models' in path else 'chat/completions'}?" in error_of(response)["message"]


# --- clients that go away, or half of the way --------------------------------------------------------------------------


def _post(body: dict) -> bytes:
    sent = json.dumps(body).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(sent) + sent


def _connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


def _until(what, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def test_a_client_that_has_only_finished_sending_gets_all_its_answers(policy_server):
    request = _post({"model": "heuristic:latency=0.2", "messages": CONVERSATION})
    with _connect(policy_server) as connection:
        connection.sendall(request + request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(65536):  # and then the connection ends
            received += chunk
    assert received.count(b"HTTP/1.1 200") == 2


def test_one_that_stops_in_the_middle_of_a_request_is_not_waited_for(policy_server):
    with _connect(policy_server) as connection:
        connection.sendall(_post({"model": "noop", "messages": CONVERSATION})[:-5])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536) == b""


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_a_request_ends_when_its_client_goes_away(how, monkeypatch):
    monkeypatch.setattr(server, "HALF_SECONDS", 0.2)
    running = serving()
    with running as url:
        connections = [_connect(url) for _ in range(8)]
        for connection in connections:
            connection.sendall(_post({"model": "noop:latency=3600", "messages": CONVERSATION}))
        assert _until(lambda: len(running.server.server_state.tasks) == 8)
        for connection in connections:
            if how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        assert _until(lambda: not running.server.server_state.tasks)
        assert _until(lambda: not running.server.server_state.connections)


def test_what_was_sent_is_not_kept_while_an_answer_is_waited_for():
    messages = [{"role": "user", "content": "x" * 7_000_000}]
    running = serving()
    with running as url, _connect(url) as connection:
        tracemalloc.start()
        try:
            connection.sendall(_post({"model": "noop:latency=3600", "messages": messages}))
            assert _until(lambda: tracemalloc.get_traced_memory()[1] > 14_000_000)  # as it is read
            assert _until(lambda: tracemalloc.get_traced_memory()[0] < 1_000_000)
            assert len(running.server.server_state.tasks) == 1
        finally:
            tracemalloc.stop()


def test_a_client_that_does_not_read_is_dropped(monkeypatch):
    monkeypatch.setattr(server, "SLOW_SECONDS", 0.2)
    running = serving()
    with running as url, _connect(url) as connection:
        request = _post({"model": "planner", "messages": FINE_PLAN, "n": 128, "stream": True})
        connection.sendall(request * 8)
        assert _until(lambda: running.server.server_state.connections)
        assert _until(lambda: not running.server.server_state.connections, 60)
        assert _until(lambda: not running.server.server_state.tasks)
        assert httpx.get(f"{url}/models").status_code == 200


# --- anybody's function ---------------------------------------------------------------------------------------------


def test_a_function_answers_whatever_model_is_asked_for_and_gets_roles_and_contents():
    heard = []

    def reply(conversations):
        heard.extend(conversations)
        return ["<THINK>up</THINK>\n<ACTIONS>[TAP]</ACTIONS>" for _ in conversations]

    with serving(reply=reply) as url, httpx.Client(base_url=url, timeout=20) as client:
        answered = ask(
            client, model="tiny-400", messages=[*CONVERSATION, {"role": "user", "content": [{"type": "text", "text": "x"}]}]
        )
        assert [card["id"] for card in client.get("/models").json()["data"]] == ["reply"]
    assert answered.json()["model"] == "tiny-400"
    assert read_reply(answered.json()["choices"][0]["message"]["content"]).actions == (True,)
    assert heard == [[*CONVERSATION, {"role": "user", "content": [{"type": "text", "text": "x"}]}]]


def test_a_function_gets_all_that_waits_at_once_in_one_thread():
    batches, threads, go_on = [], set(), threading.Event()

    def reply(conversations):
        batches.append(len(conversations))
        threads.add(threading.get_ident())
        go_on.wait(20)
        return [conversation[-1]["content"] for conversation in conversations]

    running = serving(reply=reply)
    with running as url, httpx.Client(base_url=url, timeout=30) as client, ThreadPoolExecutor(20) as pool:
        first = pool.submit(ask, client, messages=[{"role": "user", "content": "first"}])
        assert _until(lambda: batches == [1])
        others = [pool.submit(ask, client, messages=[{"role": "user", "content": f"{n}"}], n=2) for n in range(10)]
        assert _until(lambda: len(running.server.server_state.tasks) == 11)
        assert _until(lambda: running.queue().qsize() == 20)
        go_on.set()
        said = [[choice["message"]["content"] for choice in other.result().json()["choices"]] for other in others]
        assert first.result().json()["choices"][0]["message"]["content"] == "first"
    assert said == [[f"{n}"] * 2 for n in range(10)]
    assert batches == [1, 20]
    assert len(threads) == 1


def test_a_function_never_sees_a_conversation_whose_client_has_gone():
    heard, go_on = [], threading.Event()

    def reply(conversations):
        heard.extend(conversation[-1]["content"] for conversation in conversations)
        go_on.wait(20)
        return ["ok"] * len(conversations)

    running = serving(reply=reply)
    with running as url, httpx.Client(base_url=url, timeout=30) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(ask, client, messages=[{"role": "user", "content": "first"}])
        assert _until(lambda: heard == ["first"])
        gone = _connect(url)
        gone.sendall(_post({"model": "m", "messages": [{"role": "user", "content": "gone"}]}))
        assert _until(lambda: running.queue().qsize() == 1)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
        assert _until(lambda: len(running.server.server_state.tasks) == 1)
        go_on.set()
        assert first.result().status_code == 200
        assert ask(client, messages=[{"role": "user", "content": "last"}]).status_code == 200
    assert heard == ["first", "last"]


@pytest.mark.parametrize(
    "returned",
    [("hm", "I fell", 12, 34), {"text": "hm", "reasoning": "I fell", "prompt_tokens": 12, "completion_tokens": 34}],
)
def test_a_function_may_return_reasoning_and_token_counts(returned):
    with serving(reply=lambda conversations: [returned]) as url, httpx.Client(base_url=url, timeout=20) as client:
        answered = ask(client).json()
        with client.stream(
            "POST", "/chat/completions", json={"model": "m", "messages": CONVERSATION, "stream": True}
        ) as streamed:
            deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in streamed.iter_lines() if line[6:].startswith("{")]
    message = answered["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("hm", "I fell")
    assert answered["usage"] == {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "I fell"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([], "returned 0 replies for 1 conversation"),
        (["a", "b"], "returned 2 replies for 1 conversation"),
        ("a", "returned 'a' for 1 conversation"),
        (None, "returned None for 1 conversation"),
        ([7], "the reply 7 is neither text nor"),
        ([{"txt": "a"}], "is neither text nor"),
        ([("a", 7)], "is neither text nor"),
        ([("a", None, -1)], "is neither text nor"),
        (ZeroDivisionError("by\nzero"), r"ZeroDivisionError: by\\nzero"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_a_function_that_fails_is_a_500_of_one_line_and_the_server_lives_on(returned, said, capfd):
    def reply(conversations):
        if conversations[0][-1]["content"] == "well":
            return ["ok"]
        if isinstance(returned, BaseException):
            raise returned
        return returned

    with serving(reply=reply) as url, httpx.Client(base_url=url, timeout=20) as client:
        response = ask(client)
        assert response.status_code == 500
        assert re.search(said, error_of(response)["message"])
        assert error_of(response)["code"] == "reply_failed"
        assert ask(client, messages=[{"role": "user", "content": "well"}]).status_code == 200
    printed = capfd.readouterr().err
    assert printed.startswith("flappybird: ")
    assert printed.count("\n") == 1


def test_the_command_serves_a_function_of_the_current_folder_and_says_how_to_evaluate_it(tmp_path):
    (tmp_path / "mine.py").write_text("def reply(conversations):\n    return ['mine'] * len(conversations)\n", encoding="utf-8")
    command = [sys.executable, "-m", "flappybird", "serve", "--port", "0", "--reply", "mine:reply"]
    environ = {name: value for name, value in os.environ.items() if name != "UV"} | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environ) as process:
        url = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        assert process.stdout.readline() == f"evaluate: vf-eval flappybird -m NAME -b {url} -k ANY\n"
        with httpx.Client(base_url=url, timeout=20) as client:
            assert ask(client).json()["choices"][0]["message"]["content"] == "mine"
        process.terminate()
        assert process.wait(10) == 143


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reply", "mine"], "--reply = 'mine': must be module:function"),
        (["--reply", "no_such_module:reply"], "ModuleNotFoundError: No module named 'no_such_module'"),
        (["--reply", "mine_broken:reply"], "ValueError: two\\\\nlines"),
        (["--reply", "mine_well:replies"], "has no attribute 'replies'"),
        (["--reply", "mine_well:SEVEN"], "7 is not a plain function"),
        (["--reply", "mine_well:later"], "is not a plain function"),
        (["--reply", "mine_well:reply", "--malformed", "0.1"], "--reply answers instead of them"),
        (["--host", "é" * 70], "cannot listen on é"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port"),
        (["--port", "70000"], "cannot listen on port 70000: must be from 0 to 65535"),
    ],
)
def test_usage_errors_of_the_command_are_one_line_and_exit_2(words, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine_broken.py").write_text("raise ValueError('two\\nlines')\n", encoding="utf-8")
    (tmp_path / "mine_well.py").write_text("SEVEN = 7\ndef reply(c): return c\nasync def later(c): return c\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["serve", "--port", "0", *words]) == 2
    printed = capsys.readouterr()
    assert re.search(said, printed.err)
    assert printed.err.count("\n") == 1
    assert printed.out == ""
