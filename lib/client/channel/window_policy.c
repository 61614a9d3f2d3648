/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/sized.h"
#include "lib/client/channel/window_policy.h"

static uint32_t wrs_of(uint64_t wrs)
{
	return wrs < UINT32_MAX ? (uint32_t)wrs : UINT32_MAX;
}

static void completed(struct weir_window_learner *learner, const struct weir_window *w,
		      const struct weir_window_success *success, struct weir_window_bounds *limits)
{
	const struct weir_user_learner *user =
		container_of(learner, struct weir_user_learner, learner);
	const struct weir_window_sample sample = {
		.posted_ns = success->posted_ns,
		.completed_ns = success->now_ns,
		.bytes = success->bytes,
		.bytes_in_flight = success->in_flight,
		.wrs_in_flight = success->wrs_in_flight,
	};
	struct weir_window_limits chosen = { limits->bytes, limits->wrs };

	(void)w;
	user->policy.completed(user->policy.arg, &sample, &chosen);
	limits->bytes = chosen.bytes;
	limits->wrs = wrs_of(chosen.wrs);
}

struct weir_window_learner *weir_window_policy_init(struct weir_user_learner *user,
						   const struct weir_window_policy *policy)
{
	weir_sized_in(&user->policy, sizeof(user->policy), policy, "weir_window_policy", NULL);
	user->learner.completed = completed;
	return &user->learner;
}
