# SPDX-License-Identifier: Apache-2.0
"""The gateway under test, and clients that count."""

import json
import time

import openai

import served

# The table of refusals that all suites share.
TABLE = json.loads((served.SHARED / "refusals.json").read_text(encoding="utf-8"))


class Gateway(served.Gateway):
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
