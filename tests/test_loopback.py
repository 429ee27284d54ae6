"""Calls to this machine go past the proxies of the environment, whatever those are."""

import os
from urllib.request import getproxies, proxy_bypass

import httpx
import pytest

from flappybird import demo
from flappybird.system.loopback import spare_loopback
from tests.conftest import serving

NAMES = "localhost,127.0.0.1,::1"


@pytest.fixture
def dead_proxy(monkeypatch):
    """Settings that send everything to a port on which nothing listens."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    # So that what a test changes is put back.
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, NAMES),
        ({"NO_PROXY": "example.org"}, "example.org," + NAMES),
        ({"no_proxy": "a.b, ::1", "NO_PROXY": "c.d"}, "a.b,::1,localhost,127.0.0.1"),
        ({"no_proxy": "*"}, "*"),
    ],
)
def test_loopback_is_added_to_what_is_spared_already(before, after):
    environ = dict(before)
    for _ in range(2):
        spare_loopback(environ)
        assert environ == {"no_proxy": after, "NO_PROXY": after}


def test_clients_reach_a_server_on_this_machine_and_no_other_past_the_proxy(dead_proxy):
    with serving() as url:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/models")
        spare_loopback()
        assert httpx.get(f"{url}/models").status_code == 200
    assert proxy_bypass("127.0.0.1")
    assert not proxy_bypass("example.org")
    assert getproxies()["http"] == "http://127.0.0.1:9"


def test_the_demo_reaches_its_server_and_evaluates_it_in_spite_of_a_dead_proxy(dead_proxy, tmp_path, monkeypatch):
    # vf-eval itself is a stand-in that asks the server as the library does: with the proxies that its environment names.
    stand_in = tmp_path / "vf-eval"
    stand_in.write_text(
        f"#!{demo.sys.executable}\n"
        "import sys, httpx\n"
        "print(httpx.get(sys.argv[sys.argv.index('-b') + 1] + '/models').status_code)\n",
        encoding="utf-8",
    )
    stand_in.chmod(0o755)
    monkeypatch.setattr(demo.sysconfig, "get_path", lambda _: str(tmp_path))
    with demo.policy_server() as url, pytest.raises(demo.DemoError, match="exit code 0"):  # since it saved nothing
        demo.evaluate("noop", url, 1, tmp_path, demo.tqdm(disable=True))
    assert (tmp_path / "vf-eval-noop.log").read_text(encoding="utf-8") == "200\n"


def test_the_classic_door_spares_loopback(dead_proxy):
    pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")
    import flappybird

    flappybird.load_environment(report=False)
    assert proxy_bypass("127.0.0.1")


def test_the_v1_door_spares_loopback(dead_proxy):
    pytest.importorskip("verifiers.v1", reason="verifiers v1 is not installed")
    from flappybird import taskset

    taskset.FlappyTaskset(taskset.FlappyTasksetConfig(id="flappybird"))
    assert proxy_bypass("127.0.0.1")
