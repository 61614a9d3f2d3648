/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/exchange/exchange.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/perf/perf.h"

static int measure(const struct exchange_options *o)
{
	struct outcome outcomes[CARRIERS];
	unsigned int count;
	int status = exchange_run(o, outcomes, &count);

	if (status || !count)
		return status ? status :
				failure(o->cmd, "stopped before any mode was measured");
	if (!outcomes[0].received.messages)
		return failure(o->cmd, "stopped before any message was received");
	if (o->json)
		exchange_report_json(o, outcomes, count);
	else
		exchange_report_text(o, outcomes, count);
	return 0;
}

int perf_exchange(int argc, char **argv)
{
	struct weir_error error = { "" };
	struct exchange_options o;
	struct weir_key *key = NULL;
	int status = exchange_options_parse(argc, argv, &o);

	if (status != CMDLINE_PARSED)
		return status;
	status = device_choose(o.cmd, o.device, &o.device);
	if (status)
		return status;
	if (o.key_path && weir_key_load(o.key_path, &key, &error))
		return failure(o.cmd, "%s", error.text);
	o.key = key;
	status = measure(&o);
	weir_key_free(key);
	return status;
}
