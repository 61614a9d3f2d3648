/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/mux/tenants.h"

int __real_weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome);
int __wrap_weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome);

/* Holds back the WELCOME for a QP of that class. */
static struct {
	int class_nr; /* -1: none */
	sem_t proven, may;
} gate = { .class_nr = -1 };

int __wrap_weir_mux_qp_dedup_client(struct weir_mux_qp *qp, struct wire_handshake_welcome *welcome)
{
	if (__atomic_load_n(&gate.class_nr, __ATOMIC_ACQUIRE) == qp->class) {
		sem_post(&gate.proven);
		while (sem_wait(&gate.may))
			;
	}
	return __real_weir_mux_qp_dedup_client(qp, welcome);
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
	struct mux_tenant *tenant = arg;
	struct weir_mux_remote *remote;

	tenant->rc = weir_mux_remote_connect(&tenant->account, tenant->to->address,
					     tenant->class_nr, weir_now_ns() + PATIENCE_NS, &remote,
					     NULL);
	return NULL;
}

void tenant_dials(struct mux_tenant *tenant, const struct mux_end *from, const struct mux_end *to,
		  uint8_t class_nr)
{
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	weir_mux_account_init(&tenant->account, from->mux);
	tenant->account.socket = sockets[0];
	tenant->end = sockets[1];
	tenant->to = to;
	tenant->class_nr = class_nr;
	gate_shut(class_nr);
	assert_int_equal(pthread_create(&tenant->thread, NULL, dial, tenant), 0);
	while (sem_wait(&gate.proven))
		;
}

static void tenant_free(struct mux_tenant *tenant)
{
	close(tenant->account.socket);
	weir_mux_account_fini(&tenant->account);
}

void tenant_is_gone(struct mux_tenant *tenant)
{
	close(tenant->end);
	assert_int_equal(pthread_join(tenant->thread, NULL), 0);
	assert_int_equal(tenant->rc, -ECONNRESET);
	tenant_free(tenant);
}

void tenant_gets_no_lane(struct mux_tenant *tenant)
{
	assert_int_equal(pthread_join(tenant->thread, NULL), 0);
	assert_int_equal(tenant->rc, -ECONNRESET);
	close(tenant->end);
	tenant_free(tenant);
}

void wait_queue_pairs(const struct mux_end *end, unsigned int count)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	struct weir_mux_info info;

	for (weir_mux_local_info(end->mux, &info); info.queue_pairs != count;
	     weir_mux_local_info(end->mux, &info)) {
		assert_true(weir_now_ns() < deadline_ns);
		usleep(1000);
	}
}
