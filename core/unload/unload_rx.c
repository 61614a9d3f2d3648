/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/unload/unload_rx.h"
#include "core/base/ordered_store.h"

int weir_copier_refuse(struct weir_copier *c)
{
	c->is_refused = true;
	return -EACCES;
}

int weir_copier_check(struct weir_copier *c, const struct weir_umtt *map, uint32_t owner,
		      uint32_t tag, uint64_t addr, uint32_t length)
{
	if (c->is_refused)
		return -ECANCELED;
	return weir_umtt_check(map, owner, tag, addr, length) ? weir_copier_refuse(c) : 0;
}

void weir_copier_store(struct weir_copier *c, uint64_t addr, const void *data, uint32_t length)
{
	weir_store((void *)(uintptr_t)addr, data, length);
	c->seen++;
}

int weir_copier_copy(struct weir_copier *c, const struct weir_umtt *map, uint32_t owner,
		     uint32_t tag, uint64_t addr, const void *data, uint32_t length)
{
	int err = weir_copier_check(c, map, owner, tag, addr, length);

	if (!err)
		weir_copier_store(c, addr, data, length);
	return err;
}

bool weir_copier_tells(const struct weir_copier *c, bool more)
{
	uint16_t done = (uint16_t)(c->seen - c->returned);

	if (!done && !c->owes && c->is_refused == c->is_told)
		return false;
	return !more || done >= c->tell_max || c->is_refused;
}

void weir_copier_told(struct weir_copier *c)
{
	c->returned = c->seen;
	c->is_told = c->is_refused;
	c->owes = false;
}
