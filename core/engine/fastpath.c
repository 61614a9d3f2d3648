/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The exits of the fast path that need the backlog: see fastpath.h. */
#include "core/engine/fastpath.h"

void weir_fastpath_succeeded(struct weir_engine *e)
{
	weir_backlog_add_done(&e->backlog, e->fastpath);
	e->fastpath = NULL;
}

void weir_fastpath_demote(struct weir_engine *e)
{
	if (!e->fastpath)
		return;
	weir_backlog_add_posted(&e->backlog, e->fastpath);
	e->fastpath = NULL;
}
