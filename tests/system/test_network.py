import socket

import pytest

from flappybird.system.network import why_unreachable
from tests.conftest import serving


@pytest.fixture
def dead() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)


def test_a_server_that_answers_is_reached_also_where_a_proxy_is_set(policy_server, dead, monkeypatch):
    monkeypatch.setenv("http_proxy", dead)
    assert why_unreachable(policy_server, "SOME_KEY") is None


def test_where_nobody_listens_the_address_is_named(dead):
    assert why_unreachable(dead, "SOME_KEY") == f"no server at {dead}: Connection refused"


def test_a_name_that_nobody_bears_is_a_server_that_is_not_there():
    assert why_unreachable("http://nobody.invalid/v1", "SOME_KEY").startswith("no server at http://nobody.invalid/v1: ")


def answering(status: int) -> serving:
    """A server that gives this answer to everything, and whose list of models wants a key."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request) -> Response:
        return Response("{}", status_code=status)

    return serving(Starlette(routes=[Route("/{path:path}", answer)]))


def test_a_key_that_is_wanted_and_not_set_is_named_and_one_that_is_set_is_left_to_the_first_game(monkeypatch):
    with answering(401) as url:
        assert why_unreachable(url, "SOME_KEY") == f"the server at {url} wants a key, and SOME_KEY is not set"
        assert why_unreachable(url, "PRIME_API_KEY") is None  # may be in a file of the user's
        monkeypatch.setenv("SOME_KEY", "sk-x")
        assert why_unreachable(url, "SOME_KEY") is None


@pytest.mark.parametrize("status", [200, 403, 404, 405, 500])
def test_any_other_answer_is_no_reason_not_to_play(status):
    with answering(status) as url:
        assert why_unreachable(url, "SOME_KEY") is None


@pytest.mark.parametrize("url", ["", "nonsense", "http://[", "http://a b/v1"])
def test_an_address_that_is_none_is_left_to_the_library(url):
    assert why_unreachable(url, "SOME_KEY") is None
