/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rules of clone3(2) and openat2(2) for input, and of sched_getattr(2) for output: the caller's
 * size tells which version of the struct it was compiled with.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/sized.h"

#define GIVEN_BYTES_MAX 4096 /* a larger size is uninitialised memory */

int weir_sized_in(void *known, size_t known_bytes, const void *given, const char *tag,
		  struct weir_error *error)
{
	const unsigned char *bytes = given;
	size_t size = known_bytes, at;

	memset(known, 0, known_bytes);
	if (given)
		memcpy(&size, given, sizeof(size));
	if (size <= sizeof(size) || size > GIVEN_BYTES_MAX)
		return weir_error_set(error, -EINVAL,
				      "the size of struct %s is %zu: set .size = sizeof(struct %s)",
				      tag, size, tag);
	for (at = known_bytes; at < size; at++)
		if (bytes[at])
			return weir_error_set(
				error, -E2BIG,
				"byte %zu of struct %s is set, but this libweir knows %zu "
				"bytes: leave newer fields zero, or install a newer libweir",
				at, tag, known_bytes);
	if (given)
		memcpy(known, given, size < known_bytes ? size : known_bytes);
	memcpy(known, &known_bytes, sizeof(known_bytes));
	return 0;
}

int weir_sized_out(void *given, size_t given_bytes, const void *known, size_t known_bytes)
{
	size_t size = given_bytes < known_bytes ? given_bytes : known_bytes;

	if (size <= sizeof(size))
		return -EINVAL;
	memcpy(given, known, size);
	memcpy(given, &size, sizeof(size));
	return 0;
}
