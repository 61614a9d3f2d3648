/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir blk attach: what it needs of user space is an address and a key; the module does the rest. */
#include "apps/blk/blk.h"
#include "apps/cmd.h"
#include "apps/size.h"
#include "core/poll.h"
#include "lib/address.h"
#include "lib/key.h"

#include <errno.h>
#include <getopt.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char help[] =
	"Usage: weir blk attach [OPTION...] DONOR [SIZE]\n"
	"Makes /dev/weirN, a block device of SIZE bytes of a donor's memory.\n\n"
	"  -n, --name NAME        of a region at the donor, which stays when the device is\n"
	"                         detached, and is made if it is not there; without SIZE it\n"
	"                         must be. Default: none, and it ends with the device\n"
	"  -k, --key FILE         the key that the donor was given\n"
	"  -c, --channels N       connections, 1 to 16, default 2\n"
	"  -t, --timeout S        of a read or write, and to mend a connection, default 10\n"
	"  -w, --window SIZE      in flight on the RDMA device at once, default 8M; the first\n"
	"                         device that is attached decides\n"
	"  -p, --polling HOW      adaptive, event, event-batch or hybrid; default adaptive\n"
	"  -h, --help\n";

static const struct {
	const char *name;
	uint32_t mode;
} pollings[] = {
	{ "adaptive", WEIR_POLL_ADAPTIVE },
	{ "event", WEIR_POLL_EVENT },
	{ "event-batch", WEIR_POLL_EVENT_BATCH },
	{ "hybrid", WEIR_POLL_HYBRID },
};

struct attach {
	const char *cmd, *donor, *name, *key;
	uint64_t bytes, window_bytes;
	uint32_t channels, timeout_ms, polling;
};

static int parse_polling(struct attach *a, const char *text)
{
	for (size_t i = 0; i < sizeof(pollings) / sizeof(pollings[0]); i++) {
		if (!strcmp(text, pollings[i].name)) {
			a->polling = pollings[i].mode;
			return 0;
		}
	}
	return usage_error(a->cmd, "--polling %s: adaptive, event, event-batch or hybrid", text);
}

static int parse_timeout(struct attach *a, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.1 && seconds <= 600))
		return usage_error(a->cmd, "--timeout %s: 0.1 to 600 seconds", text);
	a->timeout_ms = (uint32_t)(seconds * 1000);
	return 0;
}

static int parse_channels(struct attach *a, const char *text)
{
	char *end;
	unsigned long channels = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !channels || channels > 16)
		return usage_error(a->cmd, "--channels %s: 1 to 16", text);
	a->channels = (uint32_t)channels;
	return 0;
}

static int parse_option(struct attach *a, int opt)
{
	switch (opt) {
	case 'n':
		a->name = optarg;
		if (!*optarg || strlen(optarg) > 63 || strchr(optarg, '/'))
			return usage_error(a->cmd, "--name %s: 1 to 63 bytes, no '/'", optarg);
		return 0;
	case 'k':
		a->key = optarg;
		return 0;
	case 'c':
		return parse_channels(a, optarg);
	case 't':
		return parse_timeout(a, optarg);
	case 'w':
		if (size_parse(optarg, &a->window_bytes) || a->window_bytes < 65536)
			return usage_error(a->cmd, "--window %s: a size, 64K at least", optarg);
		return 0;
	case 'p':
		return parse_polling(a, optarg);
	default:
		return usage_error(a->cmd, NULL);
	}
}

/*
 * Into the keyring of this process, which ends with it; the module looks there while it attaches.
 * Nobody can read a logon key back.
 */
static int give_key(const struct attach *a)
{
	struct weir_error error;
	struct weir_key *key;
	long id;

	if (weir_key_load(a->key, &key, &error))
		return failure(a->cmd, "%s", error.text);
	id = syscall(SYS_add_key, "logon", WEIR_BLK_KEY, key->bytes, key->length,
		     KEY_SPEC_PROCESS_KEYRING);
	weir_key_free(key);
	return id < 0 ? failure(a->cmd, "the kernel takes no key: %s", strerror(errno)) : 0;
}

static void write_attach(struct nlmsghdr *message, const struct attach *a,
			 const struct sockaddr *donor)
{
	size_t length = donor->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in);

	mnl_attr_put(message, WEIR_BLK_DONOR, length, donor);
	mnl_attr_put_u64(message, WEIR_BLK_BYTES, a->bytes);
	if (a->name)
		mnl_attr_put_strz(message, WEIR_BLK_NAME, a->name);
	if (a->key)
		mnl_attr_put(message, WEIR_BLK_HAS_KEY, 0, NULL);
	mnl_attr_put_u32(message, WEIR_BLK_CHANNELS, a->channels);
	mnl_attr_put_u32(message, WEIR_BLK_TIMEOUT_MS, a->timeout_ms);
	mnl_attr_put_u64(message, WEIR_BLK_WINDOW_BYTES, a->window_bytes);
	mnl_attr_put_u32(message, WEIR_BLK_POLLING, a->polling);
}

static int attach(const struct attach *a, const struct sockaddr *donor)
{
	struct talk talk = { 0 };
	struct nlmsghdr *message;
	uint32_t number;
	int status;

	status = talk_begin(&talk, a->cmd);
	if (!status && a->key)
		status = give_key(a);
	if (!status) {
		message = talk_write(&talk, WEIR_BLK_ATTACH, 0);
		write_attach(message, a, donor);
		status = talk_do(&talk, a->cmd, message, &number);
	}
	if (!status)
		printf("/dev/weir%u\n", number);
	talk_end(&talk);
	return status;
}

static int resolve_and_attach(const struct attach *a)
{
	struct weir_error error;
	struct addrinfo *list;
	int status;

	if (weir_address_resolve(a->donor, NULL, &list, &error))
		return failure(a->cmd, "%s", error.text);
	status = attach(a, list->ai_addr);
	freeaddrinfo(list);
	return status;
}

static int parse_arguments(struct attach *a, int argc, char **argv)
{
	if (argc < 1 || argc > 2)
		return usage_error(a->cmd, "expected: DONOR [SIZE]");
	a->donor = argv[0];
	if (argc == 2 && (size_parse(argv[1], &a->bytes) || !a->bytes || a->bytes % 4096))
		return usage_error(a->cmd, "%s: a size, and a multiple of 4096 bytes", argv[1]);
	if (argc == 1 && !a->name)
		return usage_error(a->cmd, "how large? Give a SIZE, or the --name of a region");
	return 0;
}

int blk_attach(const char *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "key", required_argument, NULL, 'k' },
		{ "channels", required_argument, NULL, 'c' },
		{ "timeout", required_argument, NULL, 't' },
		{ "window", required_argument, NULL, 'w' },
		{ "polling", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	struct attach a = { .cmd = cmd };
	int opt, status = 0;

	while (!status && (opt = getopt_long(argc, argv, "n:k:c:t:w:p:h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		status = parse_option(&a, opt);
	}
	if (!status)
		status = parse_arguments(&a, argc - optind, argv + optind);
	return status ? status : resolve_and_attach(&a);
}
