/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The number of each slot is a sequence lock that never makes the writer wait. The writer clears
 * the number, changes the record, and stores the next number. A reader has a consistent record if
 * it finds the wanted number both before and after copying the words.
 *
 * There are no fences, because sanitizers do not follow them. The writer stores each word with
 * release, so after clearing the number. A reader that loads a word of the next record acquires the
 * cleared number too, and cannot find the old number afterwards.
 */
#include "core/base/trace.h"

#include "core/base/probe.h"

_Static_assert(offsetof(struct weir_trace_record, at_ns) == 0, "the first word is the time");
_Static_assert(WEIR_TRACE_WORDS == 4, "each is written");

int weir_trace_init(struct weir_trace *t, struct weir_trace_slot *ring, uint32_t count)
{
	if (!count || (count & (count - 1)))
		return -EINVAL;
	t->ring = ring;
	t->mask = count - 1;
	t->number = 0;
	return 0;
}

static void put_record(struct weir_trace_slot *slot, int i, const struct weir_trace_record *record)
{
	uint64_t word;

	memcpy(&word, (const char *)record + i * sizeof(word), sizeof(word));
	weir_store_release(&slot->word[i], word);
}

/* On the path of every request: no loop, and no byte is copied twice. */
void weir_trace_note(struct weir_trace *t, uint64_t at_ns, const struct weir_trace_record *record)
{
	struct weir_trace_slot *slot;

	if (!t)
		return;
	slot = &t->ring[++t->number & t->mask];
	weir_store_release(&slot->number, 0);
	weir_store_release(&slot->word[0], at_ns);
	put_record(slot, 1, record);
	put_record(slot, 2, record);
	put_record(slot, 3, record);
	weir_store_release(&slot->number, t->number);
	weir_probe(record);
}

int weir_trace_read(const struct weir_trace_slot *ring, uint32_t count, uint64_t number,
		    struct weir_trace_record *out)
{
	const struct weir_trace_slot *slot = &ring[number & (count - 1)];
	uint64_t found = weir_load_acquire(&slot->number), word[WEIR_TRACE_WORDS];
	int i;

	if (found != number)
		return found < number ? -EAGAIN : -ENOENT;
	for (i = 0; i < WEIR_TRACE_WORDS; i++)
		word[i] = weir_load_acquire(&slot->word[i]);
	if (weir_load_acquire(&slot->number) != number)
		return -ENOENT;
	memcpy(out, word, sizeof(*out));
	return 0;
}
