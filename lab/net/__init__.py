# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab net: a cluster of hosts on one machine, as network namespaces."""
