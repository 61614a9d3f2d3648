/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir ping: round trips to a donor, of three kinds. The donor's thread answers a message. A read
 * and a write access an unnamed region without the donor's CPU.
 */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/region.h>
#include <weir/request.h>

#define COUNT_MAX 1000000
#define SIZE_MAX_BYTES (64u << 20)
#define P99_SAMPLES_MIN 100

static const char usage[] =
	"Usage: weir ping [OPTION...] DONOR\n"
	"Measures round trips to a donor: a message, answered by the donor's thread, and a read\n"
	"and a write of memory, without the donor's CPU.\n";

enum ping_kind { KIND_MESSAGE, KIND_READ, KIND_WRITE, KINDS };

static const char *const kind_names[KINDS] = { "message", "read", "write" };

struct ping {
	const char *cmd, *donor, *device, *key;
	unsigned int count;
	double interval_s;
	uint64_t size;
	bool quiet, json;

	struct cmd_client client;
	struct weir_region *region;
	void *buffer;
	unsigned int done; /* round trips of each kind so far */
	uint64_t *samples_ns[KINDS];
};

static int round_trip(struct ping *ping, enum ping_kind kind)
{
	struct weir_donor_state state;

	switch (kind) {
	case KIND_READ:
		return weir_read(ping->region, 0, ping->buffer, ping->size);
	case KIND_WRITE:
		return weir_write(ping->region, 0, ping->buffer, ping->size);
	default:
		return weir_session_donor_state(ping->client.session, &state, sizeof(state));
	}
}

static int measure(struct ping *ping)
{
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		uint64_t start_ns = weir_now_ns();
		int rc = round_trip(ping, kind);

		if (rc)
			return failure(ping->cmd, "%s: %s: %s", ping->donor, kind_names[kind],
				       weir_strerror(rc));
		ping->samples_ns[kind][ping->done] = weir_now_ns() - start_ns;
	}
	if (!ping->quiet && !ping->json)
		printf("%u: message %.1f us, read %.1f us, write %.1f us\n", ping->done + 1,
		       (double)ping->samples_ns[KIND_MESSAGE][ping->done] / 1e3,
		       (double)ping->samples_ns[KIND_READ][ping->done] / 1e3,
		       (double)ping->samples_ns[KIND_WRITE][ping->done] / 1e3);
	fflush(stdout);
	ping->done++;
	return 0;
}

static int measure_all(struct ping *ping)
{
	int status = 0;

	while (!status && ping->done < ping->count && !stop_requested()) {
		if (ping->done && ping->interval_s > 0)
			stop_or_sleep(ping->interval_s);
		status = measure(ping);
	}
	return status;
}

/* @p99_us: of fewer samples than it takes, NAN: a hundredth of them must lie above */
struct summary {
	double min_us, avg_us, p50_us, p99_us, max_us;
};

static struct summary summarise(uint64_t *samples_ns, unsigned int count)
{
	double sum = 0;

	qsort(samples_ns, count, sizeof(*samples_ns), number_compare);
	for (unsigned int i = 0; i < count; i++)
		sum += (double)samples_ns[i];
	return (struct summary){
		.min_us = (double)samples_ns[0] / 1e3,
		.avg_us = sum / count / 1e3,
		.p50_us = (double)samples_ns[number_quantile(count, 50)] / 1e3,
		.p99_us = count < P99_SAMPLES_MIN ?
				  NAN :
				  (double)samples_ns[number_quantile(count, 99)] / 1e3,
		.max_us = (double)samples_ns[count - 1] / 1e3,
	};
}

static void print_summary(struct ping *ping, const struct weir_session_info *info)
{
	printf("%s: %u of each over %s, %s a read or write; microseconds:\n", info->peer,
	       ping->done, info->device, size_format(ping->size).text);
	printf("%-8s %9s %9s %9s %9s %9s\n", "", "min", "avg", "p50", "p99", "max");
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct summary s = summarise(ping->samples_ns[kind], ping->done);

		printf("%-8s %9.1f %9.1f %9.1f", kind_names[kind], s.min_us, s.avg_us, s.p50_us);
		if (isnan(s.p99_us))
			printf(" %9s", "-");
		else
			printf(" %9.1f", s.p99_us);
		printf(" %9.1f\n", s.max_us);
	}
	if (ping->done < P99_SAMPLES_MIN)
		printf("A p99 takes %d round trips: --count %d\n", P99_SAMPLES_MIN,
		       P99_SAMPLES_MIN);
}

static void print_summary_json(struct ping *ping, const struct weir_session_info *info)
{
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "donor", info->peer);
	json_string(&json, "device", info->device);
	json_uint(&json, "count", ping->done);
	json_uint(&json, "size_bytes", ping->size);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct summary s = summarise(ping->samples_ns[kind], ping->done);

		json_open_object(&json, kind_names[kind]);
		json_double(&json, "min_us", s.min_us);
		json_double(&json, "avg_us", s.avg_us);
		json_double(&json, "p50_us", s.p50_us);
		if (!isnan(s.p99_us))
			json_double(&json, "p99_us", s.p99_us);
		json_double(&json, "max_us", s.max_us);
		json_close(&json);
	}
	json_end(&json);
}

static void report(struct ping *ping)
{
	struct weir_session_info info;

	if (!ping->done)
		return;
	weir_session_info(ping->client.session, &info, sizeof(info));
	if (ping->json)
		print_summary_json(ping, &info);
	else
		print_summary(ping, &info);
}

static int visit(struct ping *ping)
{
	struct weir_error error;
	int status = device_choose(ping->cmd, ping->device, &ping->device);

	if (!status)
		status =
			client_open(&ping->client, ping->cmd, ping->donor, ping->device, ping->key);
	if (status)
		return status;
	if (weir_region_create(ping->client.session, NULL, ping->size, 0, &ping->region, &error)) {
		status = failure(ping->cmd, "%s", error.text);
		goto close_client;
	}
	stop_on_signals();
	status = measure_all(ping);
	report(ping);
	weir_region_close(ping->region);
close_client:
	client_close(&ping->client);
	return status;
}

static int ping_donor(struct ping *ping)
{
	bool enough = (ping->buffer = calloc(1, ping->size));
	int status;

	for (unsigned int kind = 0; kind < KINDS; kind++)
		enough &= !!(ping->samples_ns[kind] = calloc(ping->count, sizeof(uint64_t)));
	status = enough ? visit(ping) : failure(ping->cmd, "out of memory");
	for (unsigned int kind = 0; kind < KINDS; kind++)
		free(ping->samples_ns[kind]);
	free(ping->buffer);
	return status;
}

static const struct cmdline_option ping_options[] = {
	{ "count", 'c', "N", "round trips of each kind, default 10",
	  CMDLINE_UINT(struct ping, count, 1, COUNT_MAX) },
	{ "interval", 'i', "S", "seconds between them, default 0.1; 0: none",
	  CMDLINE_SECONDS(struct ping, interval_s, 0, 3600) },
	{ "size", 's', "BYTES", "length of reads and writes, default 4K",
	  CMDLINE_SIZE(struct ping, size, 1, SIZE_MAX_BYTES) },
	{ "quiet", 'q', NULL, "the summary only", CMDLINE_FLAG(struct ping, quiet) },
	{ "json", 'j', NULL, "the summary, for programs", CMDLINE_FLAG(struct ping, json) },
	CLIENT_KEY_OPTION(struct ping, key),
	CLIENT_ENCRYPT_OPTION,
	DEVICE_OPTION(struct ping, device),
	{ NULL },
};

static const struct cmdline ping_line = {
	.usage = usage,
	.options = ping_options,
	.arguments = "one DONOR",
	.arguments_min = 1,
	.arguments_max = 1,
};

int cmd_ping(int argc, char **argv)
{
	struct ping ping = { .cmd = argv[0], .count = 10, .interval_s = 0.1, .size = 4096 };
	int status = cmdline_parse(&ping_line, argc, argv, &ping);

	if (status != CMDLINE_PARSED)
		return status;
	ping.donor = argv[optind];
	return ping_donor(&ping);
}
