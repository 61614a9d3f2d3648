/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/clock.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/maintain.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"

/* Return: whether pieces wait. */
static bool maintain(struct weir_volume *v)
{
	bool any_waits;

	v->layout->maintain(v);
	weir_volume_lock(v);
	weir_volume_pieces_resume(v, v->status); /* some may give up now */
	any_waits = !weir_list_is_empty(&v->memory_waiters);
	if (v->coded)
		weir_volume_coded_repair_start(v);
	else
		weir_volume_resync_start(v);
	weir_volume_unlock(v);
	return any_waits;
}

void *weir_volume_maintain(void *arg)
{
	struct weir_volume *v = arg;

	while (!weir_volume_is_closing(v)) {
		uint32_t kicks = __atomic_load_n(&v->kick, __ATOMIC_SEQ_CST);
		bool any_waits = maintain(v);

		weir_volume_sleep(&v->kick, kicks,
				  weir_now_ns() + (any_waits ? WEIR_VOLUME_RETRY_NS :
							       WEIR_VOLUME_TICK_NS));
	}
	return NULL;
}
