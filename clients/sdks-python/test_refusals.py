# SPDX-License-Identifier: Apache-2.0
"""Every client, refused in every way: its own error, and how often it asked."""

import unittest
from concurrent.futures import ThreadPoolExecutor

import clients
import gateway


class Table(unittest.TestCase):
    def every(self, rows, check):
        """Checks all rows at the same time."""
        with ThreadPoolExecutor(24) as pool:
            for row, done in [(row, pool.submit(check, *row)) for row in rows]:
                client, *rest = row
                with self.subTest(f"{type(client).__name__}: {rest}"):
                    done.result()


class Refusals(Table):
    def test_a_refusal_is_the_clients_own_error(self):
        """ERR-1 to ERR-5, RUN-2, RES-8: whole and streamed, with the number of attempts."""
        gateway.exhaust("spent", 2)
        gateway.exhaust("budgeted", 2)
        with gateway.chat("slots", "open-ended", stream=True) as held:
            held.read(1)
            self.every(
                [(client, row, mode) for row in gateway.KINDS for client in clients.ALL for mode in ("whole", "streamed")],
                self.refused,
            )

    def refused(self, client, row, mode):
        more = {"text": "x" * row["text_bytes"]} if "text_bytes" in row else {}
        if "output" in row:
            more["output"] = row["output"]
        with gateway.counted() as attempts, self.assertRaises(client.classes[row["status"]]) as caught:
            client.send(mode, row["key"], row.get("model", "m"), unready=row.get("unready", False), **more)
        last = attempts[-1]["headers"]
        got = client.refusal(caught.exception)
        wanted = {"status": row["status"], "type": row.get("type"), "code": row.get("code"), "id": last["x-weir-request-id"]}
        for name in got.keys() & ({"status"} if "source" in row else wanted.keys()):
            self.assertEqual(got[name], wanted[name], (name, caught.exception))
        self.assertEqual(len(attempts), 2 if client.repeats(row) else 1, "attempts")
        self.assertEqual(last["x-weir-error-source"], row.get("source", "gateway"))
        if "source" not in row:
            self.assertIn(last["x-weir-request-id"], str(caught.exception), "the message names the request")
        for name, pattern in row["headers"].items():
            if pattern is None:
                self.assertNotIn(name, last)
            else:
                self.assertRegex(last.get(name, ""), pattern, name)


class Waits(Table):
    def test_a_client_that_waits_as_it_is_told_is_admitted(self):
        """ERR-2, BR-137: two attempts are enough only for who waits so long. Google's clients do not."""
        self.every(
            [
                (clients.Anthropic(), "wait-messages"), (clients.OpenAI(), "wait-responses"),
                (clients.ChainAnthropic(), "wait-chain-messages"), (clients.ChainOpenAI(), "wait-chain"),
            ],
            self.admitted,
        )

    def admitted(self, client, key):
        gateway.exhaust(key, 20)
        with gateway.counted() as attempts:
            client.send("whole", key, retries=2)
        self.assertEqual([attempt["status"] for attempt in attempts], [429, 200])
