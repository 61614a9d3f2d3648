/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The meaning of a session's options, with presets and defaults. */
#ifndef WEIR_LIB_CLIENT_SESSION_OPTIONS_H
#define WEIR_LIB_CLIENT_SESSION_OPTIONS_H

#include <weir/session.h>

/**
 * weir_session_options_fill() - check the options and fill in the defaults
 * @filled: receives the options; no member with a default is zero or DEFAULT
 * @tuning: the same for the tuning, to which @filled then points
 * @given: the user's; may be NULL
 *
 * Return: 0; -EINVAL; -E2BIG.
 */
int weir_session_options_fill(struct weir_session_options *filled,
			      struct weir_session_tuning *tuning,
			      const struct weir_session_options *given, struct weir_error *error);

#endif
