/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of this process for each host that it exchanges packets with. The table never
 * forgets a host. The last entry counts for all hosts beyond.
 */
#ifndef WEIR_SOFTNIC_TAP_PEERS_H
#define WEIR_SOFTNIC_TAP_PEERS_H

#include "softnic/roce/qp.h"
#include "softnic/verbs/nic.h"

/** peers_get() - the counters for a host; valid until a fork. Context: any thread; a leaf lock */
struct softnic_peer_counters *peers_get(const union ibv_gid *gid);

/** peers_count() - add what a queue pair has counted from @before to @now; atomically */
void peers_count(struct softnic_peer_counters *peer, const struct roce_counters *before,
		 const struct roce_counters *now);

#endif
