"""Servers before they are needed: whether one answers."""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

PATIENCE = 5.0
"""Seconds after which a server is taken for one that is merely slow."""

KEPT_ELSEWHERE = ("PRIME_API_KEY",)
"""Keys that verifiers also finds in a file of the user's."""


def is_loopback(host: str) -> bool:
    """Whether `host` is a name or an address of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def why_unreachable(url: str, key_variable: str) -> str | None:
    """Return, in words, why no model can be asked at `url`: nobody listens, or it wants a key and there is none; else None.

    One GET of its list of models, which costs nothing. A server that is slow, or that answers anything else, is given the
    benefit of the doubt: the first game will show.

    Args:
        url: the base of the API, such as `http://127.0.0.1:8000/v1`.
        key_variable: the environment variable in which its key is expected.
    """
    key = os.environ.get(key_variable, "")
    try:
        request = Request(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key or 'EMPTY'}"})
        direct = is_loopback(urlsplit(url).hostname or "")
        with build_opener(*([ProxyHandler({})] if direct else [])).open(request, timeout=PATIENCE):
            return None
    except HTTPError as error:
        if error.code == 401 and not key and key_variable not in KEPT_ELSEWHERE:
            return f"the server at {url} wants a key, and {key_variable} is not set"
        return None
    except URLError as error:
        # A certificate that only the client's own library knows is not our business.
        if isinstance(error.reason, (ConnectionError, TimeoutError, socket.gaierror)):
            return f"no server at {url}: {getattr(error.reason, 'strerror', None) or error.reason}"
        return None
    except (OSError, http.client.HTTPException, ValueError):
        return None
