/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A tenant: identity, policy, and the numbers of its connections. */
#include "apps/share/daemon.h"
#include "fd/passed_fd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5, asm-generic/socket.h */
#endif

/* The rest of the first line of @path that begins with @start, cut at @size. */
static bool read_line(const char *path, const char *start, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0, skip = strlen(start);
	bool found = false;

	while (file && !found && getline(&text, &room, file) >= 0)
		found = !strncmp(text, start, skip);
	if (found)
		snprintf(line, size, "%.*s", (int)strcspn(text + skip, "\n"), text + skip);
	free(text);
	if (file)
		fclose(file);
	return found;
}

/* Whether the connecting process has ended. Before Linux 6.5 this cannot be known: false. */
static bool has_ended(const struct share_tenant *tenant)
{
	struct pollfd process = { .events = POLLIN };
	socklen_t length = sizeof(process.fd);
	bool ended;

	if (getsockopt(tenant->socket, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &length))
		return errno != ENOPROTOOPT;
	ended = poll(&process, 1, 0) == 1;
	close(process.fd);
	return ended;
}

/*
 * Reads the process's name and cgroup ("/" without a unified hierarchy). If the process has
 * ended, the pid may be another's, so the cgroup is discarded.
 */
static void identify_process(struct share_tenant *tenant)
{
	char path[64], ours[sizeof(tenant->cgroup)];
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", tenant->pid);
	if (!read_line(path, "0::", tenant->cgroup, sizeof(tenant->cgroup)) &&
	    !read_line("/proc/self/cgroup", "0::", ours, sizeof(ours)))
		strcpy(tenant->cgroup, "/");
	snprintf(path, sizeof(path), "/proc/%d/comm", tenant->pid);
	if (!read_line(path, "", tenant->name, sizeof(tenant->name)))
		strcpy(tenant->name, "?");
	for (i = 0; tenant->name[i]; i++)
		if (!isprint((unsigned char)tenant->name[i]))
			tenant->name[i] = '?';
	if (has_ended(tenant))
		tenant->cgroup[0] = '\0';
}

unsigned int share_tenant_class(const struct share_tenant *tenant)
{
	const unsigned int last = tenant->share->mux->options.nr_classes - 1;

	return tenant->policy.class_nr < last ? tenant->policy.class_nr : last;
}

void share_tenant_apply_policy(struct share_tenant *tenant)
{
	struct weir_mux_local *mux = tenant->share->mux;
	struct share_policy *policy = &tenant->policy;
	struct weir_mux_account_group *group;

	*policy = share_config_policy(&tenant->share->config, tenant->uid, tenant->cgroup);
	pthread_mutex_lock(&mux->lock);
	group = weir_mux_account_group_get(mux, policy->group_id);
	if (group) {
		group->nr_conns_max = policy->connections;
		group->nr_remotes_max = policy->peers;
		group->bytes_max = policy->memory_bytes;
		group->first_class = (uint8_t)share_tenant_class(tenant);
		weir_mux_account_group_limit(mux, group, policy->weight, policy->rate_bytes_s);
		weir_mux_account_set_group(&tenant->account, group);
	} else {
		policy->is_denied = true; /* no memory */
	}
	pthread_mutex_unlock(&mux->lock);
}

/* Creates the bell and the doorbell page. */
static int board_open(struct share_tenant *tenant)
{
	tenant->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (tenant->wakeup < 0)
		return -errno;
	tenant->doorbells_fd = weir_mux_memfd("weir-board", sizeof(*tenant->doorbells));
	if (tenant->doorbells_fd < 0)
		return -ENOMEM;
	tenant->doorbells = mmap(NULL, sizeof(*tenant->doorbells), PROT_READ | PROT_WRITE,
				 MAP_SHARED, tenant->doorbells_fd, 0);
	if (tenant->doorbells != MAP_FAILED)
		return 0;
	tenant->doorbells = NULL;
	return -ENOMEM;
}

int share_tenant_new(struct share_daemon *share, int socket, struct share_tenant **out)
{
	/*
	 * Connect workers are the whole party's and must not block on a tenant that does not
	 * read.
	 */
	const struct timeval timeout = { .tv_sec = SHARE_ANSWER_S };
	struct share_tenant *tenant = calloc(1, sizeof(*tenant));
	struct ucred who;
	socklen_t length = sizeof(who);
	int rc;

	if (!tenant)
		return -ENOMEM;
	tenant->share = share;
	tenant->socket = socket;
	tenant->wakeup = tenant->doorbells_fd = -1;
	weir_list_init(&tenant->link);
	weir_mux_account_init(&tenant->account, share->mux);
	tenant->account.is_shared = true;
	tenant->account.socket = socket;
	if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
	    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
		rc = -errno;
	} else {
		tenant->pid = who.pid;
		tenant->uid = who.uid;
		identify_process(tenant);
		rc = board_open(tenant);
	}
	if (rc)
		share_tenant_free(tenant);
	else
		*out = tenant;
	return rc;
}

static void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void share_tenant_free(struct share_tenant *tenant)
{
	weir_mux_account_fini(&tenant->account);
	if (tenant->doorbells)
		munmap(tenant->doorbells, sizeof(*tenant->doorbells));
	/* The tenant may keep the bell open, and epoll would keep watching it. */
	epoll_ctl(tenant->share->epoll, EPOLL_CTL_DEL, tenant->wakeup, NULL);
	fd_close(tenant->wakeup);
	fd_close(tenant->doorbells_fd);
	passed_fd_close_socket(tenant->socket);
	free(tenant);
}

int share_tenant_add_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn)
{
	unsigned int i, nr;

	for (i = 0; i < WEIR_MUX_IPC_CONNS_MAX; i++) {
		nr = (tenant->next_conn + i) % WEIR_MUX_IPC_CONNS_MAX;
		if (tenant->conns[nr])
			continue;
		tenant->conns[nr] = conn;
		tenant->next_conn = nr + 1;
		conn->nr = nr;
		return 0;
	}
	return -EDQUOT;
}

void share_tenant_reply(struct share_tenant *tenant, struct weir_mux_ipc_reply *answer,
			const int *fds, unsigned int nr)
{
	unsigned int i;

	/* Without the reply the tenant would wait for ever. */
	if (weir_mux_ipc_send(tenant->socket, answer, sizeof(*answer), fds, nr))
		shutdown(tenant->socket, SHUT_RDWR);
	for (i = 0; i < nr; i++)
		close(fds[i]);
}
