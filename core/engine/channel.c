/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair accepts no work after an error, so a channel is unusable from its first failed
 * completion on, even before the host notices.
 */
#include "core/engine/channel.h"

void weir_channels_init(struct weir_channels *c)
{
	memset(c, 0, sizeof(*c));
}

int weir_channels_up(struct weir_channels *c, uint16_t number, uint32_t wrs_max)
{
	if (number >= WEIR_CHANNEL_MAX || !wrs_max)
		return -EINVAL;
	if (weir_channels_is_up(c, number) || c->channel[number].in_flight)
		return -EBUSY;
	c->channel[number].wrs_max = wrs_max;
	c->up |= 1u << number;
	c->broken &= ~(1u << number);
	c->failed &= ~(1u << number);
	return 0;
}

static void set_unusable(struct weir_channels *c, uint16_t number, bool is_broken)
{
	if (weir_bug(number >= WEIR_CHANNEL_MAX))
		return;
	c->up &= ~(1u << number);
	c->broken &= ~(1u << number);
	c->broken |= (uint32_t)is_broken << number;
	c->failed &= ~(1u << number);
}

void weir_channels_broken(struct weir_channels *c, uint16_t number)
{
	set_unusable(c, number, true);
}

void weir_channels_down(struct weir_channels *c, uint16_t number)
{
	set_unusable(c, number, false);
}

void weir_channels_fail(struct weir_channels *c, uint16_t number)
{
	if (!weir_channels_is_up(c, number))
		return;
	c->up &= ~(1u << number);
	c->broken |= 1u << number;
	c->failed |= 1u << number;
}

uint16_t weir_channels_pop_failed(struct weir_channels *c)
{
	uint16_t number = 0;

	if (!c->failed)
		return WEIR_CHANNEL_NONE;
	while (!(c->failed & (1u << number)))
		number++;
	c->failed &= ~(1u << number);
	return number;
}
