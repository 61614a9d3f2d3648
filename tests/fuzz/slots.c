/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peer of an exchange shows arbitrary bits, and returns and announces arbitrary slots. Both
 * ends keep their own account: no slot is handed out twice, and a bit out of turn is noticed.
 *
 * The input is a list of records of RECORD bytes: an event and its slot or bits.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/slots/slot_bitmap.h"

enum { RECORD = 3, SLOTS_MAX = 70, WORDS = 2, MEMORY = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where a slot is, as this end must see it. */
enum slot_place { FREE, HELD, SENT, FULL, READY };

static struct {
	uint64_t tx_bits[WORDS], rx_bits[WORDS], fresh[WORDS];
	uint64_t tx_memory[MEMORY / 8], rx_memory[MEMORY / 8];
	struct weir_slot_bitmap_tx tx;
	struct weir_slot_bitmap_rx rx;
	enum slot_place tx_place[SLOTS_MAX], rx_place[SLOTS_MAX];
	uint32_t slots;
	bool is_reading;
} end;

static void acquire(void)
{
	uint32_t nr_free = 0;
	int slot = weir_slot_bitmap_tx_acquire(&end.tx);

	for (uint32_t i = 0; i < end.slots; i++)
		nr_free += end.tx_place[i] == FREE;
	assert((slot == -EAGAIN) == !nr_free);
	if (slot < 0)
		return;
	assert((uint32_t)slot < end.slots && end.tx_place[slot] == FREE);
	assert(weir_slot_bitmap_tx_is_held(&end.tx, (uint32_t)slot));
	end.tx_place[slot] = HELD;
}

static void commit(uint32_t slot, bool abandons)
{
	if (end.tx_place[slot] != HELD)
		return;
	if (abandons)
		weir_slot_bitmap_tx_abandon(&end.tx, slot);
	else
		weir_slot_bitmap_tx_commit(&end.tx, slot);
	end.tx_place[slot] = abandons ? FREE : SENT;
	assert(weir_slot_bitmap_tx_is_full(&end.tx, slot) == !abandons);
}

static void note_sent(void)
{
	weir_slot_bitmap_tx_notified(&end.tx);
	for (uint32_t i = 0; i < end.slots; i++)
		if (end.tx_place[i] == SENT)
			end.tx_place[i] = FULL;
}

/* Return: false if the peer broke the rules. */
static bool take_back(uint32_t slot)
{
	enum slot_place place = slot < end.slots ? end.tx_place[slot] : FREE;
	int rc = weir_slot_bitmap_tx_slot_returned(&end.tx, slot);

	assert(rc ? place != FULL : place == FULL || place == SENT);
	if (!rc)
		end.tx_place[slot] = FREE;
	return !rc;
}

static bool fill(uint32_t slot)
{
	int rc = weir_slot_bitmap_rx_slot_filled(&end.rx, slot);

	assert(!rc == (slot < end.slots && end.rx_place[slot] == FREE));
	if (!rc)
		end.rx_place[slot] = HELD;
	return !rc;
}

static bool read_receiver(void)
{
	int rc = weir_slot_bitmap_rx_read_done(&end.rx, end.fresh), nr_full = 0;

	if (rc < 0) {
		assert(rc == -EPROTO);
		return false;
	}
	for (uint32_t i = 0; i < end.slots; i++) {
		bool differs = (end.rx_bits[i / 64] ^ end.rx.notified[i / 64] ^
				end.fresh[i / 64]) >> (i % 64) & 1;

		if (end.rx_place[i] == FREE && differs) {
			end.rx_place[i] = READY;
			nr_full++;
		}
	}
	assert(rc == nr_full);
	return true;
}

static void take_full(void)
{
	uint32_t nr_ready = 0;
	int slot = weir_slot_bitmap_rx_next_full(&end.rx);

	for (uint32_t i = 0; i < end.slots; i++)
		nr_ready += end.rx_place[i] == READY;
	assert((slot == -EAGAIN) == !nr_ready);
	if (slot < 0)
		return;
	assert((uint32_t)slot < end.slots && end.rx_place[slot] == READY);
	end.rx_place[slot] = HELD;
}

static void release(uint32_t slot)
{
	assert(weir_slot_bitmap_rx_is_held(&end.rx, slot) == (end.rx_place[slot] == HELD));
	if (end.rx_place[slot] != HELD)
		return;
	weir_slot_bitmap_rx_release(&end.rx, slot);
	end.rx_place[slot] = FREE;
}

/* Return: false at the end of the connection. */
static bool play(uint8_t event, uint32_t slot)
{
	switch (event % 10) {
	case 0:
	case 1:
		acquire();
		return true;
	case 2:
		commit(slot % end.slots, event & 0x80);
		return true;
	case 3:
		note_sent();
		return true;
	case 4:
		return take_back(slot % end.slots);
	case 5:
		end.fresh[slot % end.slots / 64] ^= 1ull << slot % end.slots % 64;
		return true;
	case 6:
		return read_receiver();
	case 7:
		take_full();
		return true;
	case 8:
		release(slot % end.slots);
		return true;
	default:
		return fill(slot % end.slots);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&end, 0, sizeof(end));
	end.slots = size ? 1 + data[0] % SLOTS_MAX : 1;
	assert(weir_slot_bitmap_tx_bytes(end.slots) <= MEMORY);
	assert(weir_slot_bitmap_rx_bytes(end.slots) <= MEMORY);
	weir_slot_bitmap_tx_init(&end.tx, end.slots, end.tx_bits, end.tx_memory);
	weir_slot_bitmap_rx_init(&end.rx, end.slots, end.rx_bits, end.rx_memory);
	for (; size >= RECORD; data += RECORD, size -= RECORD) {
		if (!play(data[0], data[1]))
			break;
	}
	return 0;
}
