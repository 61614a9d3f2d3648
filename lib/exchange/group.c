/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A star. What an operation has to move is one job for each exchange; all jobs go on at the same time,
 * each as far as it can without waiting, and if none can, the end sleeps until one may.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/exchange/exchange.h"
#include "lib/yield.h"
#include <weir/group.h>

#define REST_MS_MAX 1000
#define LINGER_NS (5 * WEIR_NS_PER_S)

/* What is moved over one exchange. */
struct job {
	enum { JOB_DONE, JOB_PUT, JOB_FLUSH, JOB_GET, JOB_FINISH } kind;
	char *data;
	size_t length, done;
};

struct weir_group {
	unsigned int rank, size;
	unsigned int nr_links; /* members at the hub, one at a member */
	struct weir_exchange *links[WEIR_GROUP_MAX];
	struct job jobs[WEIR_GROUP_MAX];
	struct weir_gaps gaps;
	int fd;
	int status, culprit;
};

/* How the hub welcomes a member. */
struct seat {
	uint32_t rank, size;
};

static unsigned int rank_of(const struct weir_group *g, unsigned int link)
{
	return g->rank ? 0 : link + 1;
}

/* Both say that they have finished, and hear it. Who hears that may leave: the other needs no more. */
static int finish_step(struct weir_exchange *x)
{
	struct weir_exchange_slot slot;
	int rc, n;

	while ((n = weir_exchange_take(x, &slot, 1, 0)) > 0)
		weir_exchange_release(x, &slot, 1);
	rc = weir_exchange_finish(x, 0);
	if (rc && rc != -EAGAIN)
		return 0;
	return rc || n ? -EAGAIN : 0;
}

static int job_step(struct weir_exchange *x, struct job *job)
{
	size_t done = 0;
	int rc;

	switch (job->kind) {
	case JOB_PUT:
		rc = weir_exchange_put(x, job->data + job->done, job->length - job->done, 0, &done);
		job->done += done;
		if (!rc)
			job->kind = JOB_FLUSH;
		return rc;
	case JOB_FLUSH:
		rc = weir_exchange_flush(x, 0);
		break;
	case JOB_GET:
		rc = weir_exchange_get(x, job->data, job->length, &done, 0);
		if (!rc && done != job->length)
			rc = -EMSGSIZE;
		if (rc == -ENOENT)
			rc = -ECONNRESET;
		break;
	case JOB_FINISH:
		rc = finish_step(x);
		break;
	default:
		return -EAGAIN;
	}
	if (!rc)
		job->kind = JOB_DONE;
	return rc;
}

static int fail(struct weir_group *g, unsigned int link, int status)
{
	if (!g->status) {
		g->status = status;
		g->culprit = (int)rank_of(g, link);
	}
	return g->status;
}

/* Each job as far as it goes. @left: the first that is not done; nr_links if all are. */
static int step_all(struct weir_group *g, unsigned int *left, uint32_t *moved)
{
	unsigned int i;

	*left = g->nr_links;
	*moved = 0;
	for (i = 0; i < g->nr_links; i++) {
		size_t done = g->jobs[i].done;
		int rc;

		while (!(rc = job_step(g->links[i], &g->jobs[i])))
			(*moved)++;
		if (rc != -EAGAIN)
			return fail(g, i, rc);
		*moved += g->jobs[i].done != done;
		if (g->jobs[i].kind != JOB_DONE && *left == g->nr_links)
			*left = i;
	}
	return 0;
}

/* Asks all that are not done to wake this end. Return: whether none of them can go on already. */
static bool arm_all(struct weir_group *g)
{
	bool quiet = true;
	unsigned int i;

	for (i = 0; i < g->nr_links; i++)
		if (g->jobs[i].kind != JOB_DONE && weir_exchange_process(g->links[i]))
			quiet = false;
	return quiet;
}

static void sleep_until(struct weir_group *g, uint64_t deadline_ns)
{
	int ms = weir_poll_ms(deadline_ns);
	struct epoll_event event;

	if (ms < 0 || ms > REST_MS_MAX)
		ms = REST_MS_MAX;
	epoll_wait(g->fd, &event, 1, ms);
}

/* A job that is not done may have become able to go on while the others were asked. */
static int run(struct weir_group *g, uint64_t timeout_ns)
{
	const struct weir_poll_config config = {
		.mode = WEIR_POLL_ADAPTIVE, .wcs_max = 1, .busy_percent_max = 100,
	};
	uint64_t now_ns = weir_now_ns(), deadline_ns = weir_after_ns(now_ns, timeout_ns);
	enum weir_poll_verdict verdict;
	struct weir_poll poll;
	unsigned int left;
	uint32_t moved;
	int rc;

	weir_poll_init(&poll, &config, &g->gaps, now_ns);
	verdict = weir_poll_woken(&poll, now_ns);
	for (;;) {
		if (verdict == WEIR_POLL_ARM && !arm_all(g))
			verdict = weir_poll_woken(&poll, now_ns);
		rc = step_all(g, &left, &moved);
		if (rc || left == g->nr_links)
			return rc;
		weir_yield(&now_ns);
		if (now_ns >= deadline_ns)
			return fail(g, left, -ETIMEDOUT);
		verdict = weir_poll_polled(&poll, moved, now_ns);
		if (verdict == WEIR_POLL_SLEEP) {
			if (arm_all(g))
				sleep_until(g, deadline_ns);
			verdict = weir_poll_woken(&poll, weir_now_ns());
		}
	}
}

static void set(struct weir_group *g, unsigned int link, int kind, const void *data, size_t length)
{
	g->jobs[link] = (struct job){ .kind = kind, .data = (char *)data, .length = length };
}

int weir_group_broadcast(struct weir_group *g, void *data, size_t length, uint64_t timeout_ns)
{
	unsigned int i;

	for (i = 0; i < g->nr_links; i++)
		set(g, i, g->rank ? JOB_GET : JOB_PUT, data, length);
	return g->status ? g->status : run(g, timeout_ns);
}

int weir_group_gather(struct weir_group *g, const void *data, size_t length, void *all,
		      uint64_t timeout_ns)
{
	unsigned int i;

	if (g->status)
		return g->status;
	for (i = 0; i < g->nr_links; i++)
		if (g->rank)
			set(g, i, JOB_PUT, data, length);
		else
			set(g, i, JOB_GET, (char *)all + (i + 1) * length, length);
	if (!g->rank && all != data)
		memcpy(all, data, length);
	return run(g, timeout_ns);
}

int weir_group_scatter(struct weir_group *g, const void *all, void *data, size_t length,
		       uint64_t timeout_ns)
{
	unsigned int i;

	if (g->status)
		return g->status;
	for (i = 0; i < g->nr_links; i++)
		if (g->rank)
			set(g, i, JOB_GET, data, length);
		else
			set(g, i, JOB_PUT, (const char *)all + (i + 1) * length, length);
	if (!g->rank && all != data)
		memcpy(data, all, length);
	return run(g, timeout_ns);
}

int weir_group_all_gather(struct weir_group *g, const void *data, size_t length, void *all,
			  uint64_t timeout_ns)
{
	int rc = weir_group_gather(g, data, length, all, timeout_ns);

	return rc ? rc : weir_group_broadcast(g, all, length * g->size, timeout_ns);
}

#define ADD(type)                                                                                  \
	for (i = 0; i < count; i++)                                                                \
	((type *)to)[i] += ((const type *)from)[i]

static void add(void *to, const void *from, size_t count, enum weir_group_type type)
{
	size_t i;

	switch (type) {
	case WEIR_GROUP_F32:
		ADD(float);
		break;
	case WEIR_GROUP_F64:
		ADD(double);
		break;
	case WEIR_GROUP_I32: /* as unsigned ones: they wrap */
		ADD(uint32_t);
		break;
	default:
		ADD(uint64_t);
	}
}

int weir_group_reduce_scatter(struct weir_group *g, const void *data, void *part, size_t count,
			      enum weir_group_type type, uint64_t timeout_ns)
{
	size_t each = count * (type == WEIR_GROUP_F32 || type == WEIR_GROUP_I32 ? 4 : 8);
	size_t length = each * g->size;
	char *all = g->rank ? NULL : malloc(length * g->size + 1);
	unsigned int i;
	int rc;

	if (!g->rank && !all)
		return fail(g, 0, -ENOMEM);
	rc = weir_group_gather(g, data, length, all, timeout_ns);
	for (i = 1; !rc && !g->rank && i < g->size; i++)
		add(all, all + i * length, count * g->size, type);
	if (!rc)
		rc = weir_group_scatter(g, all, part, each, timeout_ns);
	free(all);
	return rc;
}

static int group_new(unsigned int rank, unsigned int size, struct weir_group **out)
{
	struct weir_group *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->rank = rank;
	g->size = size;
	g->culprit = -1;
	g->fd = epoll_create1(EPOLL_CLOEXEC);
	weir_gaps_init(&g->gaps, WEIR_WAKE_NS);
	*out = g;
	if (g->fd >= 0)
		return 0;
	weir_group_close(g);
	return -ENOMEM;
}

static int link_add(struct weir_group *g, struct weir_exchange *x)
{
	struct epoll_event event = { .events = EPOLLIN };

	g->links[g->nr_links++] = x;
	return epoll_ctl(g->fd, EPOLL_CTL_ADD, weir_exchange_fd(x), &event) ? -ENOMEM : 0;
}

int weir_group_host(struct weir_exchange_listener *listener, unsigned int size, uint64_t timeout_ns,
		    struct weir_group **out, struct weir_error *error)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns), now_ns;
	struct seat seats[WEIR_GROUP_MAX];
	struct weir_group *g;
	struct weir_exchange *x;
	unsigned int i;
	int rc;

	if (!size || size > WEIR_GROUP_MAX)
		return weir_fail(error, -EINVAL, "a group of %u: 1 to %u", size, WEIR_GROUP_MAX);
	rc = group_new(0, size, &g);
	if (rc)
		return weir_fail(error, rc, "out of memory");
	for (i = 0; !rc && i + 1 < size; i++) {
		now_ns = weir_now_ns();
		rc = weir_exchange_accept(listener, deadline_ns > now_ns ? deadline_ns - now_ns : 1,
					  &x, error);
		if (!rc && link_add(g, x))
			rc = weir_fail(error, -ENOMEM, "out of memory");
		seats[i] = (struct seat){ i + 1, size };
		set(g, i, JOB_PUT, &seats[i], sizeof(seats[i]));
	}
	now_ns = weir_now_ns();
	if (!rc && run(g, deadline_ns > now_ns ? deadline_ns - now_ns : 1))
		rc = weir_fail(error, g->status, "member %d: %s", g->culprit,
			       weir_strerror(g->status));
	if (rc) {
		g->status = rc;
		weir_group_close(g);
	} else {
		*out = g;
	}
	return rc;
}

int weir_group_join(const char *hub, const struct weir_exchange_options *options,
		    uint64_t timeout_ns, struct weir_group **out, struct weir_error *error)
{
	struct weir_exchange *x;
	struct weir_group *g;
	struct seat seat;
	size_t length;
	int rc = weir_exchange_connect(hub, options, &x, error);

	if (rc)
		return rc;
	rc = weir_exchange_get(x, &seat, sizeof(seat), &length, timeout_ns);
	if (!rc && (length != sizeof(seat) || !seat.rank || seat.rank >= seat.size ||
		    seat.size > WEIR_GROUP_MAX))
		rc = -EPROTO;
	if (rc)
		weir_fail(error, rc, "%s gives no seat in a group: %s", hub, weir_strerror(rc));
	else if (group_new(seat.rank, seat.size, &g))
		rc = weir_fail(error, -ENOMEM, "out of memory");
	if (rc) {
		weir_exchange_close(x);
		return rc;
	}
	rc = link_add(g, x);
	if (rc)
		weir_group_close(g);
	else
		*out = g;
	return rc;
}

unsigned int weir_group_rank(const struct weir_group *g)
{
	return g->rank;
}

unsigned int weir_group_size(const struct weir_group *g)
{
	return g->size;
}

struct weir_exchange *weir_group_exchange(struct weir_group *g, unsigned int rank)
{
	unsigned int i;

	for (i = 0; i < g->nr_links; i++)
		if (rank_of(g, i) == rank)
			return g->links[i];
	return NULL;
}

int weir_group_culprit(const struct weir_group *g)
{
	return g->culprit;
}

void weir_group_close(struct weir_group *g)
{
	unsigned int i;

	if (!g)
		return;
	for (i = 0; i < g->nr_links; i++)
		set(g, i, JOB_FINISH, NULL, 0);
	if (!g->status)
		run(g, LINGER_NS);
	for (i = 0; i < g->nr_links; i++)
		weir_exchange_close(g->links[i]);
	if (g->fd >= 0)
		close(g->fd);
	free(g);
}
