/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor for the tests: donor LISTEN MEMORY [key=FILE]... [quota=BYTES] [clients=N]
 *
 * Prints its address, and ends on SIGTERM. If the port is taken, it exits with EADDRINUSE. The
 * first byte of a message selects the action:
 * 	e	answers with the same bytes
 * 	l	answers later, after 50 ms
 * 	n	does not answer while the client is there
 * 	p	sends the same bytes back, unsolicited
 * 	f	sends 200 messages "f", and answers
 * 	s	remembers the sender, and answers; S sends "s" to that client, and answers
 * 	t	answers with the token of a region of its own, which begins with "donor's own"
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <weir/weir.h>

#define KEYS_MAX 4
#define LATER_MS 50
#define FLOOD 200

static struct weir_donor *donor;
static struct weir_region_token own;

/* The deferred calls, in order; all answered at once. */
static struct weir_call *later[64];
static int nr_later;

static void answer_later(void *arg)
{
	(void)arg;
	while (nr_later)
		weir_reply(later[--nr_later], "later", 5);
}

/* The calls answered too late. */
static struct weir_call *unanswered[64];
static int nr_unanswered;

static void on_leave(void *arg, struct weir_peer *peer)
{
	(void)arg;
	(void)peer;
	while (nr_unanswered)
		weir_reply(unanswered[--nr_unanswered], NULL, 0);
}

static void put_off(struct weir_call *call)
{
	later[nr_later++] = call;
	weir_donor_after(donor, LATER_MS, answer_later, NULL);
}

struct flood_call {
	struct weir_peer *peer;
	struct weir_call *call;
	int left;
};

/* A client may read slowly: messages without room are sent later. */
static void flood_on(void *arg)
{
	struct flood_call *flood = arg;

	while (flood->left && !weir_peer_send(flood->peer, "f", 1))
		flood->left--;
	if (flood->left) {
		weir_donor_after(donor, 1, flood_on, flood);
		return;
	}
	weir_reply(flood->call, "done", 4);
	free(flood);
}

static void flood_begin(struct weir_peer *peer, struct weir_call *call)
{
	struct flood_call *flood = malloc(sizeof(*flood));

	*flood = (struct flood_call){ peer, call, FLOOD };
	flood_on(flood);
}

static struct weir_peer *noted;

static void answer_token(struct weir_peer *peer, struct weir_call *call)
{
	void *addr;

	if (!own.length &&
	    !weir_donor_region_create(donor, weir_peer_tenant(peer), 4096, &own, &addr))
		memcpy(addr, "donor's own", 11);
	weir_reply(call, &own, sizeof(own));
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	const char *text = data;

	(void)arg;
	switch (length ? text[0] : 0) {
	case 'e':
		weir_reply(call, data, length);
		break;
	case 'l':
		put_off(call);
		break;
	case 'n':
		unanswered[nr_unanswered++] = call;
		break;
	case 'p':
		if (weir_peer_send(peer, data, length))
			fputs("an echo was refused\n", stderr);
		break;
	case 'f':
		flood_begin(peer, call);
		break;
	case 's':
		noted = peer;
		weir_reply(call, NULL, 0);
		break;
	case 'S':
		if (!weir_peer_send(noted, "s", 1))
			weir_reply(call, "sent", 4);
		break;
	case 't':
		answer_token(peer, call);
		break;
	}
}

static int key_add(struct weir_donor_options *options, const struct weir_key **keys,
		   const char *path)
{
	struct weir_key *key;
	struct weir_error error;

	if (weir_key_load(path, &key, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return -1;
	}
	keys[options->nr_keys++] = key;
	return 0;
}

static int parse(int argc, char **argv, struct weir_donor_options *options,
		 const struct weir_key **keys)
{
	int i;

	options->listen = argv[1];
	options->memory_bytes = strtoull(argv[2], NULL, 0);
	for (i = 3; i < argc; i++) {
		if (!strncmp(argv[i], "key=", 4) && key_add(options, keys, argv[i] + 4))
			return -1;
		if (!strncmp(argv[i], "quota=", 6))
			options->quota_bytes = strtoull(argv[i] + 6, NULL, 0);
		if (!strncmp(argv[i], "clients=", 8))
			options->clients_max = (unsigned int)atoi(argv[i] + 8);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct weir_key *keys[KEYS_MAX];
	struct weir_donor_options options = { .size = sizeof(options),
					      .keys = keys,
					      .on_message = on_message,
					      .on_leave = on_leave };
	struct weir_donor_info info;
	struct weir_error error;
	sigset_t signals;
	unsigned int i;
	int signal, rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails never stops the donor */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (argc < 3 || parse(argc, argv, &options, keys))
		return 2;
	rc = weir_donor_open(&options, &donor, &error);
	if (rc) {
		fprintf(stderr, "%s\n", error.text);
		return rc == -EADDRINUSE ? EADDRINUSE : 1;
	}
	weir_donor_info(donor, &info, sizeof(info));
	puts(info.address);
	fflush(stdout);
	sigwait(&signals, &signal);
	weir_donor_close(donor);
	for (i = 0; i < options.nr_keys; i++)
		weir_key_free((struct weir_key *)keys[i]);
	return 0;
}
