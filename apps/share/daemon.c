/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Start and end of the daemon, and the acceptor, which admits tenants. */
#include "apps/share/daemon.h"

#include "fd/passed_fd.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

/* Whether a process listens there; a stale socket is removed. */
static bool socket_is_taken(const char *path)
{
	struct stat what;
	int fd = weir_mux_ipc_connect(path, NULL);

	if (fd >= 0) {
		passed_fd_close_socket(fd);
		return true;
	}
	if (fd == -ECONNREFUSED && !stat(path, &what) && S_ISSOCK(what.st_mode))
		unlink(path);
	return false;
}

static int socket_open(struct share_daemon *share, const char *path, struct weir_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return weir_error_set(error, -EINVAL, "%s: too long for a socket's name", path);
	if (socket_is_taken(path))
		return weir_error_set(error, -EADDRINUSE, "%s: another weir share listens there",
				      path);
	strcpy(address.sun_path, path);
	share->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	passed_fd_refuse(share->socket);
	mask = umask(0111); /* because chmod() after bind() could reach another file */
	if (bind(share->socket, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(share->socket, BACKLOG))
		rc = -errno;
	umask(mask);
	if (rc)
		return weir_error_set(error, rc,
				      "cannot listen at %s: %s: create the directory and make "
				      "it writable, or choose another path with --socket",
				      path, strerror(-rc));
	share->path = path;
	return 0;
}

/* Admitted tenants of a user. With share->lock held. */
static unsigned int count_tenants_of(const struct share_daemon *share, uid_t uid)
{
	const struct weir_list *at;
	unsigned int count = 0;

	for (at = share->tenants.next; at != &share->tenants; at = at->next) {
		const struct share_tenant *tenant = weir_list_entry(at, struct share_tenant, link);

		count += tenant->uid == uid && !tenant->refused;
	}
	return count;
}

/* Adds the tenant to the list and starts an RPC thread, or fails. */
static int tenant_start(struct share_daemon *share, struct share_tenant *tenant)
{
	struct epoll_event ring = { .events = EPOLLIN | EPOLLET, .data.ptr = tenant };
	unsigned int *count;
	pthread_t clerk;
	int rc = -EAGAIN;

	pthread_mutex_lock(&share->lock);
	tenant->nr = ++share->last_nr;
	tenant->doorbells->asleep = 1; /* the doorbell poller may be asleep */
	share_tenant_apply_policy(tenant);
	tenant->refused = share_tenant_limits_check(!tenant->uid, tenant->policy.is_denied,
						    share->nr_tenants,
						    count_tenants_of(share, tenant->uid));
	count = tenant->refused ? &share->nr_refused : &share->nr_tenants;
	if ((!tenant->refused || *count < SHARE_REFUSED_MAX) && !share->is_stopping)
		rc = weir_thread_create(&clerk, "weir-rpc", share_rpc_run, tenant, NULL);
	if (!rc) {
		pthread_detach(clerk);
		++*count;
		weir_list_add_tail(&share->tenants, &tenant->link);
		epoll_ctl(share->epoll, EPOLL_CTL_ADD, tenant->wakeup, &ring);
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static void admit_tenant(struct share_daemon *share, int socket)
{
	struct share_tenant *tenant;

	if (share_tenant_new(share, socket, &tenant))
		return;
	if (tenant_start(share, tenant))
		share_tenant_free(tenant);
}

static void *acceptor_run(void *arg)
{
	struct share_daemon *share = arg;
	int fd;

	/* share_daemon_close() shuts the socket down. */
	while ((fd = passed_fd_accept(share->socket, SOCK_CLOEXEC)) >= 0 || errno == EINTR ||
	       errno == ECONNABORTED || errno == EMFILE || errno == ENFILE)
		if (fd >= 0)
			admit_tenant(share, fd);
		else
			usleep(10000); /* until a tenant has gone */
	return NULL;
}

static int threads_start(struct share_daemon *share, struct weir_error *error)
{
	struct epoll_event in = { .events = EPOLLIN, .data.ptr = share };
	int rc;

	share->epoll = epoll_create1(EPOLL_CLOEXEC);
	share->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (share->epoll < 0 || share->wake < 0 ||
	    epoll_ctl(share->epoll, EPOLL_CTL_ADD, share->wake, &in))
		return weir_error_set(error, -ENOMEM, "no descriptors: %s", weir_strerror(-errno));
	rc = weir_thread_create(&share->doorbell_poller, "weir-doorbell", share_doorbell_poller_run,
				share, error);
	share->has_doorbell_poller = !rc;
	if (!rc)
		rc = weir_thread_create(&share->acceptor, "weir-accept", acceptor_run, share,
					error);
	share->has_acceptor = !rc;
	return rc;
}

int share_daemon_open(struct share_daemon *share, const char *path, struct weir_error *error)
{
	int rc;

	pthread_mutex_init(&share->lock, NULL);
	pthread_cond_init(&share->changed, NULL);
	weir_list_init(&share->tenants);
	weir_list_init(&share->connect_queues);
	share->socket = share->epoll = share->wake = -1;
	rc = socket_open(share, path, error);
	if (!rc)
		rc = threads_start(share, error);
	if (rc)
		share_daemon_close(share);
	return rc;
}

/* Each RPC thread finds the socket shut down and cleans up. */
static void disconnect_all(struct share_daemon *share)
{
	struct weir_list *at;

	pthread_mutex_lock(&share->lock);
	share->is_stopping = true;
	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		shutdown(weir_list_entry(at, struct share_tenant, link)->socket, SHUT_RDWR);
	pthread_mutex_unlock(&share->lock);
	weir_mux_fd_signal(share->wake);
	weir_mux_local_stop(share->mux);
	pthread_mutex_lock(&share->lock);
	while (share->nr_tenants || share->nr_refused || share->nr_workers)
		pthread_cond_wait(&share->changed, &share->lock);
	pthread_mutex_unlock(&share->lock);
}

void share_daemon_close(struct share_daemon *share)
{
	if (share->path)
		unlink(share->path);
	if (share->has_acceptor) {
		shutdown(share->socket, SHUT_RDWR);
		pthread_join(share->acceptor, NULL);
	}
	disconnect_all(share);
	if (share->has_doorbell_poller)
		pthread_join(share->doorbell_poller, NULL);
	if (share->socket >= 0)
		passed_fd_close_socket(share->socket);
	if (share->epoll >= 0)
		close(share->epoll);
	if (share->wake >= 0)
		close(share->wake);
	weir_mux_local_close(share->mux);
	share_config_fini(&share->config);
	share_connect_queues_free(share);
	pthread_cond_destroy(&share->changed);
	pthread_mutex_destroy(&share->lock);
}

void share_daemon_reload(struct share_daemon *share, struct share_config *config)
{
	struct weir_list *at;

	pthread_mutex_lock(&share->lock);
	share_config_fini(&share->config);
	share->config = *config;
	weir_mux_local_set_idle(share->mux, config->idle_ns);
	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		share_tenant_apply_policy(weir_list_entry(at, struct share_tenant, link));
	pthread_mutex_unlock(&share->lock);
}
