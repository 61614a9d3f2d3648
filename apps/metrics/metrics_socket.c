/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/metrics_socket.h"

#include "apps/common/cmd.h"
#include "lib/conn/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16
static const char unix_prefix[] = "unix:";

bool metrics_socket_is_unix(const char *address)
{
	return !strncmp(address, unix_prefix, strlen(unix_prefix));
}

/* Whether nobody listens at the path any more. */
static bool is_stale(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) &&
		       errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused;
}

static void name_unix(const char *path, char name[METRICS_NAME_MAX])
{
	char folder[PATH_MAX] = "";

	if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
		folder[0] = '\0';
	snprintf(name, METRICS_NAME_MAX, "%s%s%s%s", unix_prefix, folder, folder[0] ? "/" : "",
		 path);
}

static int listen_unix(const char *cmd, const char *path, int *fd)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc;

	if (!*path || strlen(path) >= sizeof(at.sun_path))
		return usage_error(cmd, "%s%s: a path of 1 to %zu bytes is wanted", unix_prefix,
				   path, sizeof(at.sun_path) - 1);
	strcpy(at.sun_path, path);
	if (is_stale(&at))
		unlink(path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return failure(cmd, "socket: %s", strerror(errno));
	mask = umask(0117); /* user and group */
	rc = bind(*fd, (struct sockaddr *)&at, sizeof(at)) ? errno : 0;
	umask(mask);
	if (rc || listen(*fd, BACKLOG)) {
		rc = rc ? rc : errno;
		close(*fd);
		return failure(cmd, "cannot serve metrics at %s: %s", path, strerror(rc));
	}
	return EXIT_OK;
}

static int listen_inet(const char *cmd, const struct sockaddr *at, socklen_t length, int *fd,
		       char name[METRICS_NAME_MAX])
{
	struct sockaddr_storage bound;
	socklen_t bound_length = sizeof(bound);
	char text[WEIR_ADDRESS_MAX];
	const int yes = 1;
	int rc;

	weir_address_format(at, text);
	*fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return failure(cmd, "socket: %s", strerror(errno));
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(*fd, at, length) || listen(*fd, BACKLOG) ||
	    getsockname(*fd, (struct sockaddr *)&bound, &bound_length)) {
		rc = errno;
		close(*fd);
		return failure(cmd, "cannot serve metrics at %s: %s", text, strerror(rc));
	}
	weir_address_format((struct sockaddr *)&bound, text);
	snprintf(name, METRICS_NAME_MAX, "%s", text);
	return EXIT_OK;
}

/* Return: whether a port is given, alone or after an address; *@alone says which. */
static bool has_port(const char *address, bool *alone)
{
	const char *port = strrchr(address, ':');

	*alone = !port;
	if (port && address[0] != '[' && strchr(address, ':') != port)
		return false; /* an IPv6 address without brackets */
	port = port ? port + 1 : address;
	return *port && strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port);
}

static int open_inet(const char *cmd, const char *address, bool has_tls, int *fd,
		     char name[METRICS_NAME_MAX])
{
	struct weir_error error;
	struct addrinfo *list;
	char full[128];
	bool alone;
	int status;

	if (!has_port(address, &alone) || strlen(address) >= sizeof(full) - 1)
		return usage_error(cmd, "metrics at %s: expected [ADDR:]PORT or unix:PATH",
				   address);
	snprintf(full, sizeof(full), "%s%.*s", alone ? ":" : "", (int)sizeof(full) - 2, address);
	if (weir_address_resolve(full, "127.0.0.1", &list, &error))
		return failure(cmd, "%s", error.text);
	if (!has_tls && !weir_address_is_loopback(list->ai_addr))
		status = failure(cmd,
				 "metrics at %s: beyond loopback they need a certificate: see "
				 "--help about TLS, or use unix:PATH",
				 address);
	else
		status = listen_inet(cmd, list->ai_addr, list->ai_addrlen, fd, name);
	freeaddrinfo(list);
	return status;
}

int metrics_socket_open(const char *cmd, const char *address, bool has_tls, int *fd,
			char name[METRICS_NAME_MAX])
{
	if (!metrics_socket_is_unix(address))
		return open_inet(cmd, address, has_tls, fd, name);
	name_unix(address + strlen(unix_prefix), name);
	return listen_unix(cmd, address + strlen(unix_prefix), fd);
}

void metrics_socket_remove(const char *name)
{
	if (metrics_socket_is_unix(name))
		unlink(name + strlen(unix_prefix));
}
