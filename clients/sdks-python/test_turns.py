# SPDX-License-Identifier: Apache-2.0
"""Every client's turn: whole, streamed, with a tool, counted, embedded."""

import json
import unittest

import openai
from google.genai import types

import clients
import gateway

TOOL = {"name": "weather", "description": "The weather of a city"}
FUNCTION = TOOL | {"parameters": gateway.WEATHER}


class Turn(unittest.TestCase):
    def answers(self, client):
        """A whole turn, and the same streamed; each is one attempt."""
        answers = []
        for mode in ("whole", "streamed"):
            with gateway.counted() as attempts:
                answers.append(client.send(mode, "plain"))
            self.assertEqual([attempt["status"] for attempt in attempts], [200], mode)
        return answers

    def passed_on(self, path):
        """What the provider got has its credential, and not the caller's key (DIS-2)."""
        got = gateway.recorder.requests[-1]
        self.assertTrue(got["path"].endswith(path), got["path"])
        self.assertIn("credential-of-the-recorder", str(got["headers"]))
        self.assertNotIn("the-secret-of-plain", str(got))
        self.assertIn(b"weather", got["body"])


class Anthropic(Turn):
    client = clients.Anthropic()

    def test_a_turn_whole_and_streamed(self):
        for message in self.answers(self.client):
            self.assertEqual(message.stop_reason, "end_turn")
            self.assertTrue(message.content[0].text)
            self.assertEqual((message.usage.input_tokens, message.usage.output_tokens), (20, 30))

    def test_a_tool_is_called(self):  # DIS-6
        tool = TOOL | {"input_schema": gateway.WEATHER}
        turn = {"model": "tools-messages", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}], "tools": [tool]}
        client = self.client.client("plain")
        with client.messages.stream(**turn) as stream:
            streamed = stream.get_final_message()
        for message in (streamed, client.messages.create(**turn)):
            self.assertEqual(message.stop_reason, "tool_use")
            self.assertEqual((message.content[0].name, message.content[0].input), ("weather", gateway.ZURICH))
            self.passed_on("/messages")

    def test_counting_is_free_and_the_id_is_the_requests(self):  # SPEC 9, ERR-4
        with gateway.counted() as attempts:
            counted = self.client.client("spent-count").messages.count_tokens(model="messages", messages=[{"role": "user", "content": "hello"}])
        self.assertEqual(counted.input_tokens, 20)
        self.assertEqual(counted._request_id, attempts[0]["headers"]["x-weir-request-id"])

    def test_models(self):  # KEY-5
        self.assertEqual([model.id for model in self.client.client("listed").models.list()], ["m"])


class OpenAIResponses(Turn):
    client = clients.OpenAI()

    def test_a_turn_whole_and_streamed(self):
        for response in self.answers(self.client):
            self.assertEqual(response.status, "completed")
            self.assertTrue(response.output_text)
            self.assertEqual((response.usage.input_tokens, response.usage.output_tokens), (20, 30))

    def test_a_tool_is_called(self):  # DIS-6
        turn = {"model": "tools", "input": "hello", "tools": [FUNCTION | {"type": "function", "strict": False}]}
        client = self.client.client("plain")
        with client.responses.stream(**turn) as stream:
            streamed = stream.get_final_response()
        for response in (streamed, client.responses.create(**turn)):
            self.assertEqual((response.output[0].name, json.loads(response.output[0].arguments)), ("weather", gateway.ZURICH))
            self.passed_on("/responses")

    def test_a_stream_that_breaks_off_has_no_clean_end(self):  # ERR-6
        events = list(self.client.client("plain").responses.create(model="cut", input="hello", stream=True))
        failed = [event for event in events if event.type == "response.failed"]
        self.assertEqual([event.response.status for event in failed], ["failed"])
        self.assertEqual(events[-1].type, "error")
        self.assertEqual(events[-1].code, "upstream_unreachable")
        self.assertNotIn("response.completed", [event.type for event in events])

    def test_embeddings_keep_their_form(self):
        for form in (openai.NOT_GIVEN, "float"):  # the client asks for base64 itself
            vectors = self.client.client("plain").embeddings.create(model="m", input="hello", encoding_format=form)
            self.assertEqual(vectors.data[0].embedding, [0.25, -0.5, 0.75])


class Google(Turn):
    client = clients.Google()

    def test_a_turn_whole_and_streamed(self):
        whole, chunks = self.answers(self.client)
        self.assertEqual("".join(chunk.text or "" for chunk in chunks), whole.text)
        for answer in (whole, chunks[-1]):
            self.assertEqual(answer.candidates[0].finish_reason, types.FinishReason.STOP)
            usage = answer.usage_metadata
            self.assertEqual((usage.prompt_token_count, usage.candidates_token_count), (20, 30))

    def test_a_tool_is_called(self):  # DIS-6
        turn = {
            "model": "tools-contents", "contents": "hello",
            "config": {"tools": [{"function_declarations": [TOOL | {"parameters_json_schema": gateway.WEATHER}]}]},
        }
        models = self.client.client("plain").models
        for answer in (models.generate_content(**turn), *models.generate_content_stream(**turn)):
            self.assertEqual((answer.function_calls[0].name, answer.function_calls[0].args), ("weather", gateway.ZURICH))
        self.passed_on(":streamGenerateContent")

    def test_counting_is_free(self):  # SPEC 9
        models = self.client.client("spent-count").models
        self.assertEqual(models.count_tokens(model="contents", contents="hello").total_tokens, 20)

    def test_embeddings(self):
        for texts in ("hello", ["hello", "there"]):
            answer = self.client.client("plain").models.embed_content(model="contents", contents=texts)
            self.assertEqual([e.values for e in answer.embeddings], [[0.25, -0.5, 0.75]] * (1 if texts == "hello" else 2))

    def test_models(self):  # KEY-5
        self.assertEqual([model.name for model in self.client.client("listed-contents").models.list()], ["models/contents"])


class LangChain(Turn):
    def test_a_turn_whole_and_streamed(self):
        for client in (clients.ChainOpenAI(), clients.ChainAnthropic(), clients.ChainGoogle()):
            with self.subTest(type(client).__name__):
                whole, streamed = self.answers(client)
                self.assertEqual(streamed.text, whole.text)
                self.assertTrue(whole.text)
                self.assertEqual((whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]), (20, 30))
                self.assertEqual(streamed.usage_metadata["output_tokens"], 30)

    def test_a_tool_is_called(self):  # DIS-6
        for client in (clients.ChainOpenAI(), clients.ChainAnthropic(), clients.ChainGoogle()):
            with self.subTest(type(client).__name__):
                chain = client.client("plain", "tools").bind_tools([FUNCTION])
                streamed = None
                for chunk in chain.stream("hello"):
                    streamed = chunk if streamed is None else streamed + chunk
                for message in (chain.invoke("hello"), streamed):
                    self.assertEqual([(call["name"], call["args"]) for call in message.tool_calls], [("weather", gateway.ZURICH)])
                self.assertNotIn("the-secret-of-plain", str(gateway.recorder.requests[-1]))
