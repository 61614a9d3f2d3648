/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume and a model of its bytes. Requests of one volume that share a page take effect in the
 * order submitted. So the model changes when a write is submitted, and tells at once what a read
 * must give, however many requests are under way.
 */
#ifndef WEIR_TESTS_LIB_VOLUME_BYTE_MODEL_H
#define WEIR_TESTS_LIB_VOLUME_BYTE_MODEL_H

#include <stdbool.h>

#include "tests/support/libweir_fixture.h"

#define MODEL_DONORS_MAX 4
#define MODEL_AT_ONCE 64
#define MODEL_REQUEST_MAX 300000u
#define MODEL_MEMORY "100000000" /* of a donor */

struct byte_model;

struct model_request {
	struct byte_model *model;
	bool is_busy, is_read;
	uint64_t offset;
	size_t length;
	char *bytes, *expected;
};

/**
 * struct byte_model - a volume and its model
 * @donors: @nr_donors processes; started and stopped by the test
 * @bytes: what the volume must hold
 * @ended: requests that have ended; atomic. @failed: the status of the first failure; atomic
 */
struct byte_model {
	struct donor_process donors[MODEL_DONORS_MAX];
	unsigned int nr_donors;
	struct weir_volume *volume;
	uint64_t length;
	char *bytes, *scratch;
	uint64_t rng;
	struct model_request requests[MODEL_AT_ONCE];
	int failed;
	uint64_t ended;
};

/* A number below @count. */
uint32_t model_below(struct byte_model *m, uint32_t count);

/* Starts the donors, and opens a volume with this many copies and bytes. */
void model_open(struct byte_model *m, unsigned int nr_donors, unsigned int copies, uint64_t length,
		uint64_t seed);
/* Closes the volume, and stops the donors that have a process. */
void model_close(struct byte_model *m);

/* Submits a random request, unless all are under way. */
void model_submit(struct byte_model *m);
/* Waits until no request is under way. */
void model_settle(struct byte_model *m);
/* Reads the volume from begin to end, and compares each byte. */
void model_check(struct byte_model *m);

struct weir_volume_info model_info(struct byte_model *m);
/* Waits until each extent has all copies, at most a minute. */
void model_wait_whole(struct byte_model *m);

#endif
