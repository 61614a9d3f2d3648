/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A request goes to the server that answered last. If this server does not answer, or has no
 * leader, the next one gets the request, until each has been asked once.
 */
#include "lib/pool/etcd_http.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/http/http.h"

#define SERVERS_MAX 16
#define CONNECT_MS 1000L
#define CALL_MS 2000L /* a silent server must not cost a donor its lease of 5 s */
#define WATCH_BYTES_MAX 65536 /* an event needs less */

/* Codes of gRPC in the gateway's answers. */
enum {
	CODE_INVALID_ARGUMENT = 3,
	CODE_NOT_FOUND = 5,
	CODE_PERMISSION_DENIED = 7,
	CODE_RESOURCE_EXHAUSTED = 8,
	CODE_FAILED_PRECONDITION = 9,
	CODE_UNAVAILABLE = 14,
	CODE_UNAUTHENTICATED = 16,
};

/**
 * struct weir_pool_etcd_http - a connection
 * @curl: keeps the TCP connections
 * @list: servers, for messages
 * @server: @nr_servers URLs without a path
 * @nr_servers: at least 1
 * @current: the server that answered last
 * @user: name, or NULL: etcd asks for none
 * @password: the user's
 * @token: proof of the user; empty: none yet
 * @body: answer so far
 * @is_watch: the transfer ends with the first event
 * @has_event: the event has come
 */
struct weir_pool_etcd_http {
	CURL *curl;
	char *list, *server[SERVERS_MAX];
	unsigned int nr_servers, current;
	char *user, *password;
	char token[512];
	struct {
		char *text;
		size_t length;
	} body;
	bool is_watch, has_event;
};

static int add_server(struct weir_pool_etcd_http *http, const char *name, const char *scheme)
{
	bool has_scheme = strstr(name, "://");

	if (http->nr_servers == SERVERS_MAX || !*name || strpbrk(name, " @?#\"<>"))
		return -EINVAL;
	if (asprintf(&http->server[http->nr_servers], "%s%s", has_scheme ? "" : scheme, name) < 0)
		return -ENOMEM;
	http->nr_servers++;
	return 0;
}

static int add_servers(struct weir_pool_etcd_http *http, const char *servers)
{
	char *copy = strdup(servers), *rest = copy, *name;
	const char *scheme = "http://";
	int rc = copy ? 0 : -ENOMEM;

	while (!rc && (name = strsep(&rest, ","))) {
		if (!strncmp(name, "https://", 8))
			scheme = "https://";
		else if (!strncmp(name, "http://", 7))
			scheme = "http://";
		else if (strstr(name, "://"))
			rc = -EINVAL;
		rc = rc ? rc : add_server(http, name, scheme);
	}
	free(copy);
	return rc;
}

/* ETCDCTL_USER is "name" or "name:password", as for etcdctl. */
static int read_user(struct weir_pool_etcd_http *http)
{
	const char *user = getenv("ETCDCTL_USER"), *password = getenv("ETCDCTL_PASSWORD");
	const char *colon = user && !password ? strchr(user, ':') : NULL;

	if (!user || !*user)
		return 0;
	http->user = colon ? strndup(user, (size_t)(colon - user)) : strdup(user);
	http->password = strdup(colon ? colon + 1 : password ? password : "");
	return http->user && http->password ? 0 : -ENOMEM;
}

static void set_certificates(CURL *curl)
{
	const char *ca = getenv("ETCDCTL_CACERT"), *cert = getenv("ETCDCTL_CERT");
	const char *key = getenv("ETCDCTL_KEY");

	if (ca && *ca)
		curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
	if (cert && *cert)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, cert);
	if (key && *key)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct weir_pool_etcd_http *http = arg;
	size_t bytes = size * count;
	char *grown = realloc(http->body.text, http->body.length + bytes + 1);

	if (!grown)
		return 0;
	memcpy(grown + http->body.length, data, bytes);
	http->body.text = grown;
	http->body.length += bytes;
	grown[http->body.length] = '\0';
	if (!http->is_watch)
		return bytes;
	http->has_event = strstr(grown, "\"events\"") || strstr(grown, "\"canceled\":true") ||
			  http->body.length > WATCH_BYTES_MAX;
	return http->has_event ? 0 : bytes; /* 0 ends the transfer */
}

int weir_pool_etcd_http_open(const char *servers, struct weir_pool_etcd_http **opened,
			     struct weir_error *error)
{
	struct weir_pool_etcd_http *http = calloc(1, sizeof(*http));
	int rc;

	if (!http)
		return weir_error_set(error, -ENOMEM, "out of memory");
	http->curl = weir_http_handle();
	http->list = strdup(servers);
	rc = http->curl && http->list ? add_servers(http, servers) : -ENOMEM;
	if (!rc)
		rc = read_user(http);
	if (rc) {
		weir_pool_etcd_http_close(http);
		return weir_error_set(error, rc, rc == -ENOMEM ? "out of memory" :
				      "%s: expected servers such as http://h1:2379,h2:2379, at "
				      "most 16", servers);
	}
	set_certificates(http->curl);
	*opened = http;
	return 0;
}

void weir_pool_etcd_http_close(struct weir_pool_etcd_http *http)
{
	if (!http)
		return;
	if (http->curl)
		curl_easy_cleanup(http->curl);
	for (unsigned int i = 0; i < http->nr_servers; i++)
		free(http->server[i]);
	free(http->list);
	free(http->user);
	free(http->password);
	free(http->body.text);
	free(http);
}

static struct curl_slist *headers_of(const struct weir_pool_etcd_http *http)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	char line[sizeof(http->token) + 32];

	/* A server that has lost the majority then ends a watch, which would stay silent. */
	list = curl_slist_append(list, "Grpc-Metadata-hasleader: true");
	list = curl_slist_append(list, "Expect:");
	if (*http->token) {
		snprintf(line, sizeof(line), "Authorization: %s", http->token);
		list = curl_slist_append(list, line);
	}
	return list;
}

/* Posts to the current server. Return: curl's status; the answer is in the body. */
static CURLcode post(struct weir_pool_etcd_http *http, const char *path, const char *text,
		     long timeout_ms, char *why)
{
	struct curl_slist *headers = headers_of(http);
	CURL *curl = http->curl;
	char url[512];
	CURLcode rc;

	snprintf(url, sizeof(url), "%s%s", http->server[http->current], path);
	http->body.length = 0;
	http->has_event = false;
	*why = '\0';
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	rc = curl_easy_perform(curl);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	curl_slist_free_all(headers);
	if (rc && !*why)
		snprintf(why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(rc));
	return rc;
}

/* The body as JSON, or NULL. An error inside a stream's answer is taken out of its wrapping. */
static struct json_object *parse_body(const struct weir_pool_etcd_http *http)
{
	struct json_object *root, *inner;

	if (!http->body.length)
		return NULL;
	root = json_tokener_parse(http->body.text);
	if (root && json_object_is_type(root, json_type_object) &&
	    json_object_object_get_ex(root, "error", &inner) &&
	    json_object_is_type(inner, json_type_object)) {
		inner = json_object_get(inner);
		json_object_put(root);
		return inner;
	}
	return root;
}

static int code_of(struct json_object *reply)
{
	struct json_object *code;

	if (json_object_object_get_ex(reply, "code", &code) ||
	    json_object_object_get_ex(reply, "grpc_code", &code))
		return json_object_get_int(code);
	return 0;
}

static const char *message_of(struct json_object *reply)
{
	struct json_object *message;

	if (json_object_object_get_ex(reply, "message", &message) ||
	    json_object_object_get_ex(reply, "error", &message))
		return json_object_get_string(message);
	return "";
}

static int refused(const struct weir_pool_etcd_http *http, const char *message,
		   struct weir_error *error)
{
	if (http->user)
		return weir_error_set(error, -EKEYREJECTED,
				      "etcd at %s refuses user '%s': %s; check ETCDCTL_USER and "
				      "ETCDCTL_PASSWORD",
				      http->list, http->user, message);
	return weir_error_set(error, -EKEYREJECTED,
			      "etcd at %s asks for a user: set ETCDCTL_USER and ETCDCTL_PASSWORD",
			      http->list);
}

/* Return: the error that an answer of etcd stands for; 0: none. */
static int error_of_reply(const struct weir_pool_etcd_http *http, struct json_object *reply,
			  struct weir_error *error)
{
	const char *message = message_of(reply);
	int code = code_of(reply);

	if (!code && !*message)
		return 0;
	if (code == CODE_UNAUTHENTICATED || strstr(message, "authentication failed") ||
	    strstr(message, "user name is empty"))
		return refused(http, message, error);
	if (code == CODE_NOT_FOUND)
		return weir_error_set(error, -ENOENT, "etcd: %s", message);
	if (code == CODE_PERMISSION_DENIED)
		return weir_error_set(error, -EPERM,
				      "etcd at %s: user '%s' may not use the keys of this pool "
				      "(/weir/NAME/): grant the right with 'etcdctl role'",
				      http->list, http->user ? http->user : "");
	if (code == CODE_RESOURCE_EXHAUSTED)
		return weir_error_set(error, -ENOSPC,
				      "etcd at %s is full (%s): compact and defragment it, or "
				      "raise its quota, then 'etcdctl alarm disarm'; data in the "
				      "pool is safe",
				      http->list, message);
	if (code == CODE_UNAVAILABLE || strstr(message, "no leader") ||
	    strstr(message, "timed out"))
		return weir_error_set(error, -EHOSTUNREACH,
				      "etcd at %s has no leader (%s): are most of its members up?",
				      http->list, message);
	return weir_error_set(error, -EPROTO, "etcd at %s: %s", http->list, message);
}

/* Asks one server. @reply: receives the answer; NULL: an event of a watch, or an error. */
static int ask(struct weir_pool_etcd_http *http, const char *path, const char *text,
	       long timeout_ms, struct json_object **reply, struct weir_error *error)
{
	char why[CURL_ERROR_SIZE];
	CURLcode rc = post(http, path, text, timeout_ms, why);
	struct json_object *answer;
	int status;

	*reply = NULL;
	if (http->is_watch && http->has_event)
		return 0;
	/* The server confirms a watch at once; but a very short wait may end before that. */
	if (http->is_watch && rc == CURLE_OPERATION_TIMEDOUT &&
	    (http->body.length || timeout_ms < CONNECT_MS))
		return weir_error_set(error, -ETIMEDOUT, "nothing has changed");
	if (rc)
		return weir_error_set(error, -EHOSTUNREACH, "etcd at %s does not answer (%s)",
				      http->list, why);
	answer = parse_body(http);
	if (!answer || !json_object_is_type(answer, json_type_object)) {
		json_object_put(answer);
		return weir_error_set(error, -EPROTO, "%s: not the gateway of an etcd",
				      http->server[http->current]);
	}
	status = error_of_reply(http, answer, error);
	if (status)
		json_object_put(answer);
	else
		*reply = answer;
	return status;
}

static int ask_all(struct weir_pool_etcd_http *http, const char *path, const char *text,
		   long timeout_ms, struct json_object **reply, struct weir_error *error)
{
	int rc = -EHOSTUNREACH;

	for (unsigned int i = 0; i < http->nr_servers && rc == -EHOSTUNREACH; i++) {
		rc = ask(http, path, text, timeout_ms, reply, error);
		if (rc == -EHOSTUNREACH)
			http->current = (http->current + 1) % http->nr_servers;
	}
	return rc;
}

static int log_in(struct weir_pool_etcd_http *http, struct weir_error *error)
{
	struct json_object *request = json_object_new_object(), *reply, *token;
	bool is_watch = http->is_watch;
	int rc;

	json_object_object_add(request, "name", json_object_new_string(http->user));
	json_object_object_add(request, "password", json_object_new_string(http->password));
	*http->token = '\0';
	http->is_watch = false;
	rc = ask_all(http, "/v3/auth/authenticate", json_object_to_json_string(request), CALL_MS,
		     &reply, error);
	http->is_watch = is_watch;
	json_object_put(request);
	if (rc)
		return rc;
	if (json_object_object_get_ex(reply, "token", &token))
		snprintf(http->token, sizeof(http->token), "%s", json_object_get_string(token));
	json_object_put(reply);
	return *http->token ? 0 : weir_error_set(error, -EPROTO, "etcd gives no token");
}

/* Tokens end after some minutes: then the user proves the password again. */
static int ask_as_user(struct weir_pool_etcd_http *http, const char *path, const char *text,
		       long timeout_ms, struct json_object **reply, struct weir_error *error)
{
	bool had_token = *http->token;
	int rc = http->user && !had_token ? log_in(http, error) : 0;

	if (rc)
		return rc;
	rc = ask_all(http, path, text, timeout_ms, reply, error);
	if (rc != -EKEYREJECTED || !had_token)
		return rc;
	rc = log_in(http, error);
	return rc ? rc : ask_all(http, path, text, timeout_ms, reply, error);
}

int weir_pool_etcd_http_call(struct weir_pool_etcd_http *http, const char *path,
			     struct json_object *request, struct json_object **reply,
			     struct weir_error *error)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	int rc;

	http->is_watch = false;
	rc = ask_as_user(http, path, text, CALL_MS, reply, error);
	json_object_put(request);
	return rc;
}

int weir_pool_etcd_http_watch(struct weir_pool_etcd_http *http, struct json_object *request,
			      unsigned int timeout_ms, struct weir_error *error)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	struct json_object *reply = NULL; /* without an answer, nobody sets it */
	int rc;

	http->is_watch = true;
	rc = ask_as_user(http, "/v3/watch", text, timeout_ms ? (long)timeout_ms : 1, &reply,
			 error);
	json_object_put(request);
	json_object_put(reply);
	return rc;
}
