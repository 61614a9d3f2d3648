/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/log/log.h"
#include "apps/serve/membership.h"

static bool is_bare_ipv6(const char *text)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, text, &address) == 1;
}

/* A name, an IPv4 address, or an IPv6 address with or without brackets; no port. */
static bool is_host(const char *text)
{
	char inner[INET6_ADDRSTRLEN];
	size_t length = strlen(text);

	if (text[0] != '[')
		return !strchr(text, ':') || is_bare_ipv6(text);
	if (length < 2 || length - 2 >= sizeof(inner) || text[length - 1] != ']')
		return false;
	memcpy(inner, text + 1, length - 2);
	inner[length - 2] = '\0';
	return is_bare_ipv6(inner);
}

int membership_check(const struct membership *m, const char *cmd)
{
	if (!m->pool && (m->domain || m->name || m->advertise))
		return usage_error(cmd, "--domain, --name and --advertise need --pool");
	if (m->advertise && !is_host(m->advertise))
		return usage_error(cmd,
				   "--advertise %s: expected an IP address or a host's name; the "
				   "port is that of --listen",
				   m->advertise);
	return EXIT_OK;
}

/* Of all threads that work for the pool: the agent's, the rebuilder's and the file servers'. */
static void log_agent(void *arg, enum weir_log_level level, const char *line)
{
	static struct log_source source = { .name = "pool" };

	(void)arg;
	log_limited(&source, level, line);
}

/* The address that other hosts connect to. A wildcard would lead each of them to itself. */
static int choose_pool_address(struct membership *m, const char *cmd, const char *bound)
{
	const char *port = strrchr(bound, ':');

	if (m->advertise) {
		const char *format = is_bare_ipv6(m->advertise) ? "[%s]%s" : "%s%s";

		snprintf(m->address, sizeof(m->address), format, m->advertise, port);
		return EXIT_OK;
	}
	snprintf(m->address, sizeof(m->address), "%s", bound);
	if (!strncmp(bound, "0.0.0.0:", 8) || !strncmp(bound, "[::]:", 5))
		return failure(cmd,
			       "--pool: other hosts cannot connect to %s: --listen at an address "
			       "of this host, or name one by --advertise",
			       bound);
	return EXIT_OK;
}

static int start_rebuilder(struct membership *m, const struct joining_donor *donor,
			   const struct weir_pool_agent_options *agent)
{
	const struct weir_volume_rebuilder_options options = {
		.pool = agent->pool,
		.donor = agent->name,
		.incarnation = agent->incarnation,
		.device = donor->device,
		.key = donor->keys ? donor->keys->pool : NULL,
		.old_key = donor->keys ? donor->keys->old_pool : NULL,
		.encryption = client_encryption(),
		.on_log = log_agent,
	};
	struct weir_error error;

	if (weir_volume_rebuilder_start(&options, &m->rebuilder, &error))
		return failure(donor->cmd, "%s", error.text);
	return EXIT_OK;
}

static int start_files(struct membership *m, const struct joining_donor *donor,
		       const struct weir_pool_agent_options *agent)
{
	struct weir_error error;

	snprintf(m->donor_name, sizeof(m->donor_name), "%s", agent->name);
	m->file_options = (struct file_server_options){
		.pool = agent->pool,
		.donor = m->donor_name,
		.listen = m->address,
		.device = donor->device,
		.incarnation = agent->incarnation,
		.memory_bytes = agent->bytes,
		.identity = donor->identity,
		.on_log = log_agent,
	};
	if (file_servers_start(&m->file_options, donor->keys, &m->file_servers, &error))
		return failure(donor->cmd, "%s", error.text);
	return EXIT_OK;
}

int membership_join(struct membership *m, const struct joining_donor *donor)
{
	unsigned char identity[32];
	char host[64] = "";
	int status;
	struct weir_donor_info info;
	struct weir_error error;
	struct weir_pool_agent_options options = {
		.pool = m->pool,
		.domain = m->domain ? m->domain : host,
		.on_restart = donor->on_restart,
		.on_log = log_agent,
	};

	if (!m->pool)
		return EXIT_OK;
	(void)gethostname(host, sizeof(host) - 1);
	weir_donor_info(donor->donor, &info, sizeof(info));
	status = choose_pool_address(m, donor->cmd, info.address);
	if (status)
		return status;
	options.address = m->address;
	options.name = m->name ? m->name : m->address;
	options.bytes = info.memory_bytes;
	options.incarnation = info.incarnation;
	if (donor->identity) {
		weir_identity_public(donor->identity, identity);
		options.identity = identity;
	}
	if (weir_pool_agent_start(&options, &m->agent, &error))
		return failure(donor->cmd, "%s", error.text);
	status = start_rebuilder(m, donor, &options);
	return status ? status : start_files(m, donor, &options);
}

int membership_set_keys(struct membership *m, struct key_set *keys, struct weir_error *error)
{
	int rc = file_servers_set_keys(m->file_servers, keys, error);

	if (!m->rebuilder ||
	    !weir_volume_rebuilder_set_keys(m->rebuilder, keys->pool, keys->old_pool))
		return rc;
	snprintf(error->text, sizeof(error->text), "of the rebuilder of volumes: out of memory");
	return -ENOMEM;
}

void membership_leave(struct membership *m)
{
	weir_volume_rebuilder_cancel(m->rebuilder);
	file_servers_cancel(m->file_servers);
	file_servers_finish(m->file_servers);
	/* A change of the map, which wakes both. */
	weir_pool_agent_stop(m->agent);
	m->agent = NULL;
	file_servers_close(m->file_servers);
	m->file_servers = NULL;
	weir_volume_rebuilder_close(m->rebuilder);
	m->rebuilder = NULL;
}
