/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/target.h"
#include "apps/common/cmd.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "lib/client/stats_shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/request.h>

#define TOUCH_BYTES (1u << 20)

static int target_open(const struct perf_options *o, struct perf_target *target)
{
	struct weir_error error;
	int status = client_open_with(&target->client, o->cmd, target->donor, &o->session, o->key);

	if (status) {
		target->client.session = NULL;
		return status;
	}
	if (!weir_region_create(target->client.session, NULL, o->region_bytes, 0, &target->region,
				&error))
		return 0;
	return failure(o->cmd, "%s: a region of %s: %s", target->donor,
		       size_format(o->region_bytes).text, error.text);
}

int targets_open(const struct perf_options *o, struct perf_target **targets)
{
	struct perf_target *all = calloc(o->nr_donors, sizeof(*all));
	int status = 0;

	*targets = all;
	if (!all)
		return failure(o->cmd, "out of memory");
	for (unsigned int i = 0; !status && i < o->nr_donors; i++) {
		all[i].donor = o->donors[i];
		status = target_open(o, &all[i]);
	}
	return status;
}

struct target_name target_name(const struct perf_target *target)
{
	struct weir_session_info info;
	struct target_name name;

	weir_session_info(target->client.session, &info, sizeof(info));
	snprintf(name.text, sizeof(name.text), "%s over %s", info.peer, info.device);
	return name;
}

void targets_close(const struct perf_options *o, struct perf_target *targets)
{
	for (unsigned int i = 0; targets && i < o->nr_donors; i++) {
		if (targets[i].region && !stop_requested())
			weir_region_close(targets[i].region);
		if (targets[i].client.session)
			client_close(&targets[i].client);
	}
}

static int touch_region(struct perf_target *target, uint64_t bytes, const void *zeroes)
{
	int rc = 0;

	for (uint64_t at = 0; !rc && at < bytes; at += TOUCH_BYTES) {
		uint64_t left = bytes - at;

		rc = weir_write(target->region, at, zeroes,
				left < TOUCH_BYTES ? left : TOUCH_BYTES);
	}
	return rc;
}

int targets_touch(const struct perf_options *o, struct perf_target *targets)
{
	void *zeroes = calloc(1, TOUCH_BYTES);
	int status = 0, rc;

	for (unsigned int i = 0; !status && i < o->nr_donors; i++) {
		rc = zeroes ? touch_region(&targets[i], o->region_bytes, zeroes) : -ENOMEM;
		if (rc)
			status = failure(o->cmd, "%s: writing the region: %s",
					 target_name(&targets[i]).text, weir_strerror(rc));
	}
	free(zeroes);
	return status;
}

void targets_info(const struct perf_options *o, const struct perf_target *targets,
		  struct weir_session_info *info)
{
	struct weir_session_info one;

	weir_session_info(targets[0].client.session, info, sizeof(*info));
	for (unsigned int i = 1; i < o->nr_donors; i++) {
		weir_session_info(targets[i].client.session, &one, sizeof(one));
#define ADD_COUNTER(name, help) info->name += one.name;
		WEIR_COUNTERS(ADD_COUNTER)
#undef ADD_COUNTER
	}
}
