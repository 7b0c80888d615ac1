# SPDX-License-Identifier: Apache-2.0
"""Runs every test of this folder under one gateway."""

import sys
import unittest

import gateway

with gateway.running():
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.discover("."))
sys.exit(not result.wasSuccessful())
