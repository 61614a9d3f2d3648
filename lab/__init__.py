# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Experiments on the simulator: one file for each figure of the papers."""
