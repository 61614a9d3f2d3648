/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir's mux with default options, in the process itself or in its daemon. Messages are copied; or
 * sent from a region, and perhaps received in place; or written into the other end's region and
 * announced by a message.
 */
#include "bench/share/way.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#define SERVICE 1
#define LARGE 65536 /* bytes: larger messages get rings that hold a whole message */

static struct weir_mux *mux;
static struct weir_mux_listener *listener;
static struct weir_mux_conn *conns[CONNS_MAX];
static char *buffers[CONNS_MAX];
static size_t sizes[CONNS_MAX];
static struct weir_mux_region *regions[CONNS_MAX];
static uint32_t handles[CONNS_MAX];
static uint64_t rounds[CONNS_MAX];
static size_t places[CONNS_MAX];
static bool is_put, is_lent, is_taken;

static void check(int status, const char *what)
{
	must(!status, what, weir_strerror(status));
}

static void mux_open(const char *listen, const char *share)
{
	struct weir_mux_options options = { .size = sizeof(options),
					    .listen = listen,
					    .share = share ? share : "" };
	const char *path = getenv("SHARERS_KEY");
	struct weir_key *key = NULL;
	struct weir_error error = { "" };

	must(!path || !weir_key_load(path, &key, &error), "key", error.text);
	options.key = key; /* kept until the mux ends, with the process */
	must(!weir_mux_open(&options, &mux, &error), "mux", error.text);
}

static void buffer_open(const struct share_job *job, int conn)
{
	sizes[conn] = job->sizes[conn];
	buffers[conn] = calloc(1, sizes[conn]);
	must(buffers[conn], "memory", "none is left");
}

static void mux_serve(const struct share_job *job, char *address)
{
	struct weir_mux_info info;

	snprintf(address, ADDRESS_MAX, "%s:0", job->host);
	mux_open(address, job->far);
	check(weir_mux_listen(mux, SERVICE, CONNS_MAX, &listener), "listen");
	weir_mux_info(mux, &info, sizeof(info));
	snprintf(address, ADDRESS_MAX, "%s", info.address);
}

/* A place for each message in flight. */
static void region_open(const struct share_job *job, int conn)
{
	places[conn] = (size_t)job->depths[conn];
	check(weir_mux_region_open(mux, sizes[conn] * places[conn], &regions[conn]), "region");
}

static void grant(const struct share_job *job, int conn)
{
	region_open(job, conn);
	check(weir_mux_conn_grant(conns[conn], regions[conn], 0, sizes[conn] * places[conn],
				  WEIR_MUX_MAY_WRITE, &handles[conn]),
	      "grant");
	check(weir_mux_conn_send(conns[conn], &handles[conn], sizeof(*handles), 0), "send");
}

/* Accepts in the order of connecting: the caller connects one after another. */
static void mux_accept(const struct share_job *job)
{
	struct pollfd in = { .fd = weir_mux_listener_fd(listener), .events = POLLIN };
	int i;

	for (i = 0; i < job->conns; i++) {
		while (weir_mux_listener_accept(listener, &conns[i]))
			poll(&in, 1, -1);
		buffer_open(job, i);
		if (is_put)
			grant(job, i);
	}
}

static void mux_call(const struct share_job *job, const char *address)
{
	struct weir_mux_conn_options options;
	struct weir_error error = { "" };
	size_t length;
	int i;

	mux_open(NULL, job->near);
	for (i = 0; i < job->conns; i++) {
		options = (struct weir_mux_conn_options){
			.size = sizeof(options),
			.class_nr = i == job->urgent ? WEIR_MUX_CLASS_URGENT :
						       WEIR_MUX_CLASS_NORMAL,
			.weight = job->weights[i],
			/* By default, a mux's rings have 256 KiB. */
			.ring_bytes = job->sizes[i] > LARGE ? (uint32_t)job->sizes[i] : 0,
		};
		must(!weir_mux_connect(mux, address, SERVICE, &options, &conns[i], &error),
		     "connect", error.text);
		buffer_open(job, i);
		if (is_put || is_lent)
			region_open(job, i);
		if (is_put)
			check(weir_mux_conn_recv(conns[i], &handles[i], sizeof(*handles), &length,
						 0),
			      "receive");
	}
}

static void mux_send(int conn, size_t size)
{
	check(weir_mux_conn_send(conns[conn], buffers[conn], size, 0), "send");
}

static void lent_call(const struct share_job *job, const char *address)
{
	is_lent = true;
	mux_call(job, address);
}

static void lent_send(int conn, size_t size)
{
	if (regions[conn])
		check(weir_mux_conn_send_region(conns[conn], regions[conn], 0, size, 0), "send");
	else
		mux_send(conn, size);
}

static void taken_serve(const struct share_job *job, char *address)
{
	is_taken = true;
	mux_serve(job, address);
}

static void put_serve(const struct share_job *job, char *address)
{
	is_put = true;
	mux_serve(job, address);
}

static void put_call(const struct share_job *job, const char *address)
{
	is_put = true;
	mux_call(job, address);
}

/* The caller's side; answers are messages. */
static void put_send(int conn, size_t size)
{
	const uint64_t at = rounds[conn]++ % places[conn] * sizes[conn];

	if (size > ANSWER_BYTES)
		check(weir_mux_conn_write(conns[conn], handles[conn], at, regions[conn], at, size),
		      "write");
	mux_send(conn, ANSWER_BYTES);
}

static void take(int conn)
{
	struct weir_mux_conn_part part;

	do {
		check(weir_mux_conn_take(conns[conn], &part, 0), "receive");
		weir_mux_conn_give(conns[conn]);
	} while (part.at + part.length < part.total);
}

static void mux_receive(int conn)
{
	size_t length;

	if (is_taken) {
		take(conn);
		return;
	}
	check(weir_mux_conn_recv(conns[conn], buffers[conn], sizes[conn], &length, 0), "receive");
}

static void mux_count(struct share_tally *tally)
{
	struct weir_mux_info info;

	weir_mux_info(mux, &info, sizeof(info));
	*tally = (struct share_tally){ info.work_requests, info.doorbells, info.sleeps,
				       info.ahead_bytes_max };
}

const struct share_way way_weir = { "weir",   mux_serve,   mux_accept, mux_call,
				    mux_send, mux_receive, mux_count };
const struct share_way way_lent = { "lent",    mux_serve,   mux_accept, lent_call,
				    lent_send, mux_receive, mux_count };
const struct share_way way_taken = { "taken",	taken_serve, mux_accept, lent_call,
				     lent_send, mux_receive, mux_count };
const struct share_way way_put = { "put",    put_serve,	  mux_accept, put_call,
				   put_send, mux_receive, mux_count };
