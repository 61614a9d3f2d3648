/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool etcd http; suites: lib pool; timeout: 60 */
/* Two servers of etcd answer a request in turn. The first answers with an error. */
#include "tests/support/cmocka_all.h"

#include <arpa/inet.h>
#include <json-c/json.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/pool/etcd_http.h"

#define NO_LEADER \
	"{\"error\":\"etcdserver: no leader\",\"code\":14,\"message\":\"etcdserver: no leader\"}"
#define EVENT "{\"result\":{\"created\":true}}\n{\"result\":{\"events\":[{}]}}\n"
#define PUTS_MAX 64

struct server {
	pthread_t thread;
	int listener, port;
	const char *answer;
};

static struct server servers[2];
static struct json_object *given[PUTS_MAX];
static unsigned int nr_given;

int __real_json_object_put(struct json_object *object);
int __wrap_json_object_put(struct json_object *object);

/* Objects stay in memory until the test ends, so a second put of one is seen. */
int __wrap_json_object_put(struct json_object *object)
{
	if (!object)
		return 0;
	for (unsigned int i = 0; i < nr_given; i++)
		assert_ptr_not_equal(given[i], object);
	assert_true(nr_given < PUTS_MAX);
	given[nr_given++] = object;
	return 1;
}

/* Answers one request. */
static void *serve(void *arg)
{
	const struct server *server = arg;
	int fd = accept(server->listener, NULL, NULL);
	char request[4096];

	if (fd < 0)
		return NULL;
	if (read(fd, request, sizeof(request)) > 0)
		dprintf(fd,
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
			strlen(server->answer), server->answer);
	shutdown(fd, SHUT_WR);
	while (read(fd, request, sizeof(request)) > 0)
		;
	close(fd);
	return NULL;
}

static void start_server(struct server *server, const char *answer)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	server->answer = answer;
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(server->listener, 4), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &length), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static struct weir_pool_etcd_http *connect_to(const char *first, const char *second)
{
	struct weir_pool_etcd_http *http;
	char list[96];

	start_server(&servers[0], first);
	start_server(&servers[1], second);
	snprintf(list, sizeof(list), "http://127.0.0.1:%d,127.0.0.1:%d", servers[0].port,
		 servers[1].port);
	assert_int_equal(weir_pool_etcd_http_open(list, &http, NULL), 0);
	return http;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		pthread_join(servers[i].thread, NULL);
		close(servers[i].listener);
	}
	for (; nr_given; nr_given--)
		__real_json_object_put(given[nr_given - 1]);
	return 0;
}

static void test_a_watch_frees_each_answer_once(void **state)
{
	struct weir_pool_etcd_http *http = connect_to(NO_LEADER, EVENT);

	(void)state;
	assert_int_equal(weir_pool_etcd_http_watch(http, json_object_new_object(), 30000, NULL), 0);
	weir_pool_etcd_http_close(http);
}

static void test_a_call_frees_each_answer_once(void **state)
{
	struct weir_pool_etcd_http *http = connect_to(NO_LEADER, "{\"ID\":\"7\"}");
	struct json_object *reply, *id;

	(void)state;
	assert_int_equal(weir_pool_etcd_http_call(http, "/v3/lease/grant", json_object_new_object(),
						  &reply, NULL),
			 0);
	assert_true(json_object_object_get_ex(reply, "ID", &id));
	json_object_put(reply);
	weir_pool_etcd_http_close(http);
}

static void test_without_a_leader_there_is_no_answer(void **state)
{
	struct weir_pool_etcd_http *http = connect_to(NO_LEADER, NO_LEADER);
	struct json_object *reply;

	(void)state;
	assert_int_equal(weir_pool_etcd_http_call(http, "/v3/lease/grant", json_object_new_object(),
						  &reply, NULL),
			 -EHOSTUNREACH);
	weir_pool_etcd_http_close(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_watch_frees_each_answer_once, end),
		cmocka_unit_test_teardown(test_a_call_frees_each_answer_once, end),
		cmocka_unit_test_teardown(test_without_a_leader_there_is_no_answer, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
