// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The kernel runs a socket's filter before it queues a message, and keeps as many bytes as the
 * filter returns. The filter also marks the socket: a table of sockets could be full, or name a
 * closed socket. Only holders of the socket can read the filter.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "channel.h"

enum { HEAD = 4, STEPS = HEAD + 2 * CHANNEL_WORDS + 3 };

static struct {
	pthread_mutex_t lock; /* while the secret is made */
	bool is_made; /* the rest is constant once this is set */
	uint32_t secret[CHANNEL_WORDS];
	struct sock_filter filter[STEPS];
} channel = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A is the number of bytes to keep, and X is a copy while A compares words. */
static void make_filter(void)
{
	enum { SECRET_BYTES = sizeof(channel.secret), DROP = STEPS - 1 };
	const struct sock_filter head[HEAD] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SECRET_BYTES, 0, DROP - 2),
		BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, SECRET_BYTES),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
	};
	const struct sock_filter tail[] = {
		BPF_STMT(BPF_MISC | BPF_TXA, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter *at = channel.filter + HEAD;
	uint32_t i;

	memcpy(channel.filter, head, sizeof(head));
	for (i = 0; i < CHANNEL_WORDS; i++) {
		*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_IND,
						     i * (uint32_t)sizeof(uint32_t));
		*at = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, ntohl(channel.secret[i]), 0,
			(uint8_t)(channel.filter + DROP - (at + 1)));
		at++;
	}
	memcpy(at, tail, sizeof(tail));
}

static int make_secret(void)
{
	int rc = 0;

	pthread_mutex_lock(&channel.lock);
	if (!channel.is_made) {
		if (getrandom(channel.secret, sizeof(channel.secret), 0) ==
		    sizeof(channel.secret)) {
			make_filter();
			__atomic_store_n(&channel.is_made, true, __ATOMIC_RELEASE);
		} else {
			rc = -EAGAIN;
		}
	}
	pthread_mutex_unlock(&channel.lock);
	return rc;
}

int channel_protect(int fd)
{
	const struct sock_fprog program = { .len = STEPS, .filter = channel.filter };
	const int yes = 1;
	int rc = make_secret();

	if (rc)
		return rc;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)))
		return -errno;
	return 0;
}

/* The first test is all that other programs pay. */
bool channel_is_protected(int fd)
{
	struct sock_filter filter[STEPS];
	socklen_t steps = STEPS;
	int error = errno, rc;

	if (!__atomic_load_n(&channel.is_made, __ATOMIC_ACQUIRE))
		return false;
	rc = getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, filter, &steps);
	errno = error;
	return !rc && steps == STEPS && !memcmp(filter, channel.filter, sizeof(filter));
}

const uint32_t *channel_secret(void)
{
	return channel.secret;
}
