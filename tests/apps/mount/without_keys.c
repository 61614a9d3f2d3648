/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The weir command, linked so that servers of files cannot set keys once the file exists that
 * WEIR_TEST_WITHOUT_KEYS names. The donor beside a server can.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/donor.h>

int __real_weir_donor_keys_set(struct weir_donor *donor, const struct weir_donor_key *keys,
			       unsigned int nr_keys, struct weir_error *error);
int __wrap_weir_donor_keys_set(struct weir_donor *donor, const struct weir_donor_key *keys,
			       unsigned int nr_keys, struct weir_error *error);

int __wrap_weir_donor_keys_set(struct weir_donor *donor, const struct weir_donor_key *keys,
			       unsigned int nr_keys, struct weir_error *error)
{
	const char *path = getenv("WEIR_TEST_WITHOUT_KEYS");
	static struct weir_donor *first;

	if (!first)
		first = donor;
	if (donor == first || !path || access(path, F_OK))
		return __real_weir_donor_keys_set(donor, keys, nr_keys, error);
	snprintf(error->text, sizeof(error->text), "as the test wants it");
	return -ENOMEM;
}
