# SPDX-License-Identifier: Apache-2.0
"""The gateway under test and the recording provider, for the suites in Python."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHARED = Path(__file__).resolve().parent


def tool_call(path, body):
    """The file with the answer that calls a tool, in the protocol of the path."""
    if ":" in path:
        return "function_call.sse" if ":stream" in path else "function_call.json"
    name = {"messages": "tool_use", "responses": "response_call"}.get(path.rpartition("/")[2], "tool_call")
    return name + (".sse" if json.loads(body).get("stream") else ".json")


class Recorder:
    """A provider that keeps the requests it gets and calls a tool in its answer."""

    def __init__(self):
        self.requests = requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = self.path.partition("?")[0]
                requests.append({"path": path, "headers": dict(self.headers), "body": body})
                name = tool_call(path, body)
                answer = (SHARED / name).read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if name.endswith("sse") else "application/json")
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
    """What clients/weir-up serves; unready is the URL of one without a database."""

    def __init__(self, recorder_url, unready=False):
        self._process = subprocess.Popen(
            [SHARED / "weir-up"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RECORDER_URL": recorder_url, "UNREADY": str(unready).lower()},
        )
        self.url = self._process.stdout.readline().strip()
        self.unready = self._process.stdout.readline().strip() if unready else None
        if not self.url or self.unready == "":
            raise RuntimeError(f"weir-up ended with status {self.stop()}")

    def stop(self):
        """Ends it, and returns its exit status."""
        self._process.communicate()
        return self._process.returncode
