// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One region of a protection domain reaches all addresses, so that a veil can be ordinary memory.
 * It has no remote rights, and its key is random as all keys are.
 *
 * A longer list has no veil: its data arrive in place.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "softnic/verbs/mr.h"
#include "softnic/verbs/nic.h"
#include "buffer.h"
#include "finding.h"
#include "strict.h"
#include "veil.h"

enum {
	VEILED_MAX = 1 << 20,
	/*
	 * UCX's receives are longer than its buffers, by less than a header: no message is as long
	 * as the receive. Poison there would be the end of UCX.
	 */
	POISONED_MAX = 4 << 10,
	PDS_KEPT = 1024,
};

/* Under the lock of wr.h. */
static struct {
	uint32_t pd, key;
} keys[PDS_KEPT];

uint32_t veil_key(uint32_t pd)
{
	const struct shared_mr everything = {
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pd = pd,
		.kind = SHARED_REGION,
		.length = UINT64_MAX,
	};
	uint32_t i = pd % PDS_KEPT;

	if (keys[i].key)
		return keys[i].pd == pd ? keys[i].key : 0;
	if (mr_take_key(&keys[i].key))
		return 0;
	keys[i].pd = pd;
	mr_publish(keys[i].key, &everything);
	return keys[i].key;
}

void strict_forget_pd(uint32_t pd)
{
	uint32_t i = pd % PDS_KEPT;

	if (!strict_level)
		return;
	wr_lock();
	if (keys[i].key && keys[i].pd == pd) {
		store_ordered(&nic.pub->mrs[keys[i].key >> 16].key, 0);
		mr_give_key(keys[i].key);
		keys[i].key = 0;
	}
	wr_unlock();
}

static bool is_registered(const struct strict_wr *wr)
{
	uint64_t addrs[SHARED_SGES_MAX];
	uint32_t i;

	if (!wr_locate(wr, addrs))
		return false;
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sges[i].length && addrs[i] != wr->sges[i].addr)
			return false; /* the region moved */
	return true;
}

void veil_put_on(struct strict_wr *wr, bool with_poison)
{
	struct veil *veil;

	if (!wr->room || wr->room > VEILED_MAX || !wr->has_access || !veil_key(wr->pd))
		return;
	veil = malloc(sizeof(*veil) + wr->room);
	if (!veil || !buffer_load(wr, veil->bytes, wr->room)) {
		free(veil);
		return;
	}
	veil->users = 1;
	wr->veil = veil;
	wr->poisoned = wr->room < POISONED_MAX ? wr->room : POISONED_MAX;
	if (!with_poison || !buffer_poison(wr, wr->poisoned))
		wr->poisoned = 0;
}

void veil_lift(struct strict_wr *wr)
{
	uint64_t changed;

	if (wr->poisoned && buffer_is_poisoned(wr, wr->poisoned, &changed))
		buffer_store(wr, wr->veil->bytes, wr->poisoned);
	wr->poisoned = 0;
}

/* Poisoned bytes behind the message become what they were. */
bool veil_deliver(struct strict_wr *wr, uint64_t length, bool has_succeeded)
{
	uint64_t changed = 0;

	if (!wr->veil)
		return true;
	if (!is_registered(wr))
		return false;
	if (!wr->poisoned)
		return buffer_store(wr, wr->veil->bytes, length);
	if (buffer_is_poisoned(wr, wr->poisoned, &changed))
		length = length < wr->poisoned ? wr->poisoned : length;
	else if (has_succeeded)
		strict_find(STRICT_RECEIVE_BUFFER,
			    "%s, QP 0x%x, wr_id %" PRIu64 ": byte 0x%" PRIx64
			    " of the buffer was written before the completion was polled",
			    wr->is_receive ? "ibv_post_recv()" : "ibv_post_send()", wr_number(wr),
			    wr->wr_id, changed);
	return buffer_store(wr, wr->veil->bytes, length);
}
