# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each file one experiment: see experiment.py."""
