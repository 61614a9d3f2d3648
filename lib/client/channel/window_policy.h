/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The user's policy of a window, as a learner of the core. */
#ifndef WEIR_LIB_CLIENT_CHANNEL_WINDOW_POLICY_H
#define WEIR_LIB_CLIENT_CHANNEL_WINDOW_POLICY_H

#include <weir/tuning.h>
#include "core/sched/window.h"

/* Serialised with the window. */
struct weir_user_learner {
	struct weir_window_learner learner;
	struct weir_window_policy policy;
};

/* @policy: copied; weir_session_options_fill() has accepted it. Return: for the window. */
struct weir_window_learner *weir_window_policy_init(struct weir_user_learner *user,
						   const struct weir_window_policy *policy);

#endif
