/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening, querying and closing a donor; its thread: donor_thread.c. */
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/donor/donor.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/base/sized.h"
#include "lib/base/yield.h"
#include "lib/conn/encryption.h"
#include "lib/conn/handshake.h"
#include "lib/conn/identity.h"

#define CLIENTS_DEFAULT 64
#define ABSENCE_MS_DEFAULT 30000
#define KEEPALIVE_MS_DEFAULT 600000
#define UNLOAD_PERCENT_DEFAULT 50

void weir_donor_log(struct weir_donor *donor, enum weir_log_level level, const char *format, ...)
{
	char line[512];
	va_list args;

	if (!donor->options.on_log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	donor->options.on_log(donor->options.arg, level, line);
}

/* The peers of one host count together: a stranger chooses its port freely. */
static struct weir_rate_limit *log_limit_of(struct weir_donor *donor, const char *name)
{
	const char *port = strrchr(name, ':');
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name && name != port; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return &donor->stranger_logs[hash % WEIR_STRANGER_LOGS];
}

void weir_donor_log_of(struct weir_donor *donor, struct weir_donor_tenant *tenant, const char *name,
		       enum weir_log_level level, const char *format, ...)
{
	struct weir_rate_limit *limit = tenant ? &tenant->log_limit : log_limit_of(donor, name);
	char line[512];
	uint32_t dropped = 0;
	va_list args;

	if (level < WEIR_LOG_DEBUG && !weir_rate_limit_pass(limit, weir_now_ns(), &dropped))
		return;
	if (dropped)
		weir_donor_log(donor, WEIR_LOG_WARNING, "suppressed lines=%u client=%s id=W107",
			       dropped, name);
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	weir_donor_log(donor, level, "%s", line);
}

/* Real devices pin registered memory: use the whole limit of this process. */
static void raise_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int copy_options(struct weir_donor *donor, const struct weir_donor_options *options,
			struct weir_error *error)
{
	struct weir_donor_options *o = &donor->options;
	int rc = weir_sized_in(o, sizeof(*o), options, "weir_donor_options", error);

	if (rc)
		return rc;
	if (!o->memory_bytes)
		return weir_error_set(error, -EINVAL, "memory_bytes is 0: say how much to lend");
	if (o->nr_keys && !o->keys)
		return weir_error_set(error, -EINVAL, "nr_keys is %u, but there are no keys",
				      o->nr_keys);
	if (!o->listen)
		o->listen = "127.0.0.1";
	if (!o->quota_bytes)
		o->quota_bytes = o->memory_bytes;
	if (!o->key_clients_max)
		o->key_clients_max = CLIENTS_DEFAULT;
	if (!o->key_bytes_max)
		o->key_bytes_max = UINT64_MAX;
	if (o->unload_percent_max > 100)
		return weir_error_set(error, -EINVAL,
				      "unload_percent_max is %u: at most 100 percent",
				      o->unload_percent_max);
	if (!o->unload_percent_max)
		o->unload_percent_max = UNLOAD_PERCENT_DEFAULT;
	if (!o->absence_ms)
		o->absence_ms = ABSENCE_MS_DEFAULT;
	if (!o->keepalive_ms)
		o->keepalive_ms = KEEPALIVE_MS_DEFAULT;
	rc = weir_encryption_check(o->encryption, o->nr_keys || o->tenants_max, error);
	if (rc)
		return rc;
	donor->identity = weir_secret_alloc(sizeof(*donor->identity));
	if (!donor->identity)
		return weir_error_set(error, -ENOMEM, "out of memory");
	weir_identity_pair(o->identity, donor->identity);
	donor->nr_tenants = o->nr_keys ? o->nr_keys : 1;
	if (o->tenants_max > donor->nr_tenants)
		donor->nr_tenants = o->tenants_max;
	donor->tenants = calloc(donor->nr_tenants, sizeof(*donor->tenants));
	if (!o->clients_max)
		o->clients_max = o->key_clients_max * donor->nr_tenants;
	donor->keys = calloc(donor->nr_tenants, sizeof(*donor->keys));
	if (!donor->tenants || !donor->keys)
		return weir_error_set(error, -ENOMEM, "out of memory");
	return 0;
}

static void donor_free(struct weir_donor *donor)
{
	if (donor->wake_fd >= 0)
		close(donor->wake_fd);
	pthread_mutex_destroy(&donor->lock);
	free(donor->tenants);
	free(donor->keys);
	weir_secret_free(donor->identity);
	free(donor);
}

static int map_and_start(struct weir_donor *donor, struct weir_error *error)
{
	int rc;

	rc = weir_memory_worker_init(&donor->worker, &donor->arena, donor->nr_tenants);
	if (rc)
		return weir_error_set(error, rc, "out of memory");
	rc = weir_region_table_init(&donor->region_table, &donor->arena, &donor->worker,
				    donor->keys, donor->options.key_bytes_max);
	if (rc) {
		weir_memory_worker_fini(&donor->worker);
		return weir_error_set(error, rc, "out of memory");
	}
	weir_cpu_budget_init(&donor->cpu_budget, donor->options.unload_percent_max);
	rc = weir_donor_start(donor, error);
	if (rc) {
		weir_region_table_fini(&donor->region_table);
		weir_memory_worker_fini(&donor->worker);
	}
	return rc;
}

int weir_donor_open(const struct weir_donor_options *options, struct weir_donor **out,
		    struct weir_error *error)
{
	struct weir_donor *donor = calloc(1, sizeof(*donor));
	int rc;

	if (!donor)
		return weir_error_set(error, -ENOMEM, "out of memory");
	donor->wake_fd = -1;
	pthread_mutex_init(&donor->lock, NULL);
	weir_list_init(&donor->timers);
	weir_list_init(&donor->conns);
	weir_places_init(&donor->places);
	donor->versions = weir_handshake_versions;
	weir_list_init(&donor->awake);
	weir_idle_time_init(&donor->idle_time, WEIR_WAKE_NS, WEIR_WAKE_NS);
	weir_list_init(&donor->clients);
	weir_list_init(&donor->secrets);
	raise_memlock();
	rc = copy_options(donor, options, error);
	if (!rc && sodium_init() < 0)
		rc = weir_error_set(error, -EIO, "no source of random numbers");
	if (rc)
		goto out_free;
	randombytes_buf(&donor->incarnation, sizeof(donor->incarnation));
	rc = weir_arena_init(&donor->arena, donor->options.memory_bytes,
			     !donor->options.no_huge_pages, error);
	if (rc)
		goto out_free;
	if (donor->options.reserve)
		rc = weir_arena_reserve(&donor->arena, error);
	if (!rc)
		rc = weir_donor_listen(donor, error);
	if (!rc)
		rc = map_and_start(donor, error);
	if (rc)
		goto out_unlisten;
	*out = donor;
	return 0;
out_unlisten:
	weir_donor_unlisten(donor);
	weir_arena_fini(&donor->arena);
out_free:
	donor_free(donor);
	return rc;
}

void weir_donor_close(struct weir_donor *donor)
{
	weir_donor_stop(donor);
	weir_region_table_fini(&donor->region_table);
	weir_memory_worker_fini(&donor->worker);
	weir_donor_unlisten(donor);
	weir_arena_fini(&donor->arena);
	donor_free(donor);
}

int weir_donor_info(struct weir_donor *donor, struct weir_donor_info *given, size_t size)
{
	struct weir_donor_info info = {
		.incarnation = donor->incarnation,
		.clients = (unsigned int)weir_counter_read(&donor->nr_clients),
		.joins = weir_counter_read(&donor->joins),
		.rejects = weir_counter_read(&donor->rejects),
		.messages = weir_counter_read(&donor->messages),
		.unloaded = weir_counter_read(&donor->unloaded),
		.unload_refused = weir_counter_read(&donor->unload_refused),
		.unload_pauses = weir_counter_read(&donor->unload_pauses),
		.huge_pages = donor->arena.huge,
	};
	snprintf(info.device, sizeof(info.device), "%s",
		 ibv_get_device_name(donor->device->device));
	snprintf(info.address, sizeof(info.address), "%s", donor->listener.address);
	pthread_mutex_lock(&donor->lock);
	info.memory_bytes = donor->arena.length;
	info.lent_bytes = donor->arena.taken;
	info.limit_bytes = donor->arena.limit;
	info.regions = donor->region_table.nr_lent;
	pthread_mutex_unlock(&donor->lock);
	return weir_sized_out(given, size, &info, sizeof(info));
}

int weir_donor_region_create(struct weir_donor *donor, unsigned int tenant, uint64_t length,
			     struct weir_region_token *token, void **addr)
{
	int rc;

	if (!length || tenant >= donor->nr_tenants)
		return -EINVAL;
	pthread_mutex_lock(&donor->lock);
	rc = weir_region_table_own(&donor->region_table, tenant, length, token, addr, NULL);
	pthread_mutex_unlock(&donor->lock);
	return rc;
}

void weir_donor_region_destroy(struct weir_donor *donor, const struct weir_region_token *token)
{
	pthread_mutex_lock(&donor->lock);
	weir_region_table_disown(&donor->region_table, token);
	pthread_mutex_unlock(&donor->lock);
}
