/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/clock.h"
#include "lib/volume/maintain.h"
#include "lib/volume/memory.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"
#include "lib/volume/target.h"

/* Tells the core how a donor is. */
static void check_target(struct weir_volume *v, uint8_t donor)
{
	enum weir_extents_donor_state state;
	bool is_new = weir_volume_target_adopt(&v->targets[donor]);

	state = weir_volume_target_state(&v->targets[donor]);
	weir_volume_lock(v);
	if (state == WEIR_EXTENTS_DONOR_UP)
		weir_extents_donor_up(&v->core, donor);
	else if (state == WEIR_EXTENTS_DONOR_SLOW)
		weir_extents_donor_slow(&v->core, donor);
	else
		weir_extents_donor_lost(&v->core, donor);
	weir_volume_unlock(v);
	if (is_new)
		weir_volume_memory_query_room(v, donor);
}

/* A lost donor whose memory nothing uses any more may come back as another process. */
static void look_for_donor(struct weir_volume *v, uint8_t donor)
{
	struct weir_volume_target *target = &v->targets[donor];
	bool is_gone;

	weir_volume_lock(v);
	is_gone = v->core.donor[donor].state == WEIR_EXTENTS_DONOR_DOWN &&
		  !weir_extents_donor_extents(&v->core, donor);
	weir_volume_unlock(v);
	if (!is_gone)
		return;
	if (target->session)
		weir_volume_target_drop(target);
	weir_volume_target_reconnect(target);
}

static void look_for_rooms(struct weir_volume *v)
{
	for (unsigned int i = 0; i < v->nr_targets; i++) {
		if (v->core.donor[i].state == WEIR_EXTENTS_DONOR_UP)
			weir_volume_memory_query_room(v, (uint8_t)i);
	}
}

static void maintain(struct weir_volume *v)
{
	for (unsigned int i = 0; i < v->nr_targets; i++)
		check_target(v, (uint8_t)i);
	weir_volume_memory_return(v, false);
	if (weir_volume_memory_fetch(v, NULL))
		look_for_rooms(v); /* for the next time */
	if (weir_volume_memory_return(v, true))
		weir_volume_kick(v); /* returned memory makes way for other memory */
	for (unsigned int i = 0; i < v->nr_targets; i++)
		look_for_donor(v, (uint8_t)i);
	weir_volume_memory_retry_silent(v);
	weir_volume_lock(v);
	weir_volume_pieces_resume(v, false); /* some may give up now */
	weir_volume_resync_start(v);
	weir_volume_unlock(v);
}

void *weir_volume_maintain(void *arg)
{
	struct weir_volume *v = arg;

	while (!weir_volume_is_closing(v)) {
		uint32_t kicks = __atomic_load_n(&v->kick, __ATOMIC_SEQ_CST);

		maintain(v);
		weir_volume_sleep(&v->kick, kicks, weir_now_ns() + WEIR_VOLUME_TICK_NS);
	}
	return NULL;
}
