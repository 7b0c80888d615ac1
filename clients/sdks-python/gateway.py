# SPDX-License-Identifier: Apache-2.0
"""The gateway under test, and the attempts that clients make."""

import contextlib
import json
import threading
import urllib.request
from urllib.error import HTTPError

import httpx
import httpx2

import served

# One refusal of each kind.
KINDS = json.loads((served.SHARED / "kinds.json").read_text(encoding="utf-8"))["kinds"]

# A tool that the recording provider calls, and with what.
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ZURICH = {"city": "Zürich"}

up = None
recorder = None


@contextlib.contextmanager
def running():
    """Serves while the tests run. The gateway has to end well, its books balanced."""
    global up, recorder
    recorder = served.Recorder()
    try:
        up = served.Gateway(recorder.url, unready=True)
        try:
            yield
        finally:
            status = up.stop()
        if status:
            raise SystemExit(f"weir-up ended with status {status}: the gateway failed, or its books do not balance")
    finally:
        recorder.stop()


def secret(key):
    return f"the-secret-of-{key}"


def url(unready=False):
    return up.unready if unready else up.url


def root(unready=False):
    """The address for clients that add the version themselves."""
    return url(unready).removesuffix("/v1")


_thread = threading.local()


def _counting(transport):
    """What this thread's clients send is an attempt, whichever client it is."""
    send = transport.handle_request

    def handle_request(self, request):
        response = send(self, request)
        if getattr(_thread, "attempts", None) is not None:
            _thread.attempts.append({"status": response.status_code, "headers": response.headers})
        return response

    transport.handle_request = handle_request


_counting(httpx.HTTPTransport)
_counting(httpx2.HTTPTransport)


@contextlib.contextmanager
def counted():
    """The attempts that this thread's clients make meanwhile."""
    _thread.attempts = attempts = []
    try:
        yield attempts
    finally:
        _thread.attempts = None


def chat(key, model="m", stream=False):
    """A completion by no client: the open answer, or the status of a refusal."""
    body = {"model": model, "messages": [{"role": "user", "content": "hello there"}], "stream": stream}
    headers = {"Authorization": f"Bearer {secret(key)}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url()}/chat/completions", json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request)
    except HTTPError as refusal:
        with refusal:
            return refusal.status


def exhaust(key, most):
    """Makes calls with a key until it is refused, at most so many."""
    for _ in range(most):
        answer = chat(key)
        if isinstance(answer, int):
            return
        with answer:
            answer.read()
    raise AssertionError(f"the key {key} is not refused after {most} calls")
