/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/http/http_socket.h"

#include "apps/common/cmd.h"
#include "fd/passed_fd.h"
#include "lib/base/error.h"
#include "lib/conn/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define ADDRESS_MAX 128
static const char unix_prefix[] = "unix:";

bool http_socket_is_unix(const char *address)
{
	return !strncmp(address, unix_prefix, strlen(unix_prefix));
}

/* Whether a socket can have this name. */
static bool is_path(const char *path)
{
	return *path && strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

/* Whether nobody listens at the path any more. A listener that accepts nobody holds up nobody. */
static bool is_stale(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) &&
		       errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused;
}

static void name_unix(const char *path, char name[HTTP_NAME_MAX])
{
	char folder[PATH_MAX] = "";

	if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
		folder[0] = '\0';
	snprintf(name, HTTP_NAME_MAX, "%s%s%s%s", unix_prefix, folder, folder[0] ? "/" : "",
		 path);
}

static int listen_unix(const char *cmd, const char *what, const char *path, int *fd)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc;

	if (!is_path(path))
		return usage_error(cmd, "%s%s: a path of 1 to %zu bytes is wanted", unix_prefix,
				   path, sizeof(at.sun_path) - 1);
	strcpy(at.sun_path, path);
	if (is_stale(&at))
		unlink(path);
	*fd = passed_fd_socket(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (*fd < 0)
		return failure(cmd, "socket: %s", strerror(errno));
	mask = umask(0117); /* user and group */
	rc = bind(*fd, (struct sockaddr *)&at, sizeof(at)) ? errno : 0;
	umask(mask);
	if (rc || listen(*fd, BACKLOG)) {
		rc = rc ? rc : errno;
		close(*fd);
		return failure(cmd, "cannot serve %s at %s: %s", what, path, strerror(rc));
	}
	return EXIT_OK;
}

static int listen_inet(const char *cmd, const char *what, const struct sockaddr *at,
		       socklen_t length, int *fd, char name[HTTP_NAME_MAX])
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
		return failure(cmd, "cannot serve %s at %s: %s", what, text, strerror(rc));
	}
	weir_address_format((struct sockaddr *)&bound, text);
	snprintf(name, HTTP_NAME_MAX, "%s", text);
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

/* Turns a port alone into ":PORT". Return: whether @address is well-formed, and without a path. */
static bool complete(const char *address, char full[ADDRESS_MAX])
{
	bool alone;

	if (!has_port(address, &alone) || strlen(address) >= ADDRESS_MAX - 1)
		return false;
	snprintf(full, ADDRESS_MAX, "%s%.*s", alone ? ":" : "", ADDRESS_MAX - 2, address);
	return weir_address_is_well_formed(full);
}

bool http_socket_is_well_formed(const char *address)
{
	char full[ADDRESS_MAX];

	return http_socket_is_unix(address) ? is_path(address + strlen(unix_prefix)) :
					      complete(address, full);
}

/* On success the caller owes a freeaddrinfo(). */
static int resolve(const char *address, bool has_tls, struct addrinfo **list,
		   struct weir_error *error)
{
	char full[ADDRESS_MAX];
	int rc;

	if (!complete(address, full))
		return weir_error_set(error, -EINVAL, "%s: expected " HTTP_SOCKET_EXPECTED,
				      address);
	rc = weir_address_resolve(full, "127.0.0.1", list, error);
	if (rc || has_tls || weir_address_is_loopback((*list)->ai_addr))
		return rc;
	freeaddrinfo(*list);
	return weir_error_set(error, -EACCES,
			      "%s: beyond loopback a certificate is required: see --help about "
			      "TLS, or use unix:PATH",
			      address);
}

int http_socket_check(const char *address, bool has_tls, struct weir_error *error)
{
	struct addrinfo *list;
	int rc = 0;

	if (!http_socket_is_unix(address)) {
		rc = resolve(address, has_tls, &list, error);
		if (!rc)
			freeaddrinfo(list);
	}
	return rc;
}

/* Return: the port, or 0: any free one. */
static in_port_t port_of(const struct sockaddr *at)
{
	return at->sa_family == AF_INET ?
		       ((const struct sockaddr_in *)(const void *)at)->sin_port :
		       ((const struct sockaddr_in6 *)(const void *)at)->sin6_port;
}

static bool is_wildcard(const struct sockaddr *at)
{
	const struct sockaddr_in6 *v6 = (const void *)at;

	return at->sa_family == AF_INET ?
		       ((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr == 0 :
		       IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

static bool collide(const struct addrinfo *one, const struct addrinfo *other)
{
	if (!port_of(one->ai_addr) || port_of(one->ai_addr) != port_of(other->ai_addr))
		return false;
	if (one->ai_family != other->ai_family)
		return is_wildcard(one->ai_addr) && is_wildcard(other->ai_addr);
	return is_wildcard(one->ai_addr) || is_wildcard(other->ai_addr) ||
	       !memcmp(one->ai_addr, other->ai_addr, one->ai_addrlen);
}

bool http_socket_is_same(const char *one, const char *other)
{
	struct addrinfo *first, *second;
	bool same = false;

	if (http_socket_is_unix(one) || http_socket_is_unix(other))
		return !strcmp(one, other);
	if (resolve(one, true, &first, NULL))
		return false;
	if (!resolve(other, true, &second, NULL)) {
		same = collide(first, second);
		freeaddrinfo(second);
	}
	freeaddrinfo(first);
	return same;
}

static int open_inet(const char *cmd, const char *what, const char *address, bool has_tls, int *fd,
		     char name[HTTP_NAME_MAX])
{
	struct weir_error error;
	struct addrinfo *list;
	int status, rc = resolve(address, has_tls, &list, &error);

	if (rc == -EINVAL)
		return usage_error(cmd, "%s at %s", what, error.text);
	if (rc)
		return failure(cmd, "%s at %s", what, error.text);
	status = listen_inet(cmd, what, list->ai_addr, list->ai_addrlen, fd, name);
	freeaddrinfo(list);
	return status;
}

int http_socket_open(const char *cmd, const char *what, const char *address, bool has_tls, int *fd,
		     char name[HTTP_NAME_MAX])
{
	if (!http_socket_is_unix(address))
		return open_inet(cmd, what, address, has_tls, fd, name);
	name_unix(address + strlen(unix_prefix), name);
	return listen_unix(cmd, what, address + strlen(unix_prefix), fd);
}

void http_socket_remove(const char *name)
{
	if (http_socket_is_unix(name))
		unlink(name + strlen(unix_prefix));
}
