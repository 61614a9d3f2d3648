/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All peers are forked before anything of verbs is opened. The peers of a carrier wait on a pipe
 * until the center listens.
 */
#include "apps/common/cmd.h"
#include "apps/perf/exchange/endpoint.h"
#include "apps/common/stop.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 100 /* interval of checks for a stop request */

/* Memory shared by all processes of a carrier. */
struct shared {
	char address[128];
	struct exchange_tally peers[PEERS_MAX];
};

struct exchange_stage {
	int pipe[2];
	struct shared *shared;
	pid_t pids[PEERS_MAX];
};

static uint64_t process_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int report_failure(const struct exchange_options *o, enum carrier carrier, int status,
			  const struct weir_error *error)
{
	return failure(o->cmd, "%s: %s", carrier_names[carrier],
		       error && error->text[0] ? error->text : weir_strerror(status));
}

static int send_all(const struct exchange_options *o, struct exchange_endpoint *endpoints,
		    unsigned int count, struct exchange_tally *tally)
{
	uint64_t end_ns = weir_now_ns() + (uint64_t)(o->seconds * 1e9), sent = 0;
	char *message = calloc(1, o->size);
	unsigned int i;
	int rc = message ? 0 : -ENOMEM;

	while (!rc && !stop_requested() &&
	       (o->messages ? sent < o->messages : weir_now_ns() < end_ns)) {
		for (i = 0; !rc && i < count; i++)
			rc = endpoint_put(&endpoints[i], message);
		sent++;
	}
	for (i = 0; !rc && i < count; i++)
		rc = endpoint_finish(&endpoints[i]);
	free(message);
	tally->messages = sent * count;
	return rc;
}

static int receive_one(struct exchange_endpoint *endpoint, struct exchange_tally *tally)
{
	int rc = 0;

	while (!rc && !endpoint->is_over)
		rc = endpoint_take(endpoint, true, &tally->messages);
	return rc;
}

/* Takes from all peers in turn; sleeps if none has messages. */
static int receive_round(struct exchange_endpoint *endpoints, unsigned int count,
			 struct exchange_tally *tally, bool *is_over)
{
	struct pollfd fds[PEERS_MAX];
	bool moved = false;
	unsigned int i, n = 0;
	int rc;

	*is_over = true;
	for (i = 0; i < count; i++) {
		if (endpoints[i].is_over)
			continue;
		*is_over = false;
		rc = endpoint_take(&endpoints[i], false, &tally->messages);
		if (rc && rc != -EAGAIN)
			return rc;
		moved |= !rc;
	}
	for (i = 0; !moved && i < count; i++)
		if (!endpoints[i].is_over)
			moved = endpoint_is_due(&endpoints[i], &fds[n++]);
	if (!moved && !*is_over)
		poll(fds, n, POLL_MS);
	return endpoint_gives_up() ? -ETIMEDOUT : 0;
}

static int receive_all(struct exchange_endpoint *endpoints, unsigned int count,
		       struct exchange_tally *tally)
{
	bool is_over = false;
	int rc = 0;

	if (count == 1)
		return receive_one(&endpoints[0], tally);
	while (!rc && !is_over)
		rc = receive_round(endpoints, count, tally, &is_over);
	return rc;
}

/* Measures transfers, without the cost of connecting. */
static int run_transfers(const struct exchange_options *o, bool sends,
			 struct exchange_endpoint *endpoints, unsigned int count,
			 struct exchange_tally *tally)
{
	uint64_t wall_ns = weir_now_ns(), cpu_ns = process_cpu_ns();
	struct exchange_tally before = { 0 };
	unsigned int i;
	int rc;

	for (i = 0; i < count; i++)
		endpoint_count(&endpoints[i], &before);
	rc = sends ? send_all(o, endpoints, count, tally) : receive_all(endpoints, count, tally);
	tally->wall_ns = weir_now_ns() - wall_ns;
	tally->cpu_ns = process_cpu_ns() - cpu_ns;
	for (i = 0; i < count; i++)
		endpoint_count(&endpoints[i], tally);
	tally->wrs -= before.wrs;
	tally->doorbells -= before.doorbells;
	tally->recvs -= before.recvs;
	tally->completions -= before.completions;
	tally->events -= before.events;
	tally->confirms -= before.confirms;
	return rc;
}

static int peer_main(const struct exchange_options *o, enum carrier carrier,
		     struct exchange_stage *stage, unsigned int number)
{
	struct weir_error error = { "" };
	struct exchange_endpoint endpoint;
	char go;
	int rc;

	if (read(stage->pipe[0], &go, 1) != 1)
		return EXIT_FAILED; /* the center has printed the reason */
	rc = endpoint_connect(&endpoint, carrier, o, stage->shared->address, &error);
	if (!rc)
		rc = run_transfers(o, !center_sends(o), &endpoint, 1,
				   &stage->shared->peers[number]);
	endpoint_close(&endpoint);
	return rc ? report_failure(o, carrier, rc, &error) : EXIT_OK;
}

/* Does not return in a peer. */
static int stage_fork(const struct exchange_options *o, enum carrier carrier,
		      struct exchange_stage *stages)
{
	struct exchange_stage *stage = &stages[carrier];
	unsigned int i, other;

	for (i = 0; i < o->peers; i++) {
		stage->pids[i] = fork();
		if (stage->pids[i] < 0)
			return failure(o->cmd, "cannot start a process: %s", strerror(errno));
		if (stage->pids[i])
			continue;
		for (other = 0; other < CARRIERS; other++)
			close(stages[other].pipe[1]);
		_exit(peer_main(o, carrier, stage, i));
	}
	return 0;
}

/* Return: 0; an exit status if a peer has ended, after its message. */
static int peers_are_there(const struct exchange_options *o, struct exchange_stage *stage)
{
	unsigned int i;
	int status;

	for (i = 0; i < o->peers; i++) {
		if (stage->pids[i] <= 0 || waitpid(stage->pids[i], &status, WNOHANG) <= 0)
			continue;
		stage->pids[i] = 0;
		return EXIT_FAILED;
	}
	return stop_requested() ? EXIT_FAILED : 0;
}

static int connect_peers(const struct exchange_options *o, enum carrier carrier,
			 struct exchange_stage *stage, struct exchange_endpoint *endpoints,
			 unsigned int *count)
{
	struct weir_error error = { "" };
	struct exchange_listener listener;
	int rc = endpoint_listen(&listener, carrier, o, &error), status = 0;
	unsigned int i;

	if (!rc) {
		memcpy(stage->shared->address, listener.address, sizeof(listener.address));
		for (i = 0; i < o->peers; i++)
			rc |= write(stage->pipe[1], "", 1) != 1 ? -EIO : 0;
	}
	while (!rc && !status && *count < o->peers) {
		rc = endpoint_accept(&endpoints[*count], &listener, o->size, &error);
		if (!rc)
			(*count)++;
		else if (rc == -ETIMEDOUT || rc == -EAGAIN)
			rc = 0, status = peers_are_there(o, stage);
	}
	endpoint_listen_end(&listener);
	return rc ? report_failure(o, carrier, rc, &error) : status;
}

static void add_tally(struct exchange_tally *sum, const struct exchange_tally *one)
{
	sum->messages += one->messages;
	sum->wrs += one->wrs;
	sum->doorbells += one->doorbells;
	sum->recvs += one->recvs;
	sum->completions += one->completions;
	sum->events += one->events;
	sum->confirms += one->confirms;
	sum->cpu_ns += one->cpu_ns;
	if (one->wall_ns > sum->wall_ns)
		sum->wall_ns = one->wall_ns;
}

static int wait_for_peers(const struct exchange_options *o, struct exchange_stage *stage)
{
	int status, failed = 0;
	unsigned int i;

	for (i = 0; i < o->peers; i++) {
		if (stage->pids[i] <= 0)
			continue;
		while (waitpid(stage->pids[i], &status, 0) < 0 && errno == EINTR)
			;
		stage->pids[i] = 0;
		failed |= status;
	}
	return failed ? EXIT_FAILED : 0;
}

static int run_carrier(const struct exchange_options *o, enum carrier carrier,
		       struct exchange_stage *stage, struct outcome *outcome)
{
	struct exchange_endpoint endpoints[PEERS_MAX];
	struct weir_exchange_info info;
	struct exchange_tally center = { 0 };
	unsigned int count = 0, i;
	int status = connect_peers(o, carrier, stage, endpoints, &count), rc = 0;

	*outcome = (struct outcome){ .carrier = carrier };
	if (!status && endpoints[0].x) {
		weir_exchange_info(endpoints[0].x, &info, sizeof(info));
		memcpy(outcome->device, info.device, sizeof(outcome->device));
		outcome->is_staged = info.staged;
	}
	if (!status)
		rc = run_transfers(o, center_sends(o), endpoints, count, &center);
	for (i = 0; i < count; i++)
		endpoint_close(&endpoints[i]);
	if (!status && !endpoint_gives_up())
		status = wait_for_peers(o, stage);
	if (rc && !status)
		status = endpoint_gives_up() ? failure(o->cmd,
						       "%s: stopped, and some peers did not end "
						       "in time",
						       carrier_names[carrier]) :
					       report_failure(o, carrier, rc, NULL);
	add_tally(center_sends(o) ? &outcome->sent : &outcome->received, &center);
	for (i = 0; i < o->peers; i++)
		add_tally(center_sends(o) ? &outcome->received : &outcome->sent,
			  &stage->shared->peers[i]);
	return status;
}

/*
 * Ends a carrier: peers that wait on the pipe end with it, and the rest are killed, including
 * stopped ones.
 */
static void stage_end(const struct exchange_options *o, struct exchange_stage *stage)
{
	unsigned int i;

	close(stage->pipe[0]);
	close(stage->pipe[1]);
	for (i = 0; i < o->peers; i++)
		if (stage->pids[i] > 0)
			kill(stage->pids[i], SIGKILL);
	wait_for_peers(o, stage);
	if (stage->shared)
		munmap(stage->shared, sizeof(*stage->shared));
}

static int stage_begin(const struct exchange_options *o, struct exchange_stage *stage)
{
	void *memory = mmap(NULL, sizeof(*stage->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*stage = (struct exchange_stage){ .shared = memory == MAP_FAILED ? NULL : memory };
	if (pipe(stage->pipe)) {
		stage->pipe[0] = stage->pipe[1] = -1;
		return failure(o->cmd, "cannot create a pipe: %s", strerror(errno));
	}
	return stage->shared ? 0 : failure(o->cmd, "out of memory");
}

int exchange_run(const struct exchange_options *o, struct outcome *outcomes, unsigned int *count)
{
	struct exchange_stage stages[CARRIERS];
	enum carrier carrier;
	int status = 0;

	stop_on_signals();
	for (carrier = 0; carrier < CARRIERS; carrier++)
		status |= stage_begin(o, &stages[carrier]);
	for (carrier = 0; !status && carrier < CARRIERS; carrier++)
		if (o->carriers & 1u << carrier)
			status = stage_fork(o, carrier, stages);
	*count = 0;
	for (carrier = 0; !status && carrier < CARRIERS && !stop_requested(); carrier++) {
		if (!(o->carriers & 1u << carrier))
			continue;
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "%s...\n", carrier_names[carrier]);
		status = run_carrier(o, carrier, &stages[carrier], &outcomes[*count]);
		*count += !status;
	}
	for (carrier = 0; carrier < CARRIERS; carrier++)
		stage_end(o, &stages[carrier]);
	return status;
}
