# SPDX-License-Identifier: Apache-2.0
"""The examples for Python in docs/agents.md, run as they stand there."""

import contextlib
import io
import os
import re
import unittest
from unittest import mock

import gateway
import served

PAGE = (served.SHARED.parent / "docs" / "agents.md").read_text(encoding="utf-8")


class Page(unittest.TestCase):
    def test_each_example_is_answered(self):
        examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(examples), 3)
        with mock.patch.dict(os.environ, {"WEIR_KEY": gateway.secret("plain")}):
            for example in examples:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(example.replace("http://127.0.0.1:8787", gateway.root()), "docs/agents.md", "exec"), {})
                self.assertIn("Lorem ipsum", printed.getvalue(), example)
