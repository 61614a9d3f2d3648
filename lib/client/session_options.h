/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a session's options mean, the presets and the defaults included. */
#ifndef WEIR_LIB_CLIENT_SESSION_OPTIONS_H
#define WEIR_LIB_CLIENT_SESSION_OPTIONS_H

#include <weir/session.h>

/**
 * weir_session_options_fill() - check them, and fill in what the user left open
 * @filled: receives them; no member is zero, or says DEFAULT, that has a default
 * @given: the user's; may be NULL
 *
 * Return: 0; -EINVAL.
 */
int weir_session_options_fill(struct weir_session_options *filled,
			      const struct weir_session_options *given, struct weir_error *error);

#endif
