#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every damaged image of the corpus: the outcome that its row in EXPECT.tsv demands."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402

corpus.bad()
