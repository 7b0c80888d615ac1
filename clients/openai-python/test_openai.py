# SPDX-License-Identifier: Apache-2.0
"""The official OpenAI client for Python, unchanged, through the gateway."""

import asyncio
import contextlib
import json
import unittest
from concurrent.futures import ThreadPoolExecutor

import openai

from gateway import MODES, TABLE, Gateway, Read, chat, streamed, whole
from served import Recorder


def setUpModule():
    global recorder, gateway
    recorder = Recorder()
    unittest.addModuleCleanup(recorder.stop)
    gateway = Gateway(recorder.url)
    unittest.addModuleCleanup(stop_gateway)


def stop_gateway():
    status = gateway.stop()
    if status:
        raise AssertionError(f"weir-up ended with status {status}: the gateway failed, or its books do not balance")


@contextlib.contextmanager
def prepared(row):
    """Brings about what a row needs, for as long as it runs."""
    client, _ = gateway.client(row["key"])
    with client, contextlib.ExitStack() as stack:
        before = row.get("before", {"times": 0})
        for _ in range(before["times"]):
            whole(client, chat(before["model"]))
        if "while" in row:
            stream = stack.enter_context(client.chat.completions.create(**chat(row["while"]), stream=True))
            next(stream)
        yield


class Table(unittest.TestCase):
    def every(self, rows, check):
        """Checks all rows at the same time; each has a key or model of its own."""
        with ThreadPoolExecutor(len(rows)) as pool:
            for row, done in [(row, pool.submit(check, row)) for row in rows]:
                with self.subTest(row["name"]):
                    done.result()


class Answers(unittest.TestCase):
    def client(self, key):
        client, attempts = gateway.client(key)
        self.addCleanup(client.close)
        return client, attempts

    def test_models_list_shows_what_the_key_may_call(self):  # KEY-5
        client, _ = self.client("listed")
        self.assertEqual([model.id for model in client.models.list()], ["m"])
        self.assertEqual(client.models.retrieve("m").id, "m")
        with self.assertRaises(openai.NotFoundError) as caught:
            client.models.retrieve("other")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_a_whole_completion(self):
        client, attempts = self.client("plain")
        answer = whole(client, chat("m"))
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (20, 30))
        self.assertEqual(len(attempts), 1)
        self.assertEqual(answer._request_id, attempts[0]["headers"]["x-weir-request-id"])
        self.assertEqual(attempts[0]["headers"]["x-weir-cost-usd"], "0.00032")

    def test_a_stream_shows_no_usage_to_a_client_that_did_not_ask(self):  # DIS-6, BR-097
        client, _ = self.client("plain")
        read = streamed(client, chat("m"))
        self.assertEqual(read.finish, "stop")
        self.assertEqual(read.text, whole(client, chat("m")).choices[0].message.content)
        for chunk in read.chunks:
            self.assertEqual(len(chunk.choices), 1)
            self.assertNotIn("usage", chunk.model_fields_set)

    def test_a_stream_shows_its_usage_to_a_client_that_asked(self):  # BR-100
        client, _ = self.client("plain")
        read = streamed(client, chat("m", {"stream_options": {"include_usage": True}}))
        self.assertEqual(read.finish, "stop")
        last = read.chunks[-1]
        self.assertEqual((last.choices, last.usage.prompt_tokens, last.usage.completion_tokens), ([], 20, 30))

    def test_the_asynchronous_client_reads_and_is_refused_alike(self):
        async def run():
            async with openai.AsyncOpenAI(api_key="the-secret-of-listed", base_url=gateway.url) as client:
                stream = await client.chat.completions.create(**chat("m"), stream=True)
                text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
                with self.assertRaises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(**chat("other"))
                return text, caught.exception

        text, error = asyncio.run(run())
        self.assertTrue(text)
        self.assertEqual(error.code, "model_not_allowed")

    def test_a_request_with_tools_passes_untouched_and_so_does_the_call(self):  # DIS-6
        parameters = chat("tools") | {
            "temperature": 0.25,
            "seed": 7,
            "metadata": {"ключ": "значение"},
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": {
                "type": "object", "properties": {"city": {"type": "string"}}}}}],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        }
        client, attempts = self.client("plain")
        answer = whole(client, parameters)
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual(json.loads(answer.choices[0].message.tool_calls[0].function.arguments), {"city": "Zürich"})
        got = recorder.requests[-1]
        self.assertEqual(got["path"], "/v1/chat/completions")
        self.assertEqual(got["body"], attempts[0]["body"], "byte for byte")
        self.assertEqual(got["headers"]["Authorization"], "Bearer credential-of-the-recorder")
        self.assertNotIn("the-secret-of-plain", str(got))

        read = streamed(client, parameters)
        self.assertEqual((read.finish, json.loads(read.arguments)), ("tool_calls", {"city": "Zürich"}))
        wanted = json.loads(attempts[1]["body"]) | {"stream_options": {"include_usage": True}}
        self.assertEqual(json.loads(recorder.requests[-1]["body"]), wanted)


class Refusals(Table):
    def test_a_refusal_is_the_clients_own_error(self):
        """ERR-1 to ERR-5, RUN-2, DIS-2, BR-211, BR-213, BR-214, BR-217; whole and streamed."""
        self.every(TABLE["refusals"], self.refused)

    def refused(self, row):
        with prepared(row):
            for mode in row.get("modes", MODES):
                client, attempts = gateway.client(row["key"], row["retries"])
                with client, self.assertRaises(openai.APIStatusError) as caught:
                    MODES[mode](client, chat(row["model"], row.get("body"), row.get("text_bytes", 0)))
                self.holds(row, caught.exception, attempts)

    def holds(self, row, error, attempts):
        wanted = getattr(openai, TABLE["classes"][str(row["status"])]["python"])
        self.assertIs(type(error), wanted, error)
        got = (error.status_code, error.type, error.code, error.param)
        self.assertEqual(got, (row["status"], row["type"], row["code"], row.get("param")), error)
        self.assertEqual(len(attempts), row["attempts"], "attempts")
        for part in row.get("says", []):
            self.assertIn(part, error.message)
        for part in row.get("says_not", []):
            self.assertNotIn(part, str(error.body))
        for name, value in row.get("details", {}).items():
            self.assertEqual(error.body["details"][name], value, name)
        headers = error.response.headers
        self.assertEqual(headers["x-weir-error-source"], row.get("source", "gateway"))
        self.assertEqual(error.request_id, headers["x-weir-request-id"])
        if "source" not in row:
            self.assertIn(error.request_id, error.message)
        for name, pattern in row.get("headers", {}).items():
            if pattern is None:
                self.assertNotIn(name, headers)
            else:
                self.assertRegex(headers.get(name, ""), pattern, name)


class BrokenStreams(Table):
    def test_a_broken_stream_raises(self):  # ERR-6
        self.every(TABLE["broken_streams"], self.raises)

    def raises(self, row):
        client, attempts = gateway.client("plain")
        read = Read()
        with client, self.assertRaises(openai.APIError) as caught:
            read.drain(client.chat.completions.create(**chat(row["model"]), stream=True))
        self.assertTrue(read.text, "what came before is delivered")
        self.assertEqual(caught.exception.code, row["code"], caught.exception)
        self.assertEqual(len(attempts), 1, "a stream that has started is not repeated")


class Waits(Table):
    def test_a_client_that_waits_as_it_is_told_is_admitted(self):  # ERR-2, BR-137
        self.every(TABLE["waits"], self.admitted)

    def admitted(self, row):
        with prepared(row):
            client, attempts = gateway.client(row["key"], 4)
            with client:
                whole(client, chat("m"))
        self.assertGreater(len(attempts), 1, "it was refused first")
        if "while" not in row:
            self.assertEqual(len(attempts), 2, "the first wait was long enough")
        for refused, following in zip(attempts, attempts[1:]):
            self.assertEqual(refused["status"], 429)
            told = int(refused["headers"]["retry-after"])
            self.assertGreaterEqual(told, 1)
            self.assertGreaterEqual(following["sent"] - refused["ended"], told)
