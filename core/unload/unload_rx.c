/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A report carries a 16-bit count of copied writes, so one report covers any number of them. */
#include "core/unload/unload_rx.h"
#include "core/base/ordered_store.h"

/* Reports per report that asks for a completion. */
static uint16_t signal_every(const struct weir_unload_rx *c)
{
	return c->slots / 2;
}

int weir_unload_rx_refuse(struct weir_unload_rx *c)
{
	c->is_refused = true;
	return -EACCES;
}

int weir_unload_rx_check(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			 uint32_t tag, uint64_t addr, uint32_t length)
{
	if (c->is_refused)
		return -ECANCELED;
	return weir_umtt_check(map, owner, tag, addr, length) ? weir_unload_rx_refuse(c) : 0;
}

void weir_unload_rx_store(struct weir_unload_rx *c, uint64_t addr, const void *data,
			  uint32_t length)
{
	weir_ordered_store((void *)(uintptr_t)addr, data, length);
	c->seen++;
}

int weir_unload_rx_copy(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			uint32_t tag, uint64_t addr, const void *data, uint32_t length)
{
	int rc = weir_unload_rx_check(c, map, owner, tag, addr, length);

	if (!rc)
		weir_unload_rx_store(c, addr, data, length);
	return rc;
}

bool weir_unload_rx_must_report(const struct weir_unload_rx *c, bool more)
{
	uint16_t done = (uint16_t)(c->seen - c->returned);

	if (c->in_flight >= c->slots ||
	    (!done && !c->owes && c->is_refused == c->is_refusal_reported))
		return false;
	return !more || done >= c->slots / 4 || c->is_refused;
}

bool weir_unload_rx_reported(struct weir_unload_rx *c)
{
	bool is_signalled = ++c->unsignalled >= signal_every(c);

	if (is_signalled)
		c->unsignalled = 0;
	c->in_flight++;
	c->returned = c->seen;
	c->is_refusal_reported = c->is_refused;
	c->owes = false;
	return is_signalled;
}

void weir_unload_rx_report_arrived(struct weir_unload_rx *c)
{
	c->in_flight -= signal_every(c);
}
