/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/mux/tenants.h"

int __real_weir_lane_met_client(struct weir_lane *lane, struct wire_welcome *welcome);
int __wrap_weir_lane_met_client(struct weir_lane *lane, struct wire_welcome *welcome);

/* Who has proven himself on a lane of that class is not welcomed before he may be. */
static struct {
	int class_nr; /* -1: of none */
	sem_t proven, may;
} gate = { .class_nr = -1 };

int __wrap_weir_lane_met_client(struct weir_lane *lane, struct wire_welcome *welcome)
{
	if (__atomic_load_n(&gate.class_nr, __ATOMIC_ACQUIRE) == lane->class) {
		sem_post(&gate.proven);
		while (sem_wait(&gate.may))
			;
	}
	return __real_weir_lane_met_client(lane, welcome);
}

static void gate_shut(int class_nr)
{
	assert_int_equal(sem_init(&gate.proven, 0, 0), 0);
	assert_int_equal(sem_init(&gate.may, 0, 0), 0);
	__atomic_store_n(&gate.class_nr, class_nr, __ATOMIC_RELEASE);
}

void gate_open(void)
{
	__atomic_store_n(&gate.class_nr, -1, __ATOMIC_RELEASE);
	sem_post(&gate.may);
}

static void *dial(void *arg)
{
	struct tenant *tenant = arg;
	struct weir_node *node;

	tenant->rc = weir_hub_dial(&tenant->owner, tenant->to->address, tenant->class_nr,
				   weir_now_ns() + PATIENCE_NS, &node, NULL);
	return NULL;
}

void tenant_dials(struct tenant *tenant, const struct end *from, const struct end *to,
		  uint8_t class_nr)
{
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	weir_owner_init(&tenant->owner, from->hub);
	tenant->owner.socket = sockets[0];
	tenant->end = sockets[1];
	tenant->to = to;
	tenant->class_nr = class_nr;
	gate_shut(class_nr);
	assert_int_equal(pthread_create(&tenant->thread, NULL, dial, tenant), 0);
	while (sem_wait(&gate.proven))
		;
}

static void tenant_free(struct tenant *tenant)
{
	close(tenant->owner.socket);
	weir_owner_fini(&tenant->owner);
}

void tenant_is_gone(struct tenant *tenant)
{
	close(tenant->end);
	assert_int_equal(pthread_join(tenant->thread, NULL), 0);
	assert_int_equal(tenant->rc, -ECONNRESET);
	tenant_free(tenant);
}

void tenant_gets_no_lane(struct tenant *tenant)
{
	assert_int_equal(pthread_join(tenant->thread, NULL), 0);
	assert_int_equal(tenant->rc, -ECONNRESET);
	close(tenant->end);
	tenant_free(tenant);
}

void wait_queue_pairs(const struct end *end, unsigned int count)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	struct weir_mux_info info;

	for (weir_hub_info(end->hub, &info); info.queue_pairs != count; weir_hub_info(end->hub, &info)) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
	}
}
