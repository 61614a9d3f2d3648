/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/lib/volume/byte_model.h"

#define PAGE 4096u
#define PATIENCE_NS (60 * SECOND_NS)

uint32_t model_below(struct byte_model *m, uint32_t count)
{
	return (uint32_t)weir_rng_scale(weir_rng_next(&m->rng), count);
}

void model_open(struct byte_model *m, unsigned int nr_donors, unsigned int copies, uint64_t length,
		uint64_t seed)
{
	const char *addresses[MODEL_DONORS_MAX];
	char device[] = "softnic0";
	struct weir_volume_options options = { .size = sizeof(options),
					       .donors = addresses,
					       .nr_donors = nr_donors,
					       .bytes = length,
					       .copies = copies,
					       .key = fixture_key(),
					       .device = device };
	struct weir_error error = { "" };

	memset(m, 0, sizeof(*m));
	m->nr_donors = nr_donors;
	m->length = length;
	m->rng = seed;
	m->bytes = calloc(1, length);
	m->scratch = malloc(length);
	for (unsigned int i = 0; i < nr_donors; i++) {
		donor_process_start(&m->donors[i], MODEL_MEMORY, NULL);
		addresses[i] = m->donors[i].address;
	}
	for (int i = 0; i < MODEL_AT_ONCE; i++) {
		m->requests[i].model = m;
		m->requests[i].bytes = malloc(MODEL_REQUEST_MAX);
		m->requests[i].expected = malloc(MODEL_REQUEST_MAX);
	}
	if (weir_volume_open(&options, &m->volume, &error))
		fail_msg("%s", error.text);
	memset(device, 'x', strlen(device)); /* the volume has a copy */
}

void model_close(struct byte_model *m)
{
	weir_volume_close(m->volume);
	for (int i = 0; i < MODEL_AT_ONCE; i++) {
		free(m->requests[i].bytes);
		free(m->requests[i].expected);
	}
	for (unsigned int i = 0; i < m->nr_donors; i++) {
		if (m->donors[i].pid)
			donor_process_stop(&m->donors[i]);
	}
	free(m->bytes);
	free(m->scratch);
}

static void ended(void *arg, int status)
{
	struct model_request *request = arg;
	struct byte_model *m = request->model;

	if (!status && request->is_read &&
	    memcmp(request->bytes, request->expected, request->length))
		status = 1; /* wrong bytes */
	if (status && !m->failed)
		__atomic_store_n(&m->failed, status, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&m->ended, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&request->is_busy, false, __ATOMIC_SEQ_CST);
}

/* Short and long, aligned or not, sometimes at the end of the volume. */
static void choose_range(struct byte_model *m, struct model_request *request)
{
	static const uint32_t lengths[] = { 8, PAGE, 3 * PAGE, 100000, MODEL_REQUEST_MAX };

	request->length = 1 + model_below(m, lengths[model_below(m, 5)]);
	if (request->length > m->length)
		request->length = m->length;
	request->offset = model_below(m, (uint32_t)(m->length - request->length + 1));
	if (!model_below(m, 3))
		request->offset -= request->offset % PAGE;
	if (!model_below(m, 3) && request->length > PAGE)
		request->length -= request->length % PAGE;
	if (!model_below(m, 8))
		request->offset = m->length - request->length;
}

static int submit_read(struct byte_model *m, struct model_request *request)
{
	request->is_read = true;
	memcpy(request->expected, m->bytes + request->offset, request->length);
	return weir_volume_read_async(m->volume, request->offset, request->bytes, request->length,
				      ended, request);
}

static int submit_write(struct byte_model *m, struct model_request *request)
{
	for (size_t i = 0; i < request->length; i++)
		request->bytes[i] = (char)weir_rng_next(&m->rng);
	memcpy(m->bytes + request->offset, request->bytes, request->length);
	return weir_volume_write_async(m->volume, request->offset, request->bytes, request->length,
				       ended, request);
}

static int submit_discard(struct byte_model *m, struct model_request *request)
{
	memset(m->bytes + request->offset, 0, request->length);
	return weir_volume_discard_async(m->volume, request->offset, request->length, ended,
					 request);
}

static struct model_request *find_unused(struct byte_model *m)
{
	for (int i = 0; i < MODEL_AT_ONCE; i++) {
		if (!__atomic_load_n(&m->requests[i].is_busy, __ATOMIC_SEQ_CST))
			return &m->requests[i];
	}
	return NULL;
}

void model_submit(struct byte_model *m)
{
	struct model_request *request = find_unused(m);
	uint32_t what = model_below(m, 8);
	int rc;

	if (!request) {
		poll(NULL, 0, 1);
		return;
	}
	choose_range(m, request);
	request->is_read = false;
	__atomic_store_n(&request->is_busy, true, __ATOMIC_SEQ_CST);
	if (what < 4)
		rc = submit_write(m, request);
	else
		rc = what < 5 ? submit_discard(m, request) : submit_read(m, request);
	assert_int_equal(rc, 0);
}

static bool is_settled(struct byte_model *m)
{
	for (int i = 0; i < MODEL_AT_ONCE; i++) {
		if (__atomic_load_n(&m->requests[i].is_busy, __ATOMIC_SEQ_CST))
			return false;
	}
	return true;
}

void model_settle(struct byte_model *m)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;

	while (!is_settled(m)) {
		if (now_ns() > until_ns)
			fail_msg("a request is stuck");
		poll(NULL, 0, 1);
	}
	if (m->failed)
		fail_msg("a request failed: %s",
			 m->failed > 0 ? "wrong bytes" : weir_strerror(m->failed));
}

void model_check(struct byte_model *m)
{
	model_settle(m);
	assert_int_equal(weir_volume_read(m->volume, 0, m->scratch, m->length), 0);
	for (uint64_t i = 0; i < m->length; i++) {
		if (m->scratch[i] != m->bytes[i])
			fail_msg("byte %llu is %d, not %d", (unsigned long long)i, m->scratch[i],
				 m->bytes[i]);
	}
}

struct weir_volume_info model_info(struct byte_model *m)
{
	struct weir_volume_info info;

	assert_int_equal(weir_volume_info(m->volume, &info, sizeof(info)), 0);
	return info;
}

void model_wait_whole(struct byte_model *m)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;
	struct weir_volume_info info;

	do {
		info = model_info(m);
		if (now_ns() > until_ns)
			fail_msg("%u of %u extents are whole, %u lean, %u lost", info.whole,
				 info.extents, info.lean, info.lost);
		poll(NULL, 0, 2);
	} while (info.whole < info.extents);
}
