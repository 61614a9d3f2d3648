/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/common/client.h"
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_keys.h"

#define CLIENTS_MAX 128u
#define CLIENTS_MIN 4u

void listener_init(struct file_listener *l, const struct file_server_options *options,
		   struct file_requests *requests, struct key_set *keys)
{
	l->options = options;
	l->requests = requests;
	staging_init(&l->staging);
	if (keys) {
		l->keys = key_set_get(keys);
		l->admitted = key_set_get(keys);
	}
	pthread_mutex_init(&l->opening, NULL);
	pthread_mutex_init(&l->lock, NULL);
}

void listener_fini(struct file_listener *l)
{
	staging_fini(&l->staging);
	pthread_mutex_destroy(&l->opening);
	pthread_mutex_destroy(&l->lock);
	key_set_put(l->keys);
	key_set_put(l->admitted);
}

/* Without room the kernel would kill the donor when a client fills the area. */
static bool has_room(struct file_listener *l, const struct weir_peer *peer)
{
	uint64_t left = available_memory(""), promised = staging_promised(&l->staging);

	left -= lesser(left, promised);
	if (left >= STAGING_AREA)
		return true;
	file_server_say(
		l->options, WEIR_LOG_ERROR,
		"no staging area client=%s id=W206: this machine and its control group have %s "
		"left beside what is lent, and a mount takes %s: lend less, by --memory",
		weir_peer_name(peer), size_format(left).text, size_format(STAGING_AREA).text);
	return false;
}

static void on_join(void *arg, struct weir_peer *peer)
{
	struct file_listener *l = arg;

	pthread_mutex_lock(&l->opening);
	pthread_mutex_unlock(&l->opening);
	if (!(weir_peer_rights(peer) & WEIR_RIGHT_FILES) || !has_room(l, peer))
		return;
	if (!staging_join(&l->staging, peer))
		file_server_say(l->options, WEIR_LOG_ERROR,
				"no staging area client=%s id=W206: out of memory",
				weir_peer_name(peer));
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	staging_leave(&((struct file_listener *)arg)->staging, peer);
}

static void reply_staging(const struct staging_conn *conn, struct weir_call *call)
{
	const struct {
		struct wire_fs_reply reply;
		struct wire_fs_chunk chunk;
	} out = {
		.reply.shared = 1,
		.chunk = { conn->token.addr, conn->token.length, conn->token.rkey, 0 },
	};

	(void)weir_reply(call, &out, sizeof(out));
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct file_listener *l = arg;
	struct staging_conn *conn = staging_find(&l->staging, peer);
	bool may = weir_peer_rights(peer) & WEIR_RIGHT_FILES;
	const struct wire_fs_reply none = { .status = may ? -ENOMEM : -EACCES, .shared = 1 };

	if (!call)
		return;
	if (conn && file_message_op(data, length) == FS_VOLUME) {
		reply_staging(conn, call);
		call = NULL;
	}
	if ((!conn || file_requests_add(l->requests, conn, call, data, length)) && call)
		(void)weir_reply(call, &none, sizeof(none));
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	const struct file_listener *l = arg;

	l->options->on_log(l->options->arg, level, line);
}

/* The donor's address with any free port. */
static void choose_listen(const char *address, char *listen, size_t size)
{
	const char *colon = strrchr(address, ':');

	snprintf(listen, size, "%.*s:0", (int)(colon ? colon - address : 0), address);
}

/* The donor's thread may need @opening before it can take keys. */
static int open_donor(struct file_listener *l, const struct weir_donor_options *options,
		      struct weir_error *error)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	pthread_mutex_lock(&l->opening);
	rc = weir_donor_open(options, &l->staging.donor, error);
	pthread_mutex_unlock(&l->opening);
	if (!rc && l->admitted)
		rc = weir_donor_keys_set(l->staging.donor, l->admitted->key, l->admitted->nr,
					 error);
	l->is_open = !rc;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* The staging areas together take no more memory than the donor lends, or four areas. */
static unsigned int clients_max(uint64_t memory_bytes)
{
	return (unsigned int)lesser(greater(memory_bytes / STAGING_AREA, CLIENTS_MIN), CLIENTS_MAX);
}

/*
 * A key has half of the connections and their memory at most, so that another key's mounts can
 * come. Clients create no regions here: the least quota keeps them from it.
 */
int listener_open(struct file_listener *l, char *address, size_t size, struct weir_error *error)
{
	char listen[WEIR_POOL_NAME_MAX + 8];
	unsigned int clients = clients_max(l->options->memory_bytes);
	unsigned int of_key = l->keys ? clients / 2 : clients;
	struct weir_donor_info info;
	const struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = listen,
		.device = l->options->device,
		.tenants_max = l->keys ? DONOR_TENANTS_MAX : 0,
		.identity = l->options->identity,
		.memory_bytes = clients * STAGING_AREA,
		.clients_max = clients,
		.key_clients_max = of_key,
		.key_bytes_max = of_key * STAGING_AREA,
		.quota_bytes = 1,
		.no_huge_pages = true,
		.encryption = client_encryption(),
		.on_message = on_message,
		.on_join = on_join,
		.on_leave = on_leave,
		.on_log = on_log,
		.arg = l,
	};
	int rc;

	choose_listen(l->options->listen, listen, sizeof(listen));
	rc = open_donor(l, &options, error);
	if (rc)
		return rc;
	weir_donor_info(l->staging.donor, &info, sizeof(info));
	snprintf(address, size, "%s", info.address);
	return 0;
}

void listener_close(struct file_listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->is_open = false;
	pthread_mutex_unlock(&l->lock);
	if (l->staging.donor)
		weir_donor_close(l->staging.donor);
}

int listener_set_keys(struct file_listener *l, struct key_set *keys, bool *is_open,
		      struct weir_error *error)
{
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	key_set_put(l->admitted);
	l->admitted = key_set_get(keys);
	*is_open = l->is_open;
	if (l->is_open)
		rc = weir_donor_keys_set(l->staging.donor, keys->key, keys->nr, error);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

bool listener_has_other_pool_key(struct file_listener *l)
{
	bool has_other;

	pthread_mutex_lock(&l->lock);
	has_other = l->keys && !key_set_has_same_pool(l->keys, l->admitted);
	pthread_mutex_unlock(&l->lock);
	return has_other;
}
