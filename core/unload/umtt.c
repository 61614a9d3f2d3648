/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open addressing with linear probing. A removal moves later entries back into the gap, so there
 * are no tombstones.
 */
#include "core/unload/umtt.h"

#define GOLDEN 0x9e3779b97f4a7c15ull

int weir_umtt_init(struct weir_umtt *m, struct weir_umtt_entry *table, uint32_t size)
{
	if (!table || size < 4 || size & (size - 1))
		return -EINVAL;
	*m = (struct weir_umtt){ .table = table, .size = size };
	return 0;
}

/* Depending on the device, rkeys differ in their low bits or in their high bits. */
static uint32_t home_slot(const struct weir_umtt *m, uint32_t tag)
{
	return (uint32_t)(tag * GOLDEN >> 32) & (m->size - 1);
}

/* The slot of a tag, or where the tag would go. A free slot always exists. */
static uint32_t find_slot(const struct weir_umtt *m, uint32_t tag)
{
	uint32_t at = home_slot(m, tag);

	while (m->table[at].length && m->table[at].tag != tag)
		at = (at + 1) & (m->size - 1);
	return at;
}

int weir_umtt_add(struct weir_umtt *m, const struct weir_umtt_entry *entry)
{
	uint32_t at;

	if (!entry->length || entry->addr + (entry->length - 1) < entry->addr)
		return -EINVAL;
	at = find_slot(m, entry->tag);
	if (m->table[at].length)
		return -EEXIST;
	if (m->count >= m->size - m->size / 4)
		return -ENOSPC;
	m->table[at] = *entry;
	m->count++;
	return 0;
}

/* Whether the entry at @from may move to the gap at @to: its home must not lie between them. */
static bool may_move_back(const struct weir_umtt *m, uint32_t from, uint32_t to)
{
	uint32_t mask = m->size - 1, home = home_slot(m, m->table[from].tag);

	return ((from - home) & mask) >= ((from - to) & mask);
}

void weir_umtt_remove(struct weir_umtt *m, uint32_t tag)
{
	uint32_t gap = find_slot(m, tag), at = gap;

	if (!m->table[gap].length)
		return;
	m->count--;
	for (;;) {
		at = (at + 1) & (m->size - 1);
		if (!m->table[at].length)
			break;
		if (!may_move_back(m, at, gap))
			continue;
		m->table[gap] = m->table[at];
		gap = at;
	}
	m->table[gap].length = 0;
}

int weir_umtt_check(const struct weir_umtt *m, uint32_t owner, uint32_t tag, uint64_t addr,
		    uint64_t length)
{
	const struct weir_umtt_entry *entry = &m->table[find_slot(m, tag)];
	uint64_t offset = addr - entry->addr;

	if (!entry->length || entry->owner != owner || !entry->is_writable || !length ||
	    addr < entry->addr || offset > entry->length || length > entry->length - offset)
		return -EACCES;
	return 0;
}
