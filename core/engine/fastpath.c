/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See lone.h. */
#include "core/engine/fastpath.h"

void weir_lone_succeeded(struct weir_engine *e)
{
	weir_backlog_skip(&e->backlog, e->lone);
	e->lone = NULL;
}

void weir_lone_enter(struct weir_engine *e)
{
	if (!e->lone)
		return;
	weir_backlog_add_posted(&e->backlog, e->lone);
	e->lone = NULL;
}
