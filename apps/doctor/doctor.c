/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor: checks this machine, or the path to another, prints remedies, and proves by data. */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"
#include "lib/conn/address.h"
#include "lib/pool/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: weir doctor [OPTION...] [HOST]\n"
	"Checks what weir needs on this machine and prints a remedy for each problem. Then\n"
	"proves the path: lends memory in one process, and writes and reads it in another.\n"
	"With HOST, which runs weir serve: checks the path to that host instead. With --pool:\n"
	"checks a pool's map, groups and donors instead, and the path to each donor.\n";

struct doctor {
	const char *cmd, *wanted, *key, *pool;
	bool fix, json;
};

static const struct cmdline_option doctor_options[] = {
	{ "fix", 'f', NULL, "load missing modules and set up Soft-RoCE (root)",
	  CMDLINE_FLAG(struct doctor, fix) },
	CMDLINE_JSON(struct doctor, json),
	CLIENT_KEY_OPTION(struct doctor, key),
	CLIENT_ENCRYPT_OPTION,
	{ "pool", 0, "POOL", "check this pool; see 'weir pool --help'",
	  CMDLINE_TEXT(struct doctor, pool) },
	DEVICE_OPTION(struct doctor, wanted),
	{ NULL },
};

static const struct cmdline doctor_line = {
	.usage = usage,
	.options = doctor_options,
	.notes = "Exit status: 0 if nothing is broken and each repair succeeded, otherwise 1.\n",
	.arguments = "at most one HOST",
	.arguments_max = 1,
};

/* Tries each repair, also after another has failed. */
static bool fix_all(const char *cmd)
{
	bool fuse = fix_fuse(), soft_roce = fix_soft_roce();

	if (!fuse || !soft_roce)
		failure(cmd, "--fix failed for%s%s: see above; without --fix each remedy is named",
			fuse ? "" : " fuse", soft_roce ? "" : " Soft-RoCE");
	return fuse && soft_roce;
}

static void check_machine(struct report *report, const char *device)
{
	const struct far_host path = { .device = device, .is_softnic = device_is_softnic() };

	check_rdma_devices(report);
	check_softnic(report);
	check_encryption(report);
	check_soft_roce(report);
	check_locked_memory(report);
	check_huge_pages(report);
	check_memory(report);
	check_donor_memory(report);
	check_fuse(report);
	check_mounts(report, &path);
	check_fstab(report, &path);
	check_settings(report);
	check_port(report);
	check_path(report, device);
}

/* Loads the key, too, which the caller frees. */
static int far_host_init(const struct doctor *doctor, const char *device, struct far_host *h)
{
	struct weir_error error;

	*h = (struct far_host){
		.device = device,
		.encryption = client_encryption(),
		.is_softnic = device_is_softnic(),
		.is_quiet = doctor->json,
	};
	if (doctor->key && weir_key_load(doctor->key, &h->key, &error))
		return failure(doctor->cmd, "%s", error.text);
	return EXIT_OK;
}

static int examine_host(const struct doctor *doctor, struct report *report, const char *donor,
			const char *device)
{
	struct far_host h;
	struct weir_error error;
	int rc, status = far_host_init(doctor, device, &h);

	if (status)
		return status;
	h.donor = donor;
	rc = host_resolve(&h, &error);
	if (!rc) {
		check_host(report, &h);
		freeaddrinfo(h.address);
	}
	weir_key_free(h.key);
	if (!rc)
		return EXIT_OK;
	return rc == -EINVAL ? usage_error(doctor->cmd, "%s", error.text) :
			       failure(doctor->cmd, "%s", error.text);
}

static int examine_pool(const struct doctor *doctor, struct report *report, const char *device)
{
	struct weir_pool_client *client;
	struct weir_error error;
	struct far_host path;
	int status = far_host_init(doctor, device, &path);

	if (status)
		return status;
	if (weir_pool_client_open(doctor->pool, &client, &error)) {
		status = failure(doctor->cmd, "%s", error.text);
	} else {
		check_pool(report, client, &path);
		weir_pool_client_close(client);
	}
	weir_key_free(path.key);
	return status;
}

static int print_report(const struct doctor *doctor, struct report *report)
{
	if (doctor->json)
		report_print_json(report);
	else
		report_print(report);
	return report_count(report, VERDICT_FAIL) ? EXIT_FAILED : EXIT_OK;
}

/* A device that is not here is a finding, and the other checks go on with another. */
static int choose_device(const struct doctor *doctor, struct report *report, const char **device)
{
	bool is_here = check_wanted_device(report, doctor->wanted);

	return device_choose(doctor->cmd, is_here ? doctor->wanted : "auto", device);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = { .cmd = argv[0] };
	static struct report report;
	const char *device;
	int status = cmdline_parse(&doctor_line, argc, argv, &doctor);
	bool has_host = optind < argc;

	if (status != CMDLINE_PARSED)
		return status;
	if (has_host && doctor.fix)
		return usage_error(argv[0], "--fix repairs this machine only: leave out %s",
				   argv[optind]);
	if (doctor.pool && (has_host || doctor.fix))
		return usage_error(argv[0], "--pool checks a pool only: leave out %s",
				   has_host ? argv[optind] : "--fix");
	if (!has_host && !doctor.pool && doctor.key)
		return usage_error(argv[0], "--key is for the path to another host: name the HOST "
				   "or --pool");
	if (doctor.fix && !device_is_second_execution() && !fix_all(argv[0]))
		return EXIT_FAILED;
	status = choose_device(&doctor, &report, &device);
	if (!status && doctor.pool)
		status = examine_pool(&doctor, &report, device);
	else if (!status && has_host)
		status = examine_host(&doctor, &report, argv[optind], device);
	else if (!status)
		check_machine(&report, device);
	return status ? status : print_report(&doctor, &report);
}
