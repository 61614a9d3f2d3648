/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The congestion window of a reliable queue pair, in packets: additive increase, multiplicative
 * decrease, as TCP Reno has (RFC 5681). So queue pairs and TCP connections share a link.
 *
 * Context of all: serialised by the queue pair.
 */
#ifndef WEIR_SOFTNIC_ROCE_RATE_H
#define WEIR_SOFTNIC_ROCE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct roce_rate - a congestion window
 * @window: packets that may be in flight; from 1 to @window_max
 * @threshold: below, the window doubles in a round trip; above, it grows by one packet
 * @credit: packets acknowledged since the last growth above the threshold
 * @recovered: PSN; losses before it belong to a loss already counted
 */
struct roce_rate {
	uint32_t window, window_max;
	uint32_t threshold;
	uint32_t credit;
	uint64_t recovered;
};

void roce_rate_init(struct roce_rate *rate, uint32_t window_max);

/** roce_rate_acked() - @packets more were acknowledged */
void roce_rate_acked(struct roce_rate *rate, uint64_t packets);

/**
 * roce_rate_lost() - the queue pair goes back
 * @psn: it goes back to
 * @sent: one past the highest PSN sent
 * @is_silent: because nothing came for the whole timeout
 */
void roce_rate_lost(struct roce_rate *rate, uint64_t psn, uint64_t sent, bool is_silent);

#endif
