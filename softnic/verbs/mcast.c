// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A name is "weir-softnic-UID-group-GID-QPN". Attaching binds the name first, then counts the
 * members. Of two concurrent attachments at least one sees the other, so the limit holds.
 *
 * The kernel returns its list in pieces. If a socket appears or disappears between two pieces, the
 * list may repeat or miss another socket. So we read the list until one reading adds nobody: two
 * readings in a row rarely miss the same socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "ah.h"
#include "softnic/control/fault.h"
#include "mcast.h"
#include "nic.h"
#include "softnic/qp/qp.h"

struct mcast_attachment {
	union ibv_gid gid;
	int fd;
	struct mcast_attachment *next;
};

static uint32_t attachments; /* count of this process; nic.lock */

enum { NAME_CHARS_MAX = 96 };

/* Writes the common prefix of the names of a group's attachments. Returns its length. */
static int write_prefix(char name[NAME_CHARS_MAX], const union ibv_gid *gid)
{
	int n = sprintf(name, "weir-softnic-%u-group-", (unsigned int)geteuid());
	size_t i;

	for (i = 0; i < sizeof(*gid); i++)
		n += sprintf(name + n, "%02x", gid->raw[i]);
	return n + sprintf(name + n, "-");
}

static bool contains_qpn(const uint32_t *qpns, uint32_t num, uint32_t qpn)
{
	while (num)
		if (qpns[--num] == qpn)
			return true;
	return false;
}

/* Adds members to the @n in @qpns, up to @room. Returns the new number, or -errno. */
static int add_members(const union ibv_gid *gid, uint32_t *qpns, int n, int room)
{
	char line[256], prefix[1 + NAME_CHARS_MAX] = "@";
	int length = 1 + write_prefix(prefix + 1, gid);
	FILE *names = fopen("/proc/net/unix", "re");
	const char *name;
	uint32_t qpn;

	if (!names)
		return -errno;
	while (n < room && fgets(line, sizeof(line), names)) {
		name = strstr(line, prefix);
		qpn = name ? strtoul(name + length, NULL, 10) : 0;
		if (qpn && !contains_qpn(qpns, n, qpn))
			qpns[n++] = qpn;
	}
	fclose(names);
	return n;
}

/* Returns up to @room members, or -errno if the list cannot be read. */
static int members(const union ibv_gid *gid, uint32_t *qpns, int room)
{
	int n = add_members(gid, qpns, 0, room), before;

	do {
		before = n;
		if (n >= 0)
			n = add_members(gid, qpns, n, room);
	} while (n > before);
	return n;
}

uint32_t mcast_members(const union ibv_gid *gid, uint32_t qpns[MCAST_QPS_MAX])
{
	int n = members(gid, qpns, MCAST_QPS_MAX);

	return n > 0 ? n : 0;
}

/* Called after binding, so the count includes the new attachment. 0 or -errno. */
static int check_limit(const union ibv_gid *gid)
{
	uint32_t qpns[MCAST_QPS_MAX + 1];
	int n = members(gid, qpns, MCAST_QPS_MAX + 1);

	return n > MCAST_QPS_MAX ? -ENOMEM : n < 0 ? n : 0;
}

static int bind_name(const union ibv_gid *gid, uint32_t qpn)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char *name = addr.sun_path + 1;
	int fd, rc, n = write_prefix(name, gid);

	n += sprintf(name + n, "%u", qpn);
	fd = passed_fd_socket(SOCK_DGRAM | SOCK_CLOEXEC);
	if (fd < 0)
		return -errno;
	n += offsetof(struct sockaddr_un, sun_path) + 1;
	if (!bind(fd, (struct sockaddr *)&addr, n))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static struct mcast_attachment **find_attachment(struct qp *qp, const union ibv_gid *gid)
{
	struct mcast_attachment **at = &qp->groups;

	while (*at && memcmp(&(*at)->gid, gid, sizeof(*gid)))
		at = &(*at)->next;
	return at;
}

static void detach_qp(struct mcast_attachment **at)
{
	struct mcast_attachment *a = *at;

	*at = a->next;
	attachments--;
	passed_fd_close_socket(a->fd);
	free(a);
}

/* Returns 0 or -errno. */
static int attach_qp(struct qp *qp, const union ibv_gid *gid)
{
	struct mcast_attachment *a;
	int rc;

	if (*find_attachment(qp, gid))
		return 0;
	a = attachments < MCAST_ATTACHMENTS_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return -ENOMEM;
	a->gid = *gid;
	a->fd = bind_name(gid, qp->ibv.qp_num);
	if (a->fd < 0) {
		rc = a->fd;
		free(a);
		return rc;
	}
	a->next = qp->groups;
	qp->groups = a;
	attachments++;
	rc = check_limit(gid);
	if (rc)
		detach_qp(&qp->groups);
	return rc;
}

/* Ethernet has no LIDs, so @lid is ignored. */
int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct qp *qp = to_qp(ibv);
	int rc;

	(void)lid;
	if (fault_is_gone())
		return EIO;
	if (!qp_is_datagram(qp) || !ah_is_multicast(gid))
		return EINVAL;
	pthread_mutex_lock(&nic.lock);
	rc = attach_qp(qp, gid);
	pthread_mutex_unlock(&nic.lock);
	return -rc;
}

int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct mcast_attachment **at;
	int rc = EINVAL;

	(void)lid;
	pthread_mutex_lock(&nic.lock);
	at = find_attachment(to_qp(ibv), gid);
	if (*at) {
		detach_qp(at);
		rc = 0;
	}
	pthread_mutex_unlock(&nic.lock);
	return rc;
}

void mcast_reset(void)
{
	uint32_t i;

	for (i = 0; i < NIC_QPS; i++)
		while (nic.qps[i] && nic.qps[i]->groups)
			detach_qp(&nic.qps[i]->groups);
}
