/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir pool rebalance: begins a few moves at a time, and waits. A move that has begun is in the
 * map, and ends without this command. So the command can stop at any time, and the next one goes
 * on from the map.
 */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/stop.h"
#include "apps/pool/pool.h"
#include "core/pool/balance.h"
#include "lib/pool/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOVES_MAX 64u
#define WAIT_MS 500u

struct rebalance_options {
	unsigned int moves;
	bool json;
};

/* @begun: moves that this command has begun; @left: that it has still to begin */
struct rebalance {
	const char *cmd;
	struct rebalance_options o;
	struct pool_session session;
	struct weir_pool_map *plan;
	unsigned int begun, left;
};

static const struct cmdline_option options[] = {
	{ "moves", 0, "N", "places that move at the same time; default 2",
	  CMDLINE_UINT(struct rebalance_options, moves, 1, MOVES_MAX) },
	CMDLINE_JSON(struct rebalance_options, json),
	{ NULL },
};

static const struct cmdline line = {
	.usage = "Usage: weir pool rebalance [OPTION...] POOL\n"
		 "Moves places to donors that have few for their memory, such as new ones. A\n"
		 "donor serves a place until the next one has the data. Ctrl-C begins no further\n"
		 "moves; those under way end without this command.\n",
	.options = options,
	.arguments = "POOL",
	.arguments_min = 1,
	.arguments_max = 1,
};

/* Plays the moves on a copy of the map. */
static unsigned int count_left(struct rebalance *r)
{
	struct weir_pool_op op;
	unsigned int left = 0;

	*r->plan = *r->session.map;
	while (weir_pool_balance_next(r->plan, &op)) {
		weir_pool_coordinator_did(r->plan, &op, op.expected);
		left++;
	}
	return left;
}

/* Return: 0; -EAGAIN the group has changed; or another errno. */
static int put_move(struct rebalance *r, const struct weir_pool_op *op, struct weir_error *error)
{
	struct weir_pool_map *map = r->session.map;
	char key[32], *value = weir_pool_codec_group(map, &op->group);
	struct weir_pool_put put = { .key = key, .value = value, .expected = op->expected };
	uint64_t stored;
	int rc;

	if (!value)
		return -ENOMEM;
	snprintf(key, sizeof(key), "group/%u", op->index);
	rc = weir_pool_store_put(weir_pool_client_store(r->session.client), &put, &stored, error);
	free(value);
	if (!rc)
		weir_pool_coordinator_did(map, op, stored);
	return rc;
}

static int begin_moves(struct rebalance *r)
{
	struct weir_error error = { "out of memory" };
	struct weir_pool_op op;
	int rc = 0;

	while (!rc && !stop_requested() &&
	       weir_pool_balance_moving(r->session.map) < r->o.moves &&
	       weir_pool_balance_next(r->session.map, &op)) {
		rc = put_move(r, &op, &error);
		r->begun += !rc;
	}
	return rc && rc != -EAGAIN ? failure(r->cmd, "%s", error.text) : EXIT_OK;
}

static void show_progress(const struct rebalance *r)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%u places begun, %u on their way, %u to go   ", r->begun,
			weir_pool_balance_moving(r->session.map), r->left);
}

static void say_end(struct rebalance *r)
{
	unsigned int moving = weir_pool_balance_moving(r->session.map);
	struct json json;

	if (isatty(STDERR_FILENO))
		fputc('\n', stderr);
	if (r->o.json) {
		json_begin(&json, stdout);
		json_uint(&json, "moved", r->begun - (r->begun < moving ? r->begun : moving));
		json_uint(&json, "moving", moving);
		json_uint(&json, "left", r->left);
		json_end(&json);
	} else if (stop_requested() && (moving || r->left)) {
		printf("stopped: %u places are on their way, and end by themselves; %u are left "
		       "for another rebalance\n",
		       moving, r->left);
	} else {
		printf("%u places moved\n", r->begun);
	}
}

static int rebalance(struct rebalance *r)
{
	int status = EXIT_OK;
	bool is_done = false;

	while (!status && !is_done) {
		status = begin_moves(r);
		r->left = count_left(r);
		show_progress(r);
		is_done = stop_requested() ||
			  (!r->left && !weir_pool_balance_moving(r->session.map));
		if (!status && !is_done)
			status = pool_session_look_again(&r->session, r->cmd, WAIT_MS);
	}
	if (!status)
		say_end(r);
	return status;
}

int pool_rebalance(const char *cmd, int argc, char **argv)
{
	struct rebalance r = { .cmd = cmd, .o.moves = 2 };
	int status = cmdline_parse(&line, argc, argv, &r.o);

	if (status != CMDLINE_PARSED)
		return status;
	r.plan = calloc(1, sizeof(*r.plan));
	if (!r.plan)
		return failure(cmd, "out of memory");
	stop_on_signals();
	status = pool_session_open(&r.session, cmd, argv[optind]);
	if (!status) {
		status = rebalance(&r);
		pool_session_close(&r.session);
	}
	free(r.plan);
	return status;
}
