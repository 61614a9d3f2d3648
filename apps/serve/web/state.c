/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/web/state.h"

#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/doctor/sysfs.h"
#include "apps/inspect/session_list.h"
#include "apps/inspect/softnic_list.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_call.h"
#include "apps/log/log.h"
#include "apps/serve/web/memory_map.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/donor.h>

#define SESSIONS_MAX 64
/* Bounds of the latencies' buckets: quarters of the powers of two, 256 ns to 17 s. */
#define OCTAVE_FIRST 8
#define OCTAVE_LAST 33
#define PORT_WORD 4 /* bytes; the unit of a port's counters */

struct state_snapshot {
	struct weir_donor *donor;
	struct weir_donor_info info;
	struct weir_holdings holdings;
	int rc;
};

static void take_snapshot(void *arg)
{
	struct state_snapshot *snapshot = arg;

	snapshot->rc = weir_holdings_copy(&snapshot->holdings, snapshot->donor);
}

static void write_donor(struct json *json, const struct weir_donor_info *info)
{
	char incarnation[20];

	snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, info->incarnation);
	json_open_object(json, "donor");
	json_string(json, "address", info->address);
	json_string(json, "device", info->device);
	json_string(json, "incarnation", incarnation); /* beyond what a script's number holds */
	json_uint(json, "memory_bytes", info->memory_bytes);
	json_uint(json, "limit_bytes", info->limit_bytes);
	json_uint(json, "lent_bytes", info->lent_bytes);
	json_uint(json, "available_bytes", available_memory(""));
	json_boolean(json, "huge_pages", info->huge_pages);
	json_uint(json, "clients", info->clients);
	json_uint(json, "regions", info->regions);
	json_uint(json, "joins", info->joins);
	json_uint(json, "rejects", info->rejects);
	json_uint(json, "messages", info->messages);
	json_uint(json, "unloaded", info->unloaded);
	json_close(json);
	json_open_object(json, "path");
	json_string(json, "kind",
		    device_is_softnic() ? "in software: memory to memory on a host, RoCE v2 over "
					  "UDP between hosts" :
					  "an RDMA device of the kernel");
	json_close(json);
}

static int by_id(const void *one, const void *other)
{
	const struct weir_holding_client *a = one, *b = other;

	return a->id < b->id ? -1 : a->id > b->id;
}

static void write_holder(struct json *json, const struct weir_holdings *holdings,
			 const struct map_holder *holder, bool is_others)
{
	static const char *const kinds[] = {
		[WEIR_HOLDING_CLIENT] = "client",
		[WEIR_HOLDING_LEFT] = "left",
		[WEIR_HOLDING_APPLICATION] = "application",
		[WEIR_HOLDING_ZEROING] = "zeroing",
	};
	const struct weir_holding_client wanted = { .id = holder->of.client };
	const struct weir_holding_client *client =
		holder->of.client ? bsearch(&wanted, holdings->client, holdings->nr_clients,
					    sizeof(wanted), by_id) :
				    NULL;

	json_open_object(json, NULL);
	json_string(json, "kind", is_others ? "others" : kinds[holder->of.kind]);
	json_uint(json, "tenant", holder->of.tenant);
	if (client && !is_others) {
		json_string(json, "name", client->name);
		json_string(json, "encryption",
			    client->cipher	? client->cipher :
			    device_is_softnic() ? "none: the same host" :
						  "none");
	}
	json_uint(json, "extents", holder->extents);
	json_uint(json, "bytes", holder->bytes);
	json_close(json);
}

static void write_map(struct json *json, struct weir_holdings *holdings)
{
	struct memory_map map = { .nr_holders = 0 };
	bool is_missing = memory_map_make(&map, holdings);

	json_open_object(json, "map");
	json_uint(json, "cell_bytes", map.cell_bytes);
	json_open_array(json, "cells");
	for (unsigned int i = 0; !is_missing && i < map.nr_cells; i++)
		json_int(json, NULL, map.cell[i]);
	json_close(json);
	json_close(json);
	json_open_array(json, "holders");
	for (unsigned int i = 0; !is_missing && i < map.nr_holders; i++)
		write_holder(json, holdings, &map.holder[i],
			     map.has_others && i == map.nr_holders - 1);
	json_close(json);
	memory_map_free(&map);
}

/* Buckets that are not empty, as [upper bound in nanoseconds, count]. */
static void write_latency(struct json *json, const char *kind,
			  const struct weir_histogram *histogram)
{
	uint64_t from = 0;

	json_open_array(json, kind);
	for (unsigned int i = 4 * OCTAVE_FIRST; i <= 4 * OCTAVE_LAST; i++) {
		uint64_t to = (1ull << i / 4) + i % 4 * ((1ull << i / 4) / 4);
		uint64_t count = weir_histogram_between(histogram, from, to);

		from = to;
		if (!count)
			continue;
		json_open_array(json, NULL);
		json_uint(json, NULL, to);
		json_uint(json, NULL, count);
		json_close(json);
	}
	json_close(json);
}

static void write_session(struct json *json, const struct found_session *found, bool in_total)
{
	static struct weir_histogram histogram; /* large; the server has one thread */
	struct weir_stats_shm_window window;
	struct weir_counters counters;
	char id[48], name[48];

	stats_view_counters(&found->view, &counters, &window);
	snprintf(id, sizeof(id), "session %ju", (uintmax_t)found->inode);
	snprintf(name, sizeof(name), "%s (%d)", found->comm, found->pid);
	json_open_object(json, NULL);
	json_string(json, "id", id);
	json_string(json, "name", name);
	json_boolean(json, "in_total", in_total);
	json_uint(json, "requests", counters.requests);
	json_uint(json, "work_requests", counters.work_requests);
	json_uint(json, "written_bytes", counters.bytes_written);
	json_uint(json, "read_bytes", counters.bytes_read);
	json_open_object(json, "latencies");
	for (int kind = 0; kind < WEIR_STATS_SHM_KINDS; kind++) {
		stats_view_latency(&found->view, (enum weir_stats_shm_kind)kind, &histogram);
		write_latency(json, stats_view_kinds[kind], &histogram);
	}
	json_close(json);
	json_close(json);
}

/* Whether a session's peer is the donor. A donor that listens everywhere is known by its port. */
static bool is_to(const char *peer, const char *donor)
{
	const char *port = strrchr(donor, ':'), *other = strrchr(peer, ':');

	if (strncmp(donor, "0.0.0.0:", 8) && strncmp(donor, "[::]:", 5))
		return !strcmp(peer, donor);
	return port && other && !strcmp(port, other);
}

static void write_sessions(struct json *json, const char *address, bool in_total)
{
	struct session_list list = { 0 };
	unsigned int written = 0;

	if (!session_list_add_all(&list))
		for (size_t i = 0; i < list.count && written < SESSIONS_MAX; i++)
			if (is_to(list.found[i].view.peer, address)) {
				write_session(json, &list.found[i], in_total);
				written++;
			}
	session_list_free(&list);
}

static void write_link(struct json *json, const char *name, uint64_t in, uint64_t out)
{
	json_open_object(json, NULL);
	json_string(json, "id", name);
	json_string(json, "name", name);
	json_boolean(json, "in_total", true);
	json_uint(json, "written_bytes", in);
	json_uint(json, "read_bytes", out);
	json_close(json);
}

/* softnic's packets of other hosts: payload, repeated packets included. */
static void write_hosts(struct json *json)
{
	struct softnic_list list;
	char name[80];

	if (softnic_list_take(&list))
		return;
	for (size_t i = 0; i < list.count; i++) {
		const struct softnic_process *process = &list.process[i];

		for (size_t k = 0; process->pid == getpid() && k < process->nr_peers; k++) {
			const struct softnic_peer *peer = &process->peers[k];

			snprintf(name, sizeof(name), "host %s", softnic_list_peer(peer).text);
			write_link(json, name, peer->counters.bytes_in, peer->counters.bytes_out);
		}
	}
	softnic_list_free(&list);
}

/* Return: false, and nothing is written, if the kernel does not count the device's port. */
static bool write_port(struct json *json, const char *device)
{
	static const char format[] = "/sys/class/infiniband/%s/ports/1/counters/%s";
	char path[160], name[96];
	uint64_t in, out;

	snprintf(path, sizeof(path), format, device, "port_rcv_data");
	if (!sysfs_number(path, &in))
		return false;
	snprintf(path, sizeof(path), format, device, "port_xmit_data");
	if (!sysfs_number(path, &out))
		return false;
	snprintf(name, sizeof(name), "port 1 of %s, all programs", device);
	write_link(json, name, in * PORT_WORD, out * PORT_WORD);
	return true;
}

static void write_sources(struct json *json, const struct weir_donor_info *info)
{
	bool has_port = false;

	json_open_array(json, "sources");
	if (device_is_softnic())
		write_hosts(json);
	else
		has_port = write_port(json, info->device);
	write_sessions(json, info->address, !has_port);
	json_close(json);
}

static void write_log(struct json *json)
{
	struct log_entry *entries = calloc(LOG_TAIL_MAX, sizeof(*entries));
	size_t count = entries ? log_tail(entries) : 0;

	json_open_array(json, "log");
	for (size_t i = 0; i < count; i++) {
		json_open_object(json, NULL);
		json_uint(json, "number", entries[i].number);
		json_string(json, "time", entries[i].time);
		json_string(json, "level", log_level_names[entries[i].level]);
		json_string(json, "text", entries[i].text);
		json_close(json);
	}
	json_close(json);
	free(entries);
}

void state_write(FILE *out, struct weir_donor *donor)
{
	struct state_snapshot snapshot = { .donor = donor };
	struct json json;

	weir_donor_info(donor, &snapshot.info, sizeof(snapshot.info));
	(void)donor_call(donor, take_snapshot, &snapshot);
	json_begin_line(&json, out);
	json_string(&json, "version", WEIR_VERSION);
	json_int(&json, "pid", getpid());
	json_uint(&json, "monotonic_ns", weir_now_ns());
	write_donor(&json, &snapshot.info);
	write_map(&json, &snapshot.holdings);
	write_sources(&json, &snapshot.info);
	write_log(&json);
	json_end(&json);
	weir_holdings_free(&snapshot.holdings);
}
