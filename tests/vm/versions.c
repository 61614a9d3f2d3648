/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The weir command, whose donors speak the versions of the protocol that WEIR_TEST_VERSIONS names:
 * "OLDEST NEWEST SAID". They prove SAID to be their newest: a relay that has rejected the
 * newest version in a donor's name looks like NEWEST < SAID.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/conn/handshake.h"

static unsigned short said;

void __real_weir_handshake_donor(struct weir_handshake *h, struct weir_handshake_setup *setup);
void __wrap_weir_handshake_donor(struct weir_handshake *h, struct weir_handshake_setup *setup);

void __wrap_weir_handshake_donor(struct weir_handshake *h, struct weir_handshake_setup *setup)
{
	if (said)
		setup->version_max = said;
	__real_weir_handshake_donor(h, setup);
}

static void __attribute__((constructor)) read_versions(void)
{
	const char *text = getenv("WEIR_TEST_VERSIONS");

	if (text && sscanf(text, "%hu %hu %hu", &weir_handshake_versions.min,
			   &weir_handshake_versions.max, &said) != 3)
		abort();
}
