/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attacks on all of softnic's local sockets in this network namespace, whoever owns them: those of
 * engines, and those of listeners of the connection manager.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "softnic/cm/msg.h"
#include "softnic/shm/shared.h"
#include "tests/hostile/attacker.h"
#include "tests/support/slow_socket.h"

enum { NAMES = 256, HELD = 400, WORDS = 8 };

struct softnic_socket {
	struct sockaddr_un addr;
	socklen_t length;
	int type;
};

/* A line of /proc/net/unix: number, references, protocol, flags, type, state, inode, name. */
static bool parse_line(const char *line, struct softnic_socket *to)
{
	const char *name = strstr(line, " @weir-softnic");
	unsigned int type;

	if (!name || sscanf(line, "%*s %*s %*s %*s %x", &type) != 1)
		return false;
	name += 2;
	to->addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	to->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strcspn(name, "\n"));
	to->type = (int)type;
	memcpy(to->addr.sun_path + 1, name, strcspn(name, "\n"));
	return true;
}

/* Any of the sockets. Return: whether there is one. */
static bool choose_socket(struct attacker *a, struct softnic_socket *to)
{
	static struct softnic_socket found[NAMES];
	FILE *list = fopen("/proc/net/unix", "re");
	char line[256];
	unsigned int nr = 0;

	if (!list)
		return false;
	while (nr < NAMES && fgets(line, sizeof(line), list))
		nr += parse_line(line, &found[nr]);
	fclose(list);
	if (nr)
		*to = found[attacker_dice(a, nr)];
	return nr;
}

/* Return: the descriptor, or -1. */
static int call_any(struct attacker *a)
{
	struct softnic_socket to;
	int fd;

	if (!choose_socket(a, &to))
		return -1;
	fd = socket(AF_UNIX, to.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to.addr, to.length)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void call_and_stay(struct attacker *a)
{
	static int held[HELD];
	int *fd = &held[attacker_dice(a, HELD)];

	if (*fd > 0)
		close(*fd);
	*fd = call_any(a);
}

static void babble(struct attacker *a)
{
	uint8_t noise[512];
	int fd = call_any(a), i;

	for (i = 0; fd >= 0 && i < WORDS; i++) {
		attacker_noise(a, noise, sizeof(noise));
		(void)!send(fd, noise, attacker_dice(a, sizeof(noise)), MSG_NOSIGNAL);
	}
	if (fd >= 0)
		close(fd);
}

/* An engine ends the call, and tells its user. */
static void lie_about_version(struct attacker *a)
{
	struct shm_msg m = { .magic = SHARED_MAGIC, .type = MSG_HELLO };
	int fd, i;

	for (i = 0; i < WORDS; i++) {
		fd = call_any(a);
		m.version = SHARED_VERSION + 1 + attacker_dice(a, 64);
		if (fd < 0)
			continue;
		(void)!send(fd, &m, sizeof(m), MSG_NOSIGNAL);
		close(fd);
	}
}

/* Messages between engines, all but those of the faults, which a process of the user may set. */
static void lie_to_engine(struct attacker *a)
{
	int fd = call_any(a), i;
	uint8_t bytes[64] = { 0 };
	struct shm_msg m;

	lie_about_version(a);
	for (i = 0; fd >= 0 && i < WORDS; i++) {
		attacker_noise(a, &m, sizeof(m));
		m.type = attacker_dice(a, MSG_GATE_DONE + 2);
		m.qpn = m.qpn % 64 | attacker_dice(a, 64) << SOFTNIC_QP_INDEX_BITS;
		m.from = m.from % 64 | attacker_dice(a, 64) << SOFTNIC_QP_INDEX_BITS;
		m.value %= sizeof(bytes);
		if (m.type == MSG_SET_FAULT)
			m.qpn = UINT32_MAX;
		if (m.type == MSG_GATE_SEND)
			shm_msg_send_bytes(fd, &m, bytes);
		else
			shm_msg_send(fd, &m, NULL, 0);
	}
	if (fd >= 0)
		close(fd);
}

/* Messages of the connection manager. */
static void lie_to_listener(struct attacker *a)
{
	uint8_t buf[CM_MSG_BYTES_MAX] = { 0 };
	struct cm_msg m;
	int fd = call_any(a), i;

	for (i = 0; fd >= 0 && i < WORDS; i++) {
		m = (struct cm_msg){
			.type = CM_MSG_REQ + attacker_dice(a, CM_MSG_SIDR_REP),
			.qp_num = attacker_dice(a, 1 << 24),
			.src.sa.sa_family = AF_INET,
			.dst.sa.sa_family = AF_INET,
		};
		(void)!send(fd, buf, cm_msg_encode(&m, buf), MSG_NOSIGNAL);
	}
	if (fd >= 0)
		close(fd);
}

static void pass_slow_descriptors(struct attacker *a)
{
	int fd = call_any(a);

	if (fd < 0)
		return;
	slow_socket_send(fd);
	close(fd);
}

const struct attack socket_attacks[] = {
	{ "stay", call_and_stay },	     { "babble", babble },
	{ "engine", lie_to_engine },	     { "listener", lie_to_listener },
	{ "slow", pass_slow_descriptors }, { 0 },
};
