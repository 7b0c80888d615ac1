# SPDX-License-Identifier: Apache-2.0
"""The clients, each as a user has it, behind one face: send, and what a refusal is."""

import functools

import anthropic
import google.genai
import langchain_anthropic
import langchain_google_genai
import langchain_openai
import openai
from google.genai import errors, types
from langchain_core import exceptions
from langchain_google_genai import chat_models

import gateway

# Google's clients repeat by status alone.
GOOGLE_REPEATS = {408, 429, 500, 502, 503, 504}


class Client:
    """kind is what the names of its models end with."""

    kind = ""

    def repeats(self, row):
        return row["again"]

    def model(self, name):
        return {"m": {"": "m", "-messages": "messages", "-contents": "contents"}[self.kind]}.get(name, name + self.kind)


class Anthropic(Client):
    kind = "-messages"
    classes = {
        400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 402: anthropic.PaymentRequiredError,
        403: anthropic.PermissionDeniedError, 404: anthropic.NotFoundError, 413: anthropic.ContentTooLargeError,
        429: anthropic.RateLimitError, 503: anthropic.ServiceUnavailableError,
    }

    @functools.cache
    def client(self, key, retries=1, unready=False):
        return anthropic.Anthropic(api_key=gateway.secret(key), base_url=gateway.root(unready), max_retries=retries)

    def send(self, mode, key, model="m", text="hello there", output=100, retries=1, unready=False):
        turn = {"model": self.model(model), "max_tokens": output, "messages": [{"role": "user", "content": text}]}
        client = self.client(key, retries, unready)
        if mode == "whole":
            return client.messages.create(**turn)
        with client.messages.stream(**turn) as stream:
            return stream.get_final_message()

    def refusal(self, error):
        return {"status": error.status_code, "type": error.type, "code": error.error_code, "id": error.request_id}


class OpenAI(Client):
    """OpenAI's responses; its chat has a suite of its own."""

    classes = {
        400: openai.BadRequestError, 401: openai.AuthenticationError, 402: openai.APIStatusError,
        403: openai.PermissionDeniedError, 404: openai.NotFoundError, 413: openai.APIStatusError,
        429: openai.RateLimitError, 503: openai.InternalServerError,
    }

    @functools.cache
    def client(self, key, retries=1, unready=False):
        return openai.OpenAI(api_key=gateway.secret(key), base_url=gateway.url(unready), max_retries=retries)

    def send(self, mode, key, model="m", text="hello there", output=100, retries=1, unready=False):
        turn = {"model": self.model(model), "input": text, "max_output_tokens": output}
        client = self.client(key, retries, unready)
        if mode == "whole":
            return client.responses.create(**turn)
        with client.responses.stream(**turn) as stream:
            return stream.get_final_response()

    def refusal(self, error):
        return {"status": error.status_code, "type": error.type, "code": error.code, "id": error.request_id}


class Google(Client):
    kind = "-contents"
    classes = dict.fromkeys((400, 401, 402, 403, 404, 413, 429), errors.ClientError) | {503: errors.ServerError}

    def repeats(self, row):
        return row["status"] in GOOGLE_REPEATS

    @functools.cache
    def client(self, key, retries=1, unready=False):
        options = types.HttpOptions(
            base_url=gateway.root(unready), retry_options=types.HttpRetryOptions(attempts=1 + retries, initial_delay=0.1, jitter=0.1)
        )
        return google.genai.Client(api_key=gateway.secret(key), http_options=options)

    def send(self, mode, key, model="m", text="hello there", output=100, retries=1, unready=False):
        turn = {"model": self.model(model), "contents": text, "config": {"max_output_tokens": output}}
        client = self.client(key, retries, unready)
        if mode == "whole":
            return client.models.generate_content(**turn)
        return list(client.models.generate_content_stream(**turn))

    def refusal(self, error):
        reasons = [detail["reason"] for detail in error.details["error"].get("details", []) if "reason" in detail]
        return {"status": error.code, "code": reasons[0] if reasons else None}


class Chain(Client):
    """A chat model of LangChain. Its errors are those of the client that it has, or of both."""

    def send(self, mode, key, model="m", text="hello there", output=100, retries=1, unready=False):
        chain = self.client(key, model, output, retries, unready)
        if mode == "whole":
            return chain.invoke(text)
        chunks = list(chain.stream(text))
        return functools.reduce(lambda a, b: a + b, chunks)


class ChainOpenAI(Chain):
    classes, refusal = OpenAI.classes, OpenAI.refusal

    @functools.cache
    def client(self, key, model="m", output=100, retries=1, unready=False):
        return langchain_openai.ChatOpenAI(
            model=self.model(model), api_key=gateway.secret(key), base_url=gateway.url(unready), max_retries=retries, max_tokens=output,
            stream_usage=True,  # it is not asked for at addresses other than OpenAI's
        )


class ChainAnthropic(Chain):
    kind = "-messages"
    classes = Anthropic.classes | {503: exceptions.ModelAPIError}
    refusal = Anthropic.refusal

    @functools.cache
    def client(self, key, model="m", output=100, retries=1, unready=False):
        return langchain_anthropic.ChatAnthropic(
            model=self.model(model), api_key=gateway.secret(key), base_url=gateway.root(unready), max_retries=retries, max_tokens=output
        )


class ChainGoogle(Chain):
    """Its errors say themselves whether to try again (LangChain's ModelError)."""

    kind = "-contents"
    repeats = Google.repeats
    classes = {
        400: exceptions.ModelInvalidRequestError, 401: exceptions.ModelAuthenticationError, 402: chat_models.ChatGoogleGenerativeAIError,
        403: exceptions.ModelPermissionDeniedError, 404: exceptions.ModelNotFoundError, 413: chat_models.ChatGoogleGenerativeAIError,
        429: exceptions.ModelRateLimitError, 503: exceptions.ModelAPIError,
    }

    @functools.cache
    def client(self, key, model="m", output=100, retries=1, unready=False):
        return langchain_google_genai.ChatGoogleGenerativeAI(
            model=self.model(model), google_api_key=gateway.secret(key), base_url=gateway.root(unready),
            max_retries=1 + retries, max_output_tokens=output,
        )

    def refusal(self, error):
        cause = error if isinstance(error, errors.APIError) else error.__cause__
        return Google.refusal(self, cause)


ALL = [Anthropic(), OpenAI(), Google(), ChainOpenAI(), ChainAnthropic(), ChainGoogle()]
