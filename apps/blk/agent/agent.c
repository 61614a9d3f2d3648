/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The beginning and end of an agent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"
#include "apps/common/stop.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

#define GUARD_MS 10000u

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

bool blk_agent_ends(struct blk_agent *a)
{
	return __atomic_load_n(&a->stops, __ATOMIC_ACQUIRE);
}

void blk_agent_end(struct blk_agent *a)
{
	__atomic_store_n(&a->stops, true, __ATOMIC_RELEASE);
}

int blk_agent_connect(struct blk_agent *a)
{
	int status = blk_netlink_open(&a->talk, a->cmd);

	if (!status)
		status = blk_netlink_open(&a->watch_talk, a->cmd);
	if (!status)
		status = blk_netlink_open(&a->news, a->cmd);
	if (!status)
		a->hears = blk_netlink_hear(&a->news);
	return status;
}

void blk_agent_rest(const struct blk_agent *a, bool calm)
{
	if (a->hears)
		blk_netlink_await_news(&a->news, calm ? BLK_AGENT_CALM_MS : BLK_AGENT_LOOK_MS);
	else
		stop_or_sleep(BLK_AGENT_LOOK_MS / 1000.0);
}

/*
 * One agent a device. The name goes with the process. The last agent, or that of an earlier device
 * with this number, may need a moment to end, even after a SIGKILL.
 */
int blk_agent_guard(struct blk_agent *a)
{
	uint64_t until_ns = weir_now_ns() + GUARD_MS * WEIR_NS_PER_MS;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			      "weir-blk-agent-%u", a->number);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);

	a->guard = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->guard < 0)
		return failure(a->cmd, "no socket: %s", strerror(errno));
	while (bind(a->guard, (const struct sockaddr *)&address, size)) {
		if (stop_requested() || weir_now_ns() > until_ns)
			return failure(a->cmd, "weir%u has an agent already", a->number);
		blk_agent_rest(a, false);
	}
	return EXIT_OK;
}

void blk_agent_keep_memory(void)
{
	int file;

	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	(void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return;
	if (write(file, "-1000", 5) != 5)
		(void)0; /* it may be killed like others: the next agent goes on */
	close(file);
}

struct blk_agent *blk_agent_new(const char *cmd)
{
	struct blk_agent *a = calloc(1, sizeof(*a));

	stop_on_signals();
	signal(SIGPIPE, SIG_IGN);
	if (!a)
		return NULL;
	pthread_mutex_init(&a->lock, NULL);
	a->cmd = cmd;
	a->guard = -1;
	a->shown = a->look.percent = 100;
	return a;
}

int blk_agent_prepare(struct blk_agent *a, const char *name)
{
	struct weir_error error;

	a->map = calloc(1, sizeof(*a->map));
	a->scratch = calloc(1, sizeof(*a->scratch));
	a->own = calloc(1, sizeof(*a->own));
	a->out = calloc(1, sizeof(*a->out));
	if (!a->map || !a->scratch || !a->own || !a->out)
		return failure(a->cmd, "out of memory");
	if (!blk_pool_split(name, a->place, &a->volume))
		return usage_error(a->cmd, "%s: expected POOL/VOLUME", name);
	snprintf(a->name, sizeof(a->name), "%s", name);
	if (weir_pool_client_open(a->place, &a->client, &error) ||
	    weir_pool_client_open(a->place, &a->reporter, &error))
		return failure(a->cmd, "%s", error.text);
	return EXIT_OK;
}

void blk_agent_finish(struct blk_agent *a, bool keeps)
{
	blk_agent_end(a);
	if (a->has_watcher)
		pthread_join(a->watcher, NULL);
	if (a->client && keeps)
		weir_pool_client_hand_over(a->client);
	weir_pool_client_close(a->client);
	weir_pool_client_close(a->reporter);
	blk_netlink_close(&a->talk);
	blk_netlink_close(&a->watch_talk);
	blk_netlink_close(&a->news);
	if (a->guard >= 0)
		close(a->guard);
	free(a->map);
	free(a->scratch);
	free(a->own);
	free(a->out);
	free(a);
}
