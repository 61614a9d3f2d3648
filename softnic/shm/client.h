/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guests: processes that use queue pairs of ours, and what they ask for and are given.
 */
#ifndef WEIR_SOFTNIC_SHM_CLIENT_H
#define WEIR_SOFTNIC_SHM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ask;
struct bell;
struct message;
struct qp;

struct guest {
	int fd;
	pid_t pid;
	uint32_t slot;		/* 0: it has said no other, or a wrong one */
	bool is_let_in;		/* it has a queue pair of ours, or had, and our memory */
	struct bell *bell;	/* NULL: it has no slot */
	struct ask *asks;
	uint32_t num_asks;
	struct guest *next;
};

/**
 * guest_ask() - it asks for a queue pair of ours: answer, or remember the question
 *
 * Only the queue pair that ours is connected to gets in; to a datagram one, anybody.
 *
 * Context: nic.lock held.
 */
void guest_ask(struct guest *g, const struct message *m);

/** guest_ready() - @qp may be had now: answer @g if it asked too early. nic.lock held. */
void guest_ready(struct guest *g, struct qp *qp);

/** guest_forget_asks() - it has ended, and is in no list any more */
void guest_forget_asks(struct guest *g);

/**
 * guest_descriptors() - what whoever uses a queue pair must map
 * @fds: room for MESSAGE_FDS_MAX; they stay the queue pair's
 * @has: set to HAS_SRQ if that is one of them
 *
 * Context: nic.lock held.
 * Return: how many.
 */
int guest_descriptors(const struct qp *qp, int *fds, uint32_t *has);

#endif
