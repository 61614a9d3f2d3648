/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A counter that many clients share, and a lock word that one of them takes. */
#include <inttypes.h>
#include "example.h"

#define COUNTER 0 /* offsets in the region, multiples of 8 */
#define LOCK 8

int main(int argc, char **argv)
{
	struct weir_session *session = example_session(argc, argv, NULL);
	struct weir_region *region = example_region(session);
	uint64_t old, holder;
	int i;

	for (i = 0; i < 1000; i++)
		check(weir_fetch_add(region, COUNTER, 1, &old), "count");
	printf("the counter was %" PRIu64 " before the last addition\n", old);

	check(weir_compare_swap(region, LOCK, 0, 17, &holder), "lock");
	printf("the lock was %s\n", holder == 0 ? "free and is ours" : "taken");
	check(weir_compare_swap(region, LOCK, 0, 18, &holder), "lock");
	printf("now %" PRIu64 " holds it\n", holder);

	weir_region_close(region);
	weir_session_close(session);
	return !(old == 999 && holder == 17);
}
