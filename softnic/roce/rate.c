// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softnic/roce/rate.h"

enum {
	WINDOW_FIRST = 16,
	WINDOW_MIN = 2,
};

void roce_rate_init(struct roce_rate *rate, uint32_t window_max)
{
	*rate = (struct roce_rate){
		.window = window_max < WINDOW_FIRST ? window_max : WINDOW_FIRST,
		.window_max = window_max,
		.threshold = window_max,
	};
}

void roce_rate_acked(struct roce_rate *rate, uint64_t packets)
{
	uint64_t growth = packets;

	if (rate->window >= rate->threshold) {
		growth = (rate->credit + packets) / rate->window;
		rate->credit = (uint32_t)((rate->credit + packets) % rate->window);
	}
	if (growth > rate->window_max - rate->window)
		growth = rate->window_max - rate->window;
	rate->window += (uint32_t)growth;
}

void roce_rate_lost(struct roce_rate *rate, uint64_t psn, uint64_t sent, bool is_silent)
{
	uint32_t half = rate->window / 2 < WINDOW_MIN ? WINDOW_MIN : rate->window / 2;

	if (psn < rate->recovered && !is_silent)
		return;
	rate->recovered = sent;
	rate->threshold = half < rate->window_max ? half : rate->window_max;
	rate->window = is_silent ? 1 : rate->threshold;
	rate->credit = 0;
}
