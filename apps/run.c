/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir run: runs any verbs program on softnic, or with small writes unloaded. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/sysfs_mount.h"
#include "softnic/control/option.h"
#include "softnic/tap/pcap.h"

#include <errno.h>
#include <fcntl.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/key.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

static const char usage[] =
	"Usage: weir run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"Runs a program that speaks verbs on softnic, weir's own RDMA device in software.\n"
	"The program reaches this user's softnic programs on this host, and RoCE v2 peers on\n"
	"other hosts: over UDP, with any network card.\n";

static const char notes[] =
	"Exit status: the program's; 127 program not found; 126 not executable; 2 invalid\n"
	"option or WEIR_SOFTNIC, before the program starts.\n\n"
	"  weir run -- ibv_devinfo\n"
	"  weir run -- ib_write_bw & sleep 1; weir run -- ib_write_bw localhost\n";

/* Options as given on the command line; NULL or 0: not given. */
struct run_choice {
	const char *device;
	const char *unload;
	unsigned int hot_pages;
	unsigned int cpu;
	const char *key;
	const char *sysfs;
	const char *pcap;
	const char *strict;
	bool is_quiet;
};

static const struct cmdline_option run_options[] = {
	{ "unload", 0, "[=WHICH]",
	  "small RDMA writes are copied by the CPU of the peer, which must\n"
	  "run with --unload, too: measured (default), frequency, always",
	  CMDLINE_TEXT(struct run_choice, unload), .fallback = "measured" },
	{ "hot-pages", 0, "N", "4 KiB pages in the cache of the peer's NIC; default 4096",
	  CMDLINE_UINT(struct run_choice, hot_pages, 1, UINT32_MAX) },
	{ "cpu", 0, "PERCENT", "most of a processor used to copy for peers; default 50",
	  CMDLINE_UINT(struct run_choice, cpu, 1, 100), .expected = "a percentage, 1 to 100" },
	{ "key", 'k', "FILE",
	  "key shared with peers on other hosts ('weir key new FILE');\n"
	  "without it, only peers of this user on this host",
	  CMDLINE_TEXT(struct run_choice, key) },
	{ "sysfs", 0, "calls|mount",
	  "how programs find softnic in /sys: calls, by functions of the C\n"
	  "library (default); mount, for static programs, also by files in\n"
	  "a mount namespace",
	  CMDLINE_TEXT(struct run_choice, sysfs) },
	{ "pcap", 0, "FILE", "record the packets to and from other hosts, for tshark",
	  CMDLINE_TEXT(struct run_choice, pcap) },
	{ "strict", 0, "[=HOW]",
	  "report misuse of verbs, and let it fail as on a NIC: report\n"
	  "(default; exit status 86 if the program would exit with 0), abort\n"
	  "at the first, leaks (also report objects left at exit)",
	  CMDLINE_TEXT(struct run_choice, strict), .fallback = "report" },
	{ "device", 'd', "softnic", "the device; with --unload also host: the host's devices",
	  CMDLINE_TEXT(struct run_choice, device) },
	{ "quiet", 'q', NULL, "print neither the device nor statistics of unloading",
	  CMDLINE_FLAG(struct run_choice, is_quiet) },
	{ NULL },
};

static const struct cmdline run_line = {
	.usage = usage,
	.options = run_options,
	.notes = notes,
	.arguments = "PROGRAM [ARGUMENT...]",
	.arguments_min = 1,
	.arguments_max = INT_MAX,
	.is_prefix = true,
};

/* Sets an environment variable for the preloaded library. Unset means the library's default. */
static bool hand_down(const char *name, const char *value)
{
	return !value || !setenv(name, value, 1);
}

static bool hand_down_number(const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return hand_down(name, value ? text : NULL);
}

/* Passes an absolute path: the program may change its directory before it reads the key. */
static int hand_down_key(const char *cmd, const char *path)
{
	struct weir_error error;
	struct weir_key *key;
	char *whole;
	bool done;

	if (!path)
		return 0;
	if (weir_key_load(path, &key, &error))
		return failure(cmd, "%s", error.text);
	weir_key_free(key);
	whole = realpath(path, NULL);
	done = whole && hand_down("WEIR_UNLOAD_KEY", whole);
	free(whole);
	return done ? 0 : failure(cmd, "key file %s: %s", path, strerror(errno));
}

/* Begins the record, and passes its absolute path. A pipe is written to, too. */
static int hand_down_pcap(const char *cmd, const char *path)
{
	const struct pcap_header header = PCAP_HEADER;
	int fd, rc = 0;
	char *whole;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, &header, sizeof(header)) < 0)
		rc = errno;
	if (fd >= 0)
		close(fd);
	whole = rc ? NULL : realpath(path, NULL);
	if (!rc && (!whole || !hand_down(PCAP_VARIABLE, whole)))
		rc = errno;
	free(whole);
	return rc ? failure(cmd, "--pcap %s: %s", path, strerror(rc)) : 0;
}

static const char *strict_settings(const char *how)
{
	return !strcmp(how, "report") ? "strict=1" :
	       !strcmp(how, "abort")  ? "strict=2" :
	       !strcmp(how, "leaks")  ? "strict=1,strict_leaks=1" :
					NULL;
}

/* Adds to the settings of the environment: of two settings of one option, the later counts. */
static bool hand_down_strict(const char *how)
{
	const char *before = getenv("WEIR_SOFTNIC");
	char *both;
	bool done;

	if (!how)
		return true;
	if (!before || !*before)
		return hand_down("WEIR_SOFTNIC", strict_settings(how));
	if (asprintf(&both, "%s,%s", before, strict_settings(how)) < 0)
		return false;
	done = hand_down("WEIR_SOFTNIC", both);
	free(both);
	return done;
}

static int prepare(const char *cmd, const struct run_choice *choice)
{
	bool on_softnic = !strcmp(choice->device, "softnic");
	unsigned int libraries = on_softnic ? DEVICE_SOFTNIC : 0;

	if (choice->unload)
		libraries |= DEVICE_UNLOAD;
	if (!hand_down("WEIR_UNLOAD", choice->unload) ||
	    !hand_down_number("WEIR_UNLOAD_HOT_PAGES", choice->hot_pages) ||
	    !hand_down_number("WEIR_UNLOAD_CPU", choice->cpu) ||
	    !hand_down_strict(choice->strict) ||
	    !hand_down("WEIR_UNLOAD_QUIET", choice->is_quiet ? "1" : NULL))
		return failure(cmd, "out of memory");
	if (hand_down_key(cmd, choice->key) || hand_down_pcap(cmd, choice->pcap))
		return EXIT_FAILED;
	if (on_softnic && !choice->is_quiet)
		fprintf(stderr, "using softnic\n");
	return device_preload(cmd, libraries);
}

static int execute(const char *cmd, char **argv, const struct run_choice *choice)
{
	int rc = prepare(cmd, choice);

	if (rc)
		return rc;
	execvp(argv[0], argv);
	rc = errno;
	failure(cmd, "%s: %s", argv[0], strerror(rc));
	return rc == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

static bool is_policy(const char *name)
{
	return !strcmp(name, "measured") || !strcmp(name, "frequency") || !strcmp(name, "always");
}

/*
 * Rejects bad settings here. softnic would only print a message and show no device, which many
 * tests take as a reason to skip.
 */
static int check_environment(const char *cmd)
{
	const char *text = getenv("WEIR_SOFTNIC");
	struct softnic_options options;
	char why[512];

	option_defaults(&options);
	if (text && option_parse(text, OPTION_DEVICES, &options, why, sizeof(why)))
		return usage_error(cmd, "WEIR_SOFTNIC: %s", why);
	return 0;
}

static int check(const char *cmd, const struct run_choice *choice)
{
	bool on_softnic = !strcmp(choice->device, "softnic");

	if (choice->unload && !is_policy(choice->unload))
		return usage_error(cmd, "--unload %s: expected measured, frequency or always",
				   choice->unload);
	if (choice->unload && !on_softnic && strcmp(choice->device, "host"))
		return usage_error(cmd,
				   "--device %s: expected softnic, or host for the host's devices",
				   choice->device);
	if (!choice->unload && !on_softnic)
		return usage_error(cmd, "--device %s: a program on a real device needs no weir run",
				   choice->device);
	if (choice->sysfs && strcmp(choice->sysfs, "calls") && strcmp(choice->sysfs, "mount"))
		return usage_error(cmd, "--sysfs %s: expected calls or mount", choice->sysfs);
	if (choice->pcap && !on_softnic)
		return usage_error(cmd, "--pcap records softnic: without --device host only");
	if (choice->strict && !strict_settings(choice->strict))
		return usage_error(cmd, "--strict %s: expected report, abort or leaks",
				   choice->strict);
	if (choice->strict && !on_softnic)
		return usage_error(cmd, "--strict checks on softnic: without --device host only");
	if (choice->sysfs && !on_softnic)
		return usage_error(cmd, "--sysfs shows softnic: without --device host only");
	if (on_softnic && check_environment(cmd))
		return EXIT_USAGE;
	if (!choice->unload && (choice->hot_pages || choice->cpu || choice->key))
		return usage_error(cmd, "--hot-pages, --cpu and --key require --unload");
	return 0;
}

/* The second execution, with softnic preloaded, finds in /sys what the files shall hold. */
static int show_in_sysfs(const char *cmd, const struct run_choice *choice)
{
	if (!choice->sysfs || strcmp(choice->sysfs, "mount"))
		return 0;
	return device_is_second_execution() ? sysfs_mount(cmd) : device_execute_on_softnic(cmd);
}

int cmd_run(int argc, char **argv)
{
	struct run_choice choice = { .device = "softnic" };
	int status = cmdline_parse(&run_line, argc, argv, &choice);

	if (status != CMDLINE_PARSED)
		return status;
	status = check(argv[0], &choice);
	status = status ? status : show_in_sysfs(argv[0], &choice);
	return status ? status : execute(argv[0], argv + optind, &choice);
}
