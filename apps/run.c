/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir run: runs any verbs program on softnic, or with small writes unloaded. */
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "softnic/control/option.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/key.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

static const char help[] =
	"Usage: weir run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"Runs a program that speaks verbs on softnic, weir's own RDMA device in software.\n"
	"The program reaches this user's softnic programs on this host, and no other device.\n\n"
	"      --unload[=WHICH]   small RDMA writes are copied by the CPU of the peer, which must\n"
	"                         run with --unload, too: measured (default), frequency, always\n"
	"      --hot-pages N      4 KiB pages in the cache of the peer's NIC; default 4096\n"
	"      --cpu PERCENT      most of a processor used to copy for peers; default 50\n"
	"  -k, --key FILE         key shared with peers on other hosts ('weir key new FILE');\n"
	"                         without it, only peers of this user on this host\n"
	"  -d, --device softnic   the device; with --unload also host: the host's devices\n"
	"  -q, --quiet            print neither the device nor statistics of unloading\n"
	"  -h, --help\n\n"
	"Exit status: the program's; 127 program not found; 126 not executable; 2 invalid\n"
	"option or WEIR_SOFTNIC, before the program starts.\n\n"
	"  weir run -- ibv_devinfo\n"
	"  weir run -- ib_write_bw & sleep 1; weir run -- ib_write_bw localhost\n";

/* Options as given on the command line, or NULL. */
struct run_choice {
	const char *device;
	const char *unload;
	const char *hot_pages;
	const char *cpu;
	const char *key;
	bool is_quiet;
};

/* Sets an environment variable for the preloaded library. Unset means the library's default. */
static bool hand_down(const char *name, const char *value)
{
	return !value || !setenv(name, value, 1);
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

static int prepare(const char *cmd, const struct run_choice *choice)
{
	bool on_softnic = !strcmp(choice->device, "softnic");
	unsigned int libraries = on_softnic ? DEVICE_SOFTNIC : 0;

	if (choice->unload)
		libraries |= DEVICE_UNLOAD;
	if (!hand_down("WEIR_UNLOAD", choice->unload) ||
	    !hand_down("WEIR_UNLOAD_HOT_PAGES", choice->hot_pages) ||
	    !hand_down("WEIR_UNLOAD_CPU", choice->cpu) ||
	    !hand_down("WEIR_UNLOAD_QUIET", choice->is_quiet ? "1" : NULL))
		return failure(cmd, "out of memory");
	if (hand_down_key(cmd, choice->key))
		return EXIT_FAILED;
	if (on_softnic && !choice->is_quiet)
		fprintf(stderr, "using softnic (this host only)\n");
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

static bool is_number(const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *text >= '1' && *text <= '9' && !*end && n <= max;
}

static int check_numbers(const char *cmd, const struct run_choice *choice)
{
	if (choice->hot_pages && !is_number(choice->hot_pages, UINT32_MAX))
		return usage_error(cmd, "--hot-pages %s: expected a number of pages",
				   choice->hot_pages);
	if (choice->cpu && !is_number(choice->cpu, 100))
		return usage_error(cmd, "--cpu %s: expected a percentage, 1 to 100", choice->cpu);
	if (!choice->unload && (choice->hot_pages || choice->cpu || choice->key))
		return usage_error(cmd, "--hot-pages, --cpu and --key require --unload");
	return 0;
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
	if (on_softnic && check_environment(cmd))
		return EXIT_USAGE;
	return check_numbers(cmd, choice);
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "unload", optional_argument, NULL, 'u' },
		{ "hot-pages", required_argument, NULL, 'p' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "key", required_argument, NULL, 'k' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	struct run_choice choice = { .device = "softnic" };
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "+d:k:qh", options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			choice.device = optarg;
			break;
		case 'u':
			choice.unload = optarg ? optarg : "measured";
			break;
		case 'p':
			choice.hot_pages = optarg;
			break;
		case 'c':
			choice.cpu = optarg;
			break;
		case 'k':
			choice.key = optarg;
			break;
		case 'q':
			choice.is_quiet = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		default:
			return usage_error(argv[0], NULL);
		}
	}
	rc = check(argv[0], &choice);
	if (rc)
		return rc;
	if (optind == argc)
		return usage_error(argv[0], "no PROGRAM given");
	return execute(argv[0], argv + optind, &choice);
}
