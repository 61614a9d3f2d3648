/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain verbs: a queue pair for each connection, whose thread polls busily or sleeps until an
 * event; or one queue pair for all, behind a lock, as in FaRM (NSDI 2014) and LITE (SOSP 2017),
 * where a waiting thread polls for all. Messages are neither copied nor inspected. A thread that
 * finds nothing yields now and then, to leave the processor to the thread that it waits for.
 */
#include "bench/share/way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WCS_MAX 16
#define EMPTY_MAX 100 /* empty polls before a yield */
#define SENDS_MAX 256 /* of a queue pair */
#define PLACES_MAX 64 /* of a pipe: received data is ignored, so many receives share a place */

/**
 * struct pipe - a queue pair
 * @memory: data to send, then @places for received data, @slot bytes each
 * @room: free entries of the send queue
 * @lock: guards the pipe, if several connections share it
 */
struct pipe {
	struct rdma_cm_id *id;
	pthread_mutex_t lock;
	char *memory;
	size_t slot, places;
	struct ibv_mr *mr;
	int room;
};

static struct pipe pipes[CONNS_MAX];
static struct rdma_cm_id *listener;
static int nr_pipes, urgent = -1;
static bool is_caller, has_events;
static _Atomic unsigned int inbox[CONNS_MAX];
static _Atomic uint64_t work_requests, doorbells, sleeps, bulk_bytes, ahead_bytes_max;

static struct pipe *pipe_of(int conn)
{
	return &pipes[nr_pipes == 1 ? 0 : conn];
}

static void receive_post(struct pipe *p, uint64_t number)
{
	char *place = p->memory + (number % p->places + 1) * p->slot;

	must(!rdma_post_recv(p->id, (void *)(uintptr_t)number, place, p->slot, p->mr), "receive",
	     "refused");
}

/* Sets up memory and receives for all messages in flight. Before connecting. */
static void pipe_open(struct pipe *p, const struct share_job *job, int first, int last)
{
	uint64_t receives = 0, i;
	int conn;

	pthread_mutex_init(&p->lock, NULL);
	/* One size for all: any message may consume any receive. */
	for (conn = first; conn < last; conn++) {
		receives += (uint64_t)job->depths[conn];
		if (p->slot < job->sizes[conn])
			p->slot = job->sizes[conn];
	}
	p->places = receives < PLACES_MAX ? receives : PLACES_MAX;
	p->room = SENDS_MAX;
	p->memory = calloc(p->places + 1, p->slot);
	p->mr = p->memory ? rdma_reg_msgs(p->id, p->memory, (p->places + 1) * p->slot) : NULL;
	must(p->mr, "memory", strerror(errno));
	for (i = 0; i < receives; i++)
		receive_post(p, i);
}

static struct ibv_qp_init_attr queues(const struct share_job *job)
{
	uint32_t most = 0, all = 0;
	int i;

	for (i = 0; i < job->conns; i++) {
		all += (uint32_t)job->depths[i];
		if (most < (uint32_t)job->depths[i])
			most = (uint32_t)job->depths[i];
	}
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = SENDS_MAX,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_recv_wr = (nr_pipes == 1 ? all : most) + 1 },
		.qp_type = IBV_QPT_RC,
	};
}

static struct rdma_cm_id *endpoint(const struct share_job *job, const char *host, const char *port,
				   int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *found;
	struct ibv_qp_init_attr attr = queues(job);
	struct rdma_cm_id *id = NULL;

	must(!rdma_getaddrinfo(host, port, &hints, &found), "address", strerror(errno));
	must(!rdma_create_ep(&id, found, NULL, &attr), "queue pair", strerror(errno));
	rdma_freeaddrinfo(found);
	return id;
}

static void connections_of(int pipe, const struct share_job *job, int *first, int *last)
{
	*first = nr_pipes == 1 ? 0 : pipe;
	*last = nr_pipes == 1 ? job->conns : pipe + 1;
}

static void native_serve(const struct share_job *job, char *address)
{
	listener = endpoint(job, job->host, "0", RAI_PASSIVE);
	must(!rdma_listen(listener, CONNS_MAX), "listen", strerror(errno));
	snprintf(address, ADDRESS_MAX, "%s:%u", job->host, ntohs(rdma_get_src_port(listener)));
}

static void native_accept(const struct share_job *job)
{
	int i, first, last;

	for (i = 0; i < nr_pipes; i++) {
		must(!rdma_get_request(listener, &pipes[i].id), "request", strerror(errno));
		connections_of(i, job, &first, &last);
		pipe_open(&pipes[i], job, first, last);
		must(!rdma_accept(pipes[i].id, NULL), "accept", strerror(errno));
	}
}

static void native_call(const struct share_job *job, const char *address)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	char *host = strdup(address), *port = strrchr(host, ':');
	int i, first, last;

	*port++ = '\0';
	is_caller = true;
	urgent = job->urgent;
	for (i = 0; i < nr_pipes; i++) {
		pipes[i].id = endpoint(job, host, port, 0);
		connections_of(i, job, &first, &last);
		pipe_open(&pipes[i], job, first, last);
		must(!rdma_connect(pipes[i].id, &param), "connect", strerror(errno));
	}
	free(host);
}

static void own_serve(const struct share_job *job, char *address)
{
	nr_pipes = job->conns;
	native_serve(job, address);
}

static void own_call(const struct share_job *job, const char *address)
{
	nr_pipes = job->conns;
	native_call(job, address);
}

static void event_serve(const struct share_job *job, char *address)
{
	has_events = true;
	own_serve(job, address);
}

static void event_call(const struct share_job *job, const char *address)
{
	has_events = true;
	own_call(job, address);
}

static void locked_serve(const struct share_job *job, char *address)
{
	nr_pipes = 1;
	native_serve(job, address);
}

static void locked_call(const struct share_job *job, const char *address)
{
	nr_pipes = 1;
	native_call(job, address);
}

/* Takes completed sends out of flight: wr_id holds the bytes of each. */
static bool take_sent(struct pipe *p)
{
	struct ibv_wc wc[WCS_MAX];
	int i, n = ibv_poll_cq(p->id->send_cq, WCS_MAX, wc);

	for (i = 0; i < n; i++) {
		must(!wc[i].status, "send", ibv_wc_status_str(wc[i].status));
		bulk_bytes -= wc[i].wr_id;
		p->room++;
	}
	return n > 0;
}

static bool take_received(struct pipe *p)
{
	struct ibv_wc wc[WCS_MAX];
	int i, n = ibv_poll_cq(p->id->recv_cq, WCS_MAX, wc);

	for (i = 0; i < n; i++) {
		must(!wc[i].status, "receive", ibv_wc_status_str(wc[i].status));
		receive_post(p, wc[i].wr_id);
		inbox[ntohl(wc[i].imm_data)]++;
	}
	return n > 0;
}

static bool take(struct pipe *p)
{
	bool any;

	pthread_mutex_lock(&p->lock);
	any = take_sent(p);
	any |= take_received(p);
	pthread_mutex_unlock(&p->lock);
	return any;
}

static void sleep_until_received(struct pipe *p)
{
	struct ibv_cq *cq;
	void *context;

	must(!ibv_req_notify_cq(p->id->recv_cq, 0), "event", "refused");
	if (take(p))
		return;
	sleeps++;
	must(!ibv_get_cq_event(p->id->recv_cq_channel, &cq, &context), "event", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static void native_receive(int conn)
{
	struct pipe *p = pipe_of(conn);
	unsigned int empty = 0;

	while (!inbox[conn]) {
		if (take(p))
			empty = 0;
		else if (has_events && !inbox[conn])
			sleep_until_received(p);
		else if (++empty % EMPTY_MAX == 0)
			sched_yield();
	}
	inbox[conn]--;
}

static void note_ahead(void)
{
	uint64_t ahead = bulk_bytes, most = ahead_bytes_max;

	while (most < ahead &&
	       !__atomic_compare_exchange_n((uint64_t *)&ahead_bytes_max, &most, ahead, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void native_send(int conn, size_t size)
{
	struct pipe *p = pipe_of(conn);
	struct ibv_sge sge = { (uintptr_t)p->memory, (uint32_t)size, p->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = is_caller && conn != urgent ? size : 0,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl((uint32_t)conn),
	};

	pthread_mutex_lock(&p->lock);
	while (take_sent(p), !p->room)
		sched_yield();
	p->room--;
	bulk_bytes += wr.wr_id;
	if (conn == urgent)
		note_ahead();
	must(!ibv_post_send(p->id->qp, &wr, &bad), "send", "refused");
	pthread_mutex_unlock(&p->lock);
	work_requests++;
	doorbells++;
}

static void native_count(struct share_tally *tally)
{
	*tally = (struct share_tally){ work_requests, doorbells, sleeps, ahead_bytes_max };
}

const struct share_way way_busy = { "busy",	 own_serve,	 native_accept, own_call,
				    native_send, native_receive, native_count };
const struct share_way way_event = { "event",	  event_serve,	  native_accept, event_call,
				     native_send, native_receive, native_count };
const struct share_way way_locked = { "locked",	   locked_serve,   native_accept, locked_call,
				      native_send, native_receive, native_count };
