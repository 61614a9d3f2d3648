/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * patient DONOR KEY FILE: writes and reads repeatedly until FILE exists, then pauses.
 *
 * Prints when it starts, when channels of its session break, when all are up again, when it pauses,
 * and when the donor is lost, which ends the program. Exits with 1 if a request fails, or reads
 * other data than the last written.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#define SECOND_NS 1000000000ull
#define BLOCK 16384
#define CHANNELS 2u
#define LOOK_US 20000

static const char *rest;
static atomic_bool rests, gone;

static void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	printf("%s: %s\n", what, why);
	exit(1);
}

static void on_down(void *arg, int status)
{
	(void)arg;
	printf("the donor is gone: %s\n", weir_strerror(status));
	atomic_store(&gone, true);
}

static void turn(struct weir_region *region, unsigned char number)
{
	static char out[BLOCK], in[BLOCK];
	int rc;

	memset(out, number, BLOCK);
	rc = weir_write(region, 0, out, BLOCK);
	must(!rc, "write", weir_strerror(rc));
	rc = weir_read(region, 0, in, BLOCK);
	must(!rc, "read", weir_strerror(rc));
	must(!memcmp(in, out, BLOCK), "read", "not what was written");
}

static void *work(void *region)
{
	unsigned char number = 0;

	while (access(rest, F_OK))
		turn(region, number++);
	printf("rests\n");
	atomic_store(&rests, true);
	return NULL;
}

/* Prints how the channels' state has changed since the last call. */
static void check_session(struct weir_session *session)
{
	static bool was_broken;
	struct weir_session_info info;
	bool is_broken;

	weir_session_info(session, &info, sizeof(info));
	is_broken = info.channels < CHANNELS;
	if (is_broken != was_broken)
		printf("the session is %s\n", is_broken ? "broken" : "whole");
	was_broken = is_broken;
}

int main(int argc, char **argv)
{
	struct weir_session_options options = {
		.size = sizeof(options),
		.channels = CHANNELS,
		.timeout_ns = 40 * SECOND_NS,
		.keepalive_ns = SECOND_NS,
		.retries = 100,
		.on_down = on_down,
	};
	struct weir_session *session;
	struct weir_region *region;
	struct weir_error error;
	struct weir_key *key;
	pthread_t worker;

	setvbuf(stdout, NULL, _IOLBF, 0);
	must(argc == 4, "usage", "patient DONOR KEY FILE");
	rest = argv[3];
	must(!weir_key_load(argv[2], &key, &error), "key", error.text);
	options.key = key;
	must(!weir_session_open(argv[1], &options, &session, &error), "session", error.text);
	must(!weir_region_create(session, NULL, BLOCK, WEIR_REGION_EXCLUSIVE, &region, &error),
	     "region", error.text);
	printf("writes and reads\n");
	must(!pthread_create(&worker, NULL, work, region), "thread", "none");
	while (!atomic_load(&gone)) {
		check_session(session);
		usleep(LOOK_US);
	}
	must(atomic_load(&rests), "the donor", "was gone too early");
	return 0;
}
