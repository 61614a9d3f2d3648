/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor: checks this machine, or the path to another, prints remedies, and proves by data. */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"
#include "lib/conn/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: weir doctor [OPTION...] [HOST]\n"
	"Checks what weir needs on this machine and prints a remedy for each problem. Then\n"
	"proves the path: lends memory in one process, and writes and reads it in another.\n"
	"With HOST, which runs weir serve: checks the path to that host instead.\n";

struct doctor {
	const char *cmd, *wanted, *key;
	bool fix, json;
};

static const struct cmdline_option doctor_options[] = {
	{ "fix", 'f', NULL, "load missing modules and set up Soft-RoCE (root)",
	  CMDLINE_FLAG(struct doctor, fix) },
	CMDLINE_JSON(struct doctor, json),
	CLIENT_KEY_OPTION(struct doctor, key),
	CLIENT_ENCRYPT_OPTION,
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
	check_rdma_devices(report);
	check_softnic(report);
	check_encryption(report);
	check_soft_roce(report);
	check_locked_memory(report);
	check_huge_pages(report);
	check_memory(report);
	check_fuse(report);
	check_port(report);
	check_path(report, device);
}

/* The address without its port, for messages. */
static void name_host(struct far_host *h)
{
	const struct sockaddr *at = h->address->ai_addr;

	inet_ntop(at->sa_family,
		  at->sa_family == AF_INET ?
			  (const void *)&((const struct sockaddr_in *)at)->sin_addr :
			  (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr,
		  h->name, sizeof(h->name));
}

static int examine_host(const struct doctor *doctor, struct report *report, const char *donor,
			const char *device)
{
	struct far_host h = {
		.donor = donor,
		.device = device,
		.encryption = client_encryption(),
		.is_softnic = device_is_softnic(),
		.is_json = doctor->json,
	};
	struct weir_error error;
	int rc = weir_address_resolve(donor, NULL, &h.address, &error);

	if (!rc && !probe_is_of_one_host(h.address->ai_addr)) {
		freeaddrinfo(h.address);
		return usage_error(doctor->cmd, "'%s' is not the address of one host", donor);
	}
	if (rc)
		return rc == -EINVAL ? usage_error(doctor->cmd, "%s", error.text) :
				       failure(doctor->cmd, "%s", error.text);
	if (doctor->key && weir_key_load(doctor->key, &h.key, &error)) {
		freeaddrinfo(h.address);
		return failure(doctor->cmd, "%s", error.text);
	}
	name_host(&h);
	check_host(report, &h);
	weir_key_free(h.key);
	freeaddrinfo(h.address);
	return EXIT_OK;
}

static int print_report(const struct doctor *doctor, struct report *report)
{
	if (doctor->json)
		report_print_json(report);
	else
		report_print(report);
	return report_count(report, VERDICT_FAIL) ? EXIT_FAILED : EXIT_OK;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = { .cmd = argv[0] };
	struct report report = { 0 };
	const char *device;
	int status = cmdline_parse(&doctor_line, argc, argv, &doctor);
	bool has_host = optind < argc;

	if (status != CMDLINE_PARSED)
		return status;
	if (has_host && doctor.fix)
		return usage_error(argv[0], "--fix repairs this machine only: leave out %s",
				   argv[optind]);
	if (!has_host && doctor.key)
		return usage_error(argv[0], "--key is for the path to another host: name the HOST");
	if (doctor.fix && !device_is_second_execution() && !fix_all(argv[0]))
		return EXIT_FAILED;
	status = device_choose(argv[0], doctor.wanted, &device);
	if (!status && has_host)
		status = examine_host(&doctor, &report, argv[optind], device);
	else if (!status)
		check_machine(&report, device);
	return status ? status : print_report(&doctor, &report);
}
