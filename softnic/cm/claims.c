// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reads claims from the kernel's list of Unix sockets. Only an id that binds a given port, and a
 * listener, need the list. An active id takes the port by a name that excludes all others.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"

#define NAME_FORMAT "weir-softnic-cm-%u-%s-"

int cm_claim_name(char *name, size_t size, const char *space, const struct cm_claim *claim)
{
	int len = snprintf(name, size, NAME_FORMAT "%s-%u", geteuid(), space, claim->addr,
			   claim->port);

	if (claim->token)
		len += snprintf(name + len, size - len, "-r%08x", claim->token);
	return len;
}

int cm_claim_parse(struct cm_claim *claim, const char *space, const char *name)
{
	struct cm_claim c = { 0 };
	char prefix[64];
	int len = snprintf(prefix, sizeof(prefix), NAME_FORMAT, geteuid(), space);
	int end = 0;

	if (strncmp(name, prefix, len))
		return -EINVAL;
	name += len;
	if (sscanf(name, "%63[^-]-%5hu%n", c.addr, &c.port, &end) != 2)
		return -EINVAL;
	name += end;
	end = 0;
	if (*name && (sscanf(name, "-r%8x%n", &c.token, &end) != 1 || !c.token || name[end]))
		return -EINVAL;
	*claim = c;
	return 0;
}

static bool is_ipv6(const struct cm_claim *c)
{
	return strchr(c->addr, ':');
}

static bool is_any(const struct cm_claim *c)
{
	return !strcmp(c->addr, is_ipv6(c) ? "::" : "0.0.0.0");
}

int cm_claim_conflict(const struct cm_claim *a, const struct cm_claim *b)
{
	if (a->port != b->port || is_ipv6(a) != is_ipv6(b) || (a->token && b->token))
		return 0;
	if (is_any(a) || is_any(b))
		return -EADDRNOTAVAIL;
	return strcmp(a->addr, b->addr) ? 0 : -EADDRINUSE;
}

static bool is_own(const struct cm_claim *c, const struct cm_claim *claim, uint32_t own_token)
{
	if (c->token)
		return c->token == own_token;
	return !claim->token && !strcmp(c->addr, claim->addr) && c->port == claim->port;
}

int cm_claims_check(const char *space, const struct cm_claim *claim, uint32_t own_token)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char *line = NULL, name[128];
	struct cm_claim other;
	unsigned int state;
	size_t size = 0;
	int rc = 0;

	if (!sockets)
		return 0;
	while (!rc && getline(&line, &size, sockets) > 0) {
		/* Num RefCount Protocol Flags Type St Inode Path; 1 is SS_UNCONNECTED. */
		if (sscanf(line, "%*s %*s %*s %*s %*s %x %*s @%127s", &state, name) != 2 ||
		    state != 1 || cm_claim_parse(&other, space, name))
			continue;
		if (!is_own(&other, claim, own_token))
			rc = cm_claim_conflict(claim, &other);
	}
	free(line);
	fclose(sockets);
	return rc;
}
