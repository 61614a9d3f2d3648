/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/link/keepalive.h"

static uint64_t after_ns(uint64_t now_ns, uint64_t ns)
{
	return ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + ns;
}

void weir_keepalive_init(struct weir_keepalive *k, uint64_t quiet_ns, uint64_t timeout_ns)
{
	*k = (struct weir_keepalive){ .quiet_ns = quiet_ns,
				      .timeout_ns = timeout_ns,
				      .due_ns = WEIR_NEVER };
}

void weir_keepalive_start(struct weir_keepalive *k, uint64_t posted, uint64_t now_ns)
{
	if (k->due_ns != WEIR_NEVER)
		return;
	k->posted = posted;
	k->due_ns = after_ns(now_ns, k->quiet_ns);
}

void weir_keepalive_stop(struct weir_keepalive *k)
{
	k->due_ns = WEIR_NEVER;
}

enum weir_keepalive_action weir_keepalive_check(const struct weir_link *link, bool is_quiet)
{
	if (link->state != WEIR_LINK_UP || link->is_posting)
		return WEIR_KEEPALIVE_NOTHING;
	if (link->is_probed)
		return WEIR_KEEPALIVE_FAIL;
	return is_quiet && !link->in_flight.count ? WEIR_KEEPALIVE_PROBE : WEIR_KEEPALIVE_NOTHING;
}

void weir_keepalive_probed(struct weir_keepalive *k, struct weir_link *link)
{
	link->is_probed = true;
	k->unanswered++;
}

void weir_keepalive_checked(struct weir_keepalive *k, uint64_t posted, uint64_t now_ns)
{
	k->posted = posted;
	k->due_ns = after_ns(now_ns, k->unanswered ? k->timeout_ns : k->quiet_ns);
}

void weir_keepalive_answered(struct weir_keepalive *k, struct weir_link *link, uint64_t now_ns)
{
	if (weir_keepalive_forget(k, link) && k->due_ns != WEIR_NEVER)
		weir_keepalive_heard(k, now_ns);
}

void weir_keepalive_heard(struct weir_keepalive *k, uint64_t now_ns)
{
	if (!k->unanswered)
		k->due_ns = after_ns(now_ns, k->quiet_ns);
}

bool weir_keepalive_forget(struct weir_keepalive *k, struct weir_link *link)
{
	bool was_probed = link->is_probed;

	link->is_probed = false;
	k->unanswered -= was_probed;
	return was_probed;
}
