/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A store in etcd, under /weir/NAME/. The version of a key is etcd's mod_revision. A change is a
 * transaction that compares versions first. Keys and values travel in base64, numbers as strings.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/pool/backend.h"
#include "lib/pool/etcd_http.h"

#define PREFIX_MAX (WEIR_POOL_NAME_MAX + 16)
#define KEY_MAX 256

/**
 * struct weir_pool_etcd - a store in etcd
 * @store: its beginning
 * @http: requests
 * @prefix: "/weir/NAME/"
 */
struct weir_pool_etcd {
	struct weir_pool_store store;
	struct weir_pool_etcd_http *http;
	char prefix[PREFIX_MAX];
};

static struct weir_pool_etcd *etcd_of(struct weir_pool_store *store)
{
	return (struct weir_pool_etcd *)store;
}

static struct json_object *base64(const char *bytes, size_t length)
{
	size_t room = sodium_base64_encoded_len(length, sodium_base64_VARIANT_ORIGINAL);
	char *text = malloc(room);
	struct json_object *out;

	if (!text)
		return NULL;
	sodium_bin2base64(text, room, (const unsigned char *)bytes, length,
			  sodium_base64_VARIANT_ORIGINAL);
	out = json_object_new_string(text);
	free(text);
	return out;
}

/* The text of a member in base64; the caller frees it. NULL: no memory, or no text. */
static char *text_in(struct json_object *object, const char *name)
{
	struct json_object *value;
	const char *from;
	char *text;
	size_t length;

	if (!json_object_object_get_ex(object, name, &value))
		return strdup("");
	from = json_object_get_string(value);
	text = malloc(strlen(from) + 1);
	if (!text || sodium_base642bin((unsigned char *)text, strlen(from), from, strlen(from),
				       NULL, &length, NULL, sodium_base64_VARIANT_ORIGINAL)) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}

static void add_base64(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, base64(text, strlen(text)));
}

static void add_number(struct json_object *object, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	json_object_object_add(object, name, json_object_new_string(text));
}

static uint64_t number_in(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (!object || !json_object_object_get_ex(object, name, &value))
		return 0;
	return strtoull(json_object_get_string(value), NULL, 10);
}

static struct json_object *member_of(struct json_object *object, const char *name)
{
	struct json_object *value;

	return object && json_object_object_get_ex(object, name, &value) ? value : NULL;
}

static void add_key(const struct weir_pool_etcd *etcd, struct json_object *object, const char *key)
{
	char whole[PREFIX_MAX + KEY_MAX];

	snprintf(whole, sizeof(whole), "%s%s", etcd->prefix, key);
	add_base64(object, "key", whole);
}

/* The range of all keys that begin with @prefix: up to the next text of the same length. */
static void add_range(const struct weir_pool_etcd *etcd, struct json_object *object,
		      const char *prefix)
{
	char whole[PREFIX_MAX + KEY_MAX];

	snprintf(whole, sizeof(whole), "%s%s", etcd->prefix, prefix);
	add_base64(object, "key", whole);
	whole[strlen(whole) - 1]++;
	add_base64(object, "range_end", whole);
}

static void etcd_close(struct weir_pool_store *store)
{
	weir_pool_etcd_http_close(etcd_of(store)->http);
	free(store);
}

static int add_entry(const struct weir_pool_etcd *etcd, struct json_object *kv,
		     struct weir_pool_listing *listing)
{
	char *key = text_in(kv, "key"), *value = text_in(kv, "value");
	int rc = -EPROTO;

	if (key && value && !strncmp(key, etcd->prefix, strlen(etcd->prefix)))
		rc = weir_pool_listing_add(listing, key + strlen(etcd->prefix), value,
					   number_in(kv, "mod_revision"));
	free(key);
	free(value);
	return rc;
}

static int etcd_list(struct weir_pool_store *store, const char *prefix,
		     struct weir_pool_listing *listing, struct weir_error *error)
{
	struct weir_pool_etcd *etcd = etcd_of(store);
	struct json_object *request = json_object_new_object(), *reply, *kvs;
	int rc;

	add_range(etcd, request, prefix);
	rc = weir_pool_etcd_http_call(etcd->http, "/v3/kv/range", request, &reply, error);
	if (rc)
		return rc;
	listing->revision = number_in(member_of(reply, "header"), "revision");
	kvs = member_of(reply, "kvs");
	for (size_t i = 0; !rc && kvs && i < json_object_array_length(kvs); i++)
		rc = add_entry(etcd, json_object_array_get_idx(kvs, i), listing);
	json_object_put(reply);
	return rc ? weir_error_set(error, rc, "etcd: cannot read the keys of the pool") : 0;
}

static void add_compare(const struct weir_pool_etcd *etcd, struct json_object *list,
			const char *key, uint64_t version)
{
	struct json_object *compare = json_object_new_object();

	add_key(etcd, compare, key);
	json_object_object_add(compare, "target", json_object_new_string("MOD"));
	json_object_object_add(compare, "result", json_object_new_string("EQUAL"));
	add_number(compare, "mod_revision", version);
	json_object_array_add(list, compare);
}

static struct json_object *transaction(const struct weir_pool_etcd *etcd,
				       const struct weir_pool_put *put)
{
	struct json_object *root = json_object_new_object();
	struct json_object *compares = json_object_new_array();
	struct json_object *changes = json_object_new_array();
	struct json_object *change = json_object_new_object(), *what = json_object_new_object();

	if (put->expected != WEIR_POOL_ANY_VERSION)
		add_compare(etcd, compares, put->key, put->expected);
	if (put->guard)
		add_compare(etcd, compares, put->guard, put->guard_version);
	add_key(etcd, what, put->key);
	if (put->value)
		add_base64(what, "value", put->value);
	if (put->value && put->lease)
		add_number(what, "lease", put->lease);
	json_object_object_add(change, put->value ? "request_put" : "request_delete_range", what);
	json_object_array_add(changes, change);
	json_object_object_add(root, "compare", compares);
	json_object_object_add(root, "success", changes);
	return root;
}

static int etcd_put(struct weir_pool_store *store, const struct weir_pool_put *put,
		    uint64_t *version, struct weir_error *error)
{
	struct weir_pool_etcd *etcd = etcd_of(store);
	struct json_object *reply, *succeeded;
	int rc = weir_pool_etcd_http_call(etcd->http, "/v3/kv/txn", transaction(etcd, put), &reply,
					  error);

	if (rc == -ENOENT)
		return weir_error_set(error, -ESTALE, "%s: the lease is over", put->key);
	if (rc)
		return rc;
	succeeded = member_of(reply, "succeeded");
	if (succeeded && json_object_get_boolean(succeeded))
		*version = number_in(member_of(reply, "header"), "revision");
	else
		rc = weir_error_set(error, -EAGAIN, "%s: somebody else has changed it", put->key);
	json_object_put(reply);
	return rc;
}

static int etcd_grant(struct weir_pool_store *store, uint32_t ttl_ms, uint64_t *lease,
		      struct weir_error *error)
{
	struct json_object *request = json_object_new_object(), *reply;
	int rc;

	add_number(request, "TTL", (ttl_ms + 999) / 1000);
	rc = weir_pool_etcd_http_call(etcd_of(store)->http, "/v3/lease/grant", request, &reply,
				      error);
	if (rc)
		return rc;
	*lease = number_in(reply, "ID");
	json_object_put(reply);
	return *lease ? 0 : weir_error_set(error, -EPROTO, "etcd grants no lease");
}

static int etcd_keep(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	struct json_object *request = json_object_new_object(), *reply;
	bool is_over;
	int rc;

	add_number(request, "ID", lease);
	rc = weir_pool_etcd_http_call(etcd_of(store)->http, "/v3/lease/keepalive", request, &reply,
				      error);
	if (rc && rc != -ENOENT)
		return rc;
	is_over = rc || !number_in(member_of(reply, "result"), "TTL");
	json_object_put(rc ? NULL : reply);
	return is_over ? weir_error_set(error, -ESTALE, "the lease is over") : 0;
}

static int etcd_revoke(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	struct json_object *request = json_object_new_object(), *reply;
	int rc;

	add_number(request, "ID", lease);
	rc = weir_pool_etcd_http_call(etcd_of(store)->http, "/v3/lease/revoke", request, &reply,
				      error);
	if (rc == -ENOENT)
		return weir_error_set(error, -ESTALE, "the lease is over");
	if (!rc)
		json_object_put(reply);
	return rc;
}

static int etcd_wait(struct weir_pool_store *store, uint64_t revision, unsigned int timeout_ms,
		     struct weir_error *error)
{
	struct weir_pool_etcd *etcd = etcd_of(store);
	struct json_object *create = json_object_new_object(), *request = json_object_new_object();

	add_range(etcd, create, "");
	add_number(create, "start_revision", revision + 1);
	json_object_object_add(request, "create_request", create);
	return weir_pool_etcd_http_watch(etcd->http, request, timeout_ms, error);
}

static const struct weir_pool_backend etcd_backend = {
	.close = etcd_close,
	.list = etcd_list,
	.put = etcd_put,
	.grant = etcd_grant,
	.keep = etcd_keep,
	.revoke = etcd_revoke,
	.wait = etcd_wait,
};

/* Splits "SERVERS/NAME" in place. Return: NAME, or NULL. */
static char *split_name(char *where)
{
	char *slash = strrchr(where, '/');

	if (!slash || slash == where || slash[-1] == '/' || !weir_pool_map_is_name(slash + 1))
		return NULL;
	*slash = '\0';
	return slash + 1;
}

int weir_pool_etcd_open(const char *where, struct weir_pool_store **store,
			struct weir_error *error)
{
	struct weir_pool_etcd *etcd = calloc(1, sizeof(*etcd));
	char *copy = strdup(where), *name = copy ? split_name(copy) : NULL;
	int rc = 0;

	if (!etcd || !copy)
		rc = weir_error_set(error, -ENOMEM, "out of memory");
	else if (!name)
		rc = weir_error_set(error, -EINVAL,
				    "etcd:%s: expected etcd:http://HOST:2379/NAME, with a NAME of "
				    "up to 63 letters, digits and . _ -",
				    where);
	if (!rc)
		rc = weir_pool_etcd_http_open(copy, &etcd->http, error);
	if (!rc) {
		etcd->store.backend = &etcd_backend;
		snprintf(etcd->store.name, sizeof(etcd->store.name), "%s", name);
		snprintf(etcd->prefix, sizeof(etcd->prefix), "/weir/%s/", name);
		*store = &etcd->store;
		etcd = NULL;
	}
	free(etcd);
	free(copy);
	return rc;
}
