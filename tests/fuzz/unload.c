/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client writes arbitrary slots. The target's CPU copies into memory that this client may write
 * to, and nowhere else, in order and up to the first refusal. Offers of others are read within
 * their bounds.
 *
 * The input is a list of records of RECORD bytes.
 */
#include <assert.h>
#include <string.h>

#include "core/unload/unload_rx.h"
#include "wire/discovery.h"

enum { RECORD = 8, TABLE = 16, REGIONS = 6, REGION = 64, ARENA = REGIONS * REGION, OWNER = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	uint8_t arena[ARENA], shadow[ARENA];
	struct weir_umtt_entry table[TABLE];
	struct weir_umtt map;
	struct weir_unload_rx rx;
	bool is_refused, may_write[ARENA];
} target;

/* Regions 0 and 1 touch, 2 is another client's, 3 cannot be written to; the rest is not lent. */
static void lend(unsigned int i, bool add)
{
	const struct weir_umtt_entry entry = {
		.addr = (uintptr_t)target.arena + i * REGION,
		.length = REGION,
		.tag = i + 1,
		.owner = i == 2 ? OWNER + 1 : OWNER,
		.is_writable = i != 3,
	};

	if (add)
		weir_umtt_add(&target.map, &entry);
	else
		weir_umtt_remove(&target.map, i + 1);
	memset(target.may_write + i * REGION, add && i != 2 && i != 3, REGION);
}

static void write_slot(const uint8_t *record)
{
	struct wire_unload_slot slot;
	uint32_t tag = record[1] % (REGIONS + 2), length, wire_length = record[3];
	uint64_t addr;
	bool is_allowed;
	int rc;

	memset(&slot, record[4] | 1, sizeof(slot));
	slot.addr = (uintptr_t)target.arena + (uint64_t)(int64_t)(int8_t)record[2] * 4;
	if (record[5] == 0xff)
		slot.addr = UINT64_MAX - record[2];
	length = wire_unload_slot_decode(&slot, wire_length, &addr);
	assert(length <= sizeof(slot.data));
	rc = weir_unload_rx_copy(&target.rx, &target.map, OWNER, tag, addr, slot.data, length);
	is_allowed = length && tag >= 1 && tag <= REGIONS && target.may_write[(tag - 1) * REGION] &&
		     addr >= (uintptr_t)target.arena + (tag - 1) * REGION &&
		     addr + length <= (uintptr_t)target.arena + tag * REGION &&
		     addr + length > addr;
	assert((rc == 0) == (is_allowed && !target.is_refused));
	target.is_refused |= rc != 0;
	if (!rc)
		memcpy(target.shadow + (addr - (uintptr_t)target.arena), slot.data, length);
	assert(!memcmp(target.arena, target.shadow, ARENA));
}

static void report(bool has_more)
{
	uint16_t in_flight = target.rx.in_flight;

	if (!weir_unload_rx_must_report(&target.rx, has_more))
		return;
	assert(in_flight < target.rx.slots);
	if (weir_unload_rx_reported(&target.rx))
		weir_unload_rx_report_arrived(&target.rx);
}

static void read_datagram(const uint8_t *data, size_t size)
{
	struct wire_discovery_offer offer;
	struct wire_unload_return back;
	uint64_t word;

	if (!wire_discovery_offer_decode(data, size, &offer)) {
		assert(offer.type >= WIRE_DISCOVERY_OFFER && offer.type <= WIRE_DISCOVERY_REFUSED);
		assert(offer.magic == WIRE_DISCOVERY_MAGIC && size == sizeof(offer));
	}
	if (size < sizeof(word))
		return;
	memcpy(&word, data, sizeof(word));
	if (wire_unload_return_is_whole(word, &back))
		assert(wire_unload_return_word(&back) == (word & 0xfe00000000000000) ||
		       wire_unload_return_decode((uint32_t)word).done == (uint16_t)word);
	word = wire_unload_return_word(&(struct wire_unload_return){ .done = data[0] });
	assert(wire_unload_return_is_whole(word, &back) && back.done == data[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_datagram(data, size);
	memset(&target, 0, sizeof(target));
	weir_umtt_init(&target.map, target.table, TABLE);
	weir_unload_rx_init(&target.rx, 4 << (size % 3));
	for (unsigned int i = 0; i < 4; i++)
		lend(i, true);
	for (; size >= RECORD; data += RECORD, size -= RECORD) {
		if (data[0] < 0xc0)
			write_slot(data);
		else if (data[0] < 0xe0)
			lend(data[1] % REGIONS, data[2] & 1);
		else if (data[0] < 0xf8)
			report(data[1] & 1);
		else {
			weir_unload_rx_init(&target.rx, target.rx.slots);
			target.is_refused = false;
		}
	}
	return 0;
}
