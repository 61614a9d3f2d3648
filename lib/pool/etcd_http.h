/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to the HTTP and JSON gateway of etcd: tries one server after another, proves the user,
 * and turns failures into errors.
 *
 * Context of all: any thread, one at a time for each connection.
 */
#ifndef WEIR_LIB_POOL_ETCD_HTTP_H
#define WEIR_LIB_POOL_ETCD_HTTP_H

#include <stdbool.h>
#include <weir/error.h>

struct json_object;
struct weir_pool_etcd_http;

/**
 * weir_pool_etcd_http_open() - prepare requests; contacts nobody
 * @servers: "http://h1:2379,h2:2379"; a server without a scheme has that of the server before
 * @http: receives the connection; the caller owes a weir_pool_etcd_http_close()
 * @error: may be NULL
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int weir_pool_etcd_http_open(const char *servers, struct weir_pool_etcd_http **http,
			     struct weir_error *error);
void weir_pool_etcd_http_close(struct weir_pool_etcd_http *http);

/**
 * weir_pool_etcd_http_call() - ask etcd
 * @http: the connection
 * @path: such as "/v3/kv/range"
 * @request: what to ask; given
 * @reply: receives the answer; the caller owes a json_object_put()
 * @error: may be NULL
 *
 * Return: 0; -ENOENT etcd does not find the lease; or an error of store.h.
 */
int weir_pool_etcd_http_call(struct weir_pool_etcd_http *http, const char *path,
			     struct json_object *request, struct json_object **reply,
			     struct weir_error *error);

/**
 * weir_pool_etcd_http_watch() - wait for the first event of a watch
 * @http: the connection
 * @request: the watch; given
 * @timeout_ms: how long to wait
 * @error: may be NULL
 *
 * Return: 0 an event has come, or etcd has ended the watch; -ETIMEDOUT; or an error of store.h.
 */
int weir_pool_etcd_http_watch(struct weir_pool_etcd_http *http, struct json_object *request,
			      unsigned int timeout_ms, struct weir_error *error);

#endif
