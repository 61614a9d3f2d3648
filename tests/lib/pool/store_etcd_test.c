/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool store etcd; suites: lib pool; timeout: 240 */
/* A pool's store in etcd. */
#include "tests/lib/pool/store_suite.h"

#include <json-c/json.h>
#include <unistd.h>

#include "lib/pool/etcd_http.h"
#include "tests/lib/pool/etcd_server.h"

#define TRIES 30

static struct etcd_server server;
static unsigned int places;

static const char *fresh_place(void)
{
	static char where[64][128];
	unsigned int i = places++ % 64;

	snprintf(where[i], sizeof(where[i]), "etcd:%s/pool%u", server.url, places);
	return where[i];
}

static void a_server_that_is_gone_is_passed_over(void **state)
{
	struct weir_pool_store *store;
	char where[256], *value;

	(void)state;
	snprintf(where, sizeof(where), "etcd:http://127.0.0.1:%d,127.0.0.1:%d/several",
		 etcd_server_free_port(), server.port);
	store = store_suite_open(where);
	store_suite_put(store, "a", "1");
	value = store_suite_get(store, "a");
	assert_string_equal(value, "1");
	free(value);
	weir_pool_store_close(store);
}

static void an_etcd_that_is_gone_is_named_and_may_return(void **state)
{
	struct weir_pool_put put = { .key = "b", .value = "2" };
	struct weir_pool_store *store;
	struct weir_pool_listing listing;
	struct etcd_server other = { 0 };
	struct weir_error error;
	char where[128], *value;
	uint64_t lease;

	(void)state;
	etcd_server_start(&other);
	snprintf(where, sizeof(where), "etcd:%s/gone", other.url);
	store = store_suite_open(where);
	store_suite_put(store, "a", "1");
	assert_int_equal(weir_pool_store_grant(store, 60000, &lease, NULL), 0);
	etcd_server_kill(&other);
	assert_int_equal(weir_pool_store_list(store, "", &listing, &error), -EHOSTUNREACH);
	assert_non_null(strstr(error.text, other.url));
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EHOSTUNREACH);
	assert_int_equal(weir_pool_store_keep(store, lease, NULL), -EHOSTUNREACH);
	assert_int_equal(weir_pool_store_wait(store, 1, 2000, NULL), -EHOSTUNREACH);
	etcd_server_start(&other);
	value = store_suite_get(store, "a");
	assert_string_equal(value, "1");
	free(value);
	assert_int_equal(weir_pool_store_keep(store, lease, NULL), 0);
	weir_pool_store_close(store);
	etcd_server_remove(&other);
}

/* Repeats a request that a busy machine does not answer in time. It may have been done, though. */
static void ask(struct weir_pool_etcd_http *http, const char *path, const char *text)
{
	struct json_object *reply;
	struct weir_error error;
	int rc = -EHOSTUNREACH;
	bool may_be_done = false;

	for (int i = 0; i < TRIES && rc == -EHOSTUNREACH; i++) {
		rc = weir_pool_etcd_http_call(http, path, json_tokener_parse(text), &reply,
					      &error);
		may_be_done |= rc == -EHOSTUNREACH;
	}
	if (!rc)
		json_object_put(reply);
	else if (!may_be_done || rc == -EHOSTUNREACH)
		fail_msg("%s", error.text);
}

static void enable_users(const char *url)
{
	struct weir_pool_etcd_http *http;

	assert_int_equal(weir_pool_etcd_http_open(url, &http, NULL), 0);
	ask(http, "/v3/auth/user/add", "{\"name\": \"root\", \"password\": \"secret\"}");
	ask(http, "/v3/auth/user/add", "{\"name\": \"guest\", \"password\": \"guest\"}");
	ask(http, "/v3/auth/role/add", "{\"name\": \"root\"}");
	ask(http, "/v3/auth/user/grant", "{\"user\": \"root\", \"role\": \"root\"}");
	ask(http, "/v3/auth/enable", "{}");
	weir_pool_etcd_http_close(http);
}

/* Opens the pool as a user, and lists it. */
static int list_as(const char *where, const char *user, const char *password,
		   struct weir_error *error)
{
	struct weir_pool_store *store;
	struct weir_pool_listing listing;
	int rc;

	setenv("ETCDCTL_USER", user, 1);
	if (password)
		setenv("ETCDCTL_PASSWORD", password, 1);
	store = store_suite_open(where);
	unsetenv("ETCDCTL_USER");
	unsetenv("ETCDCTL_PASSWORD");
	rc = weir_pool_store_list(store, "", &listing, error);
	if (!rc)
		weir_pool_listing_free(&listing);
	weir_pool_store_close(store);
	return rc;
}

static void users_prove_their_password(void **state)
{
	struct etcd_server other = { 0 };
	struct weir_error error;
	char where[128];

	(void)state;
	etcd_server_start(&other);
	enable_users(other.url);
	snprintf(where, sizeof(where), "etcd:%s/users", other.url);
	assert_int_equal(list_as(where, "root", "secret", NULL), 0);
	assert_int_equal(list_as(where, "root:secret", NULL, NULL), 0);
	assert_int_equal(list_as(where, "root", "wrong", &error), -EKEYREJECTED);
	assert_non_null(strstr(error.text, "ETCDCTL_PASSWORD"));
	assert_non_null(strstr(error.text, "'root'"));
	assert_int_equal(list_as(where, "nobody", "secret", &error), -EKEYREJECTED);
	assert_int_equal(list_as(where, "", NULL, &error), -EKEYREJECTED);
	assert_non_null(strstr(error.text, "ETCDCTL_USER"));
	assert_int_equal(list_as(where, "guest", "guest", &error), -EPERM);
	assert_non_null(strstr(error.text, "'guest'"));
	etcd_server_remove(&other);
}

static void a_full_etcd_is_named_and_still_read(void **state)
{
	struct etcd_server other = { .option = "--quota-backend-bytes=1000000" };
	struct weir_pool_put put = { .key = "big", .expected = WEIR_POOL_ANY_VERSION };
	struct weir_pool_store *store;
	struct weir_error error;
	char where[128], *text = calloc(1, 100001), *value;
	int rc = 0;

	(void)state;
	memset(text, 'x', 100000);
	put.value = text;
	etcd_server_start(&other);
	snprintf(where, sizeof(where), "etcd:%s/full", other.url);
	store = store_suite_open(where);
	store_suite_put(store, "small", "1");
	for (int i = 0; i < 100 && !rc; i++)
		rc = weir_pool_store_put(store, &put, NULL, &error);
	assert_int_equal(rc, -ENOSPC);
	assert_non_null(strstr(error.text, "etcdctl alarm disarm"));
	value = store_suite_get(store, "small");
	assert_string_equal(value, "1");
	free(value);
	free(text);
	weir_pool_store_close(store);
	etcd_server_remove(&other);
}

static void a_certificate_is_checked(void **state)
{
	struct etcd_server other = { .has_tls = true };
	struct weir_pool_listing listing;
	struct weir_pool_store *store;
	struct weir_error error;
	char where[128], cert[96];

	(void)state;
	snprintf(other.folder, sizeof(other.folder), "/tmp/weir-etcd-XXXXXX");
	assert_non_null(mkdtemp(other.folder));
	etcd_server_make_certificate(other.folder);
	snprintf(cert, sizeof(cert), "%s/cert.pem", other.folder);
	setenv("ETCDCTL_CACERT", cert, 1);
	etcd_server_start(&other);
	snprintf(where, sizeof(where), "etcd:%s/tls", other.url);
	store = store_suite_open(where);
	store_suite_put(store, "a", "1");
	weir_pool_store_close(store);
	unsetenv("ETCDCTL_CACERT");
	store = store_suite_open(where);
	/* A busy machine may be too slow for a handshake. */
	for (int i = 0; i < TRIES; i++) {
		assert_int_equal(weir_pool_store_list(store, "", &listing, &error), -EHOSTUNREACH);
		if (strstr(error.text, "certificate"))
			break;
	}
	assert_non_null(strstr(error.text, "certificate"));
	weir_pool_store_close(store);
	etcd_server_remove(&other);
}

static void another_server_is_no_etcd(void **state)
{
	struct weir_pool_store *store;
	struct weir_pool_listing listing;
	struct weir_error error;
	char where[128];

	(void)state;
	/* etcd's port for peers speaks HTTP, too. */
	snprintf(where, sizeof(where), "etcd:http://127.0.0.1:%d/p", server.peer_port);
	store = store_suite_open(where);
	assert_int_equal(weir_pool_store_list(store, "", &listing, &error), -EPROTO);
	assert_non_null(strstr(error.text, "not the gateway"));
	weir_pool_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_is_gone_is_passed_over),
		cmocka_unit_test(an_etcd_that_is_gone_is_named_and_may_return),
		cmocka_unit_test(users_prove_their_password),
		cmocka_unit_test(a_full_etcd_is_named_and_still_read),
		cmocka_unit_test(a_certificate_is_checked),
		cmocka_unit_test(another_server_is_no_etcd),
	};
	int failed;

	unsetenv("ETCDCTL_USER");
	unsetenv("ETCDCTL_PASSWORD");
	if (!etcd_server_is_there()) {
		puts("1..0 # SKIP etcd is not installed");
		return 77;
	}
	etcd_server_start(&server);
	failed = store_suite_run(fresh_place);
	failed += cmocka_run_group_tests_name("etcd", tests, NULL, NULL);
	etcd_server_remove(&server);
	return failed;
}
