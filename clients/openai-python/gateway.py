# SPDX-License-Identifier: Apache-2.0
"""The gateway under test, the recording provider, and clients that count."""

import json
import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai

SHARED = Path(__file__).resolve().parent.parent

# The table of refusals that all suites share.
TABLE = json.loads((SHARED / "refusals.json").read_text(encoding="utf-8"))


class Recorder:
    """A provider that keeps the requests it gets and calls a tool in its answer."""

    def __init__(self):
        self.requests = requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
                stream = json.loads(body).get("stream")
                answer = (SHARED / ("tool_call.sse" if stream else "tool_call.json")).read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Gateway:
    """What clients/weir-up serves."""

    def __init__(self, recorder_url):
        self._process = subprocess.Popen(
            [SHARED / "weir-up"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RECORDER_URL": recorder_url},
        )
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"weir-up ended with status {self.stop()}")

    def stop(self):
        """Ends it, and returns its exit status."""
        self._process.communicate()
        return self._process.returncode

    def client(self, key, max_retries=2):
        """A client as a user has it, and the list of its attempts."""
        attempts = []
        hooks = {
            "request": [lambda request: attempts.append({"sent": time.monotonic(), "body": request.content})],
            "response": [lambda r: attempts[-1].update(ended=time.monotonic(), status=r.status_code, headers=r.headers)],
        }
        client = openai.OpenAI(
            api_key=f"the-secret-of-{key}",
            base_url=self.url,
            max_retries=max_retries,
            http_client=openai.DefaultHttpxClient(event_hooks=hooks),
        )
        return client, attempts


def chat(model, more=None, text_bytes=0):
    """A chat completion's parameters; more are members that the client may not know."""
    text = "x" * text_bytes or "hello there"
    return {"model": model, "messages": [{"role": "user", "content": text}], "extra_body": more or {}}


class Read:
    """A stream, read to its end; what came before an error stays."""

    def __init__(self):
        self.chunks, self.text, self.finish, self.arguments = [], "", None, ""

    def drain(self, stream):
        with stream:
            for chunk in stream:
                self.chunks.append(chunk)
                for choice in chunk.choices:
                    self.text += choice.delta.content or ""
                    self.finish = choice.finish_reason or self.finish
                    self.arguments += "".join(call.function.arguments for call in choice.delta.tool_calls or [])
        return self


def whole(client, parameters):
    return client.chat.completions.create(**parameters)


def streamed(client, parameters):
    return Read().drain(client.chat.completions.create(**parameters, stream=True))


MODES = {"whole": whole, "streamed": streamed}
