/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What every example does in the same way: open a session, or explain why not and end. */
#ifndef WEIR_EXAMPLE_H
#define WEIR_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

/* Ends the program when @rc is an error. */
static inline void check(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", what, weir_strerror(rc));
		exit(1);
	}
}

static inline struct weir_session *example_session(int argc, char **argv,
						   const struct weir_session_options *options)
{
	struct weir_session *session;
	struct weir_error error;

	if (weir_session_open(argc > 1 ? argv[1] : "127.0.0.1", options, &session, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	return session;
}

static inline struct weir_region *example_region(struct weir_session *session)
{
	struct weir_region *region;

	check(weir_region_create(session, NULL, 1 << 20, 0, &region, NULL), "create a region");
	return region;
}

#endif
