/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread looks for ended spans from time to time, because a wake-up would cost the request more
 * than its span. Records go back before the request to the collector, so a slow collector holds
 * none. Nothing is sent twice: a failed request is lost, and counted.
 */
#include "lib/span/sender.h"

#include <errno.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/http/http.h"
#include "lib/base/thread.h"
#include "lib/span/otlp.h"

#define PERIOD_NS (100 * WEIR_NS_PER_MS)
#define BATCH 512u /* spans of a request: OTEL_BSP_MAX_EXPORT_BATCH_SIZE's default */
#define CONNECT_MS 1000L
#define POST_MS 2000L
#define ANSWER_MAX 4096u

/**
 * struct weir_span_sender - of this process
 * @stops: a futex
 * @answer: the collector's last, as far as it fits
 * @exported, @refused: atomic
 */
static struct weir_span_sender {
	const struct weir_span_settings *settings;
	pthread_t thread;
	uint32_t stops;
	CURL *curl;
	struct curl_slist *headers;
	char answer[ANSWER_MAX];
	size_t answer_length;
	uint64_t exported, refused;
} sender;

static size_t take_answer(char *data, size_t size, size_t count, void *arg)
{
	size_t bytes = size * count, room = sizeof(sender.answer) - 1 - sender.answer_length;

	(void)arg;
	if (room > bytes)
		room = bytes;
	memcpy(sender.answer + sender.answer_length, data, room);
	sender.answer_length += room;
	sender.answer[sender.answer_length] = '\0';
	return bytes;
}

/* Return: whether the collector has taken the request. */
static bool post(const char *text)
{
	long status = 0;

	sender.answer_length = 0;
	*sender.answer = '\0';
	curl_easy_setopt(sender.curl, CURLOPT_POSTFIELDS, text);
	if (curl_easy_perform(sender.curl))
		return false;
	curl_easy_getinfo(sender.curl, CURLINFO_RESPONSE_CODE, &status);
	return status / 100 == 2;
}

/* Writes up to BATCH spans, and gives their records back. Return: the next span. */
static struct weir_inbox_node *write_batch(struct weir_inbox_node *node, struct json_object *spans,
					   unsigned int *count)
{
	struct timespec now;
	uint64_t epoch_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	epoch_ns = (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec - weir_now_ns();
	for (*count = 0; node && *count < BATCH; ++*count) {
		struct weir_span *span = container_of(node, struct weir_span, node);

		node = node->next;
		weir_span_otlp_add(spans, span, epoch_ns);
		weir_span_put_back(span);
	}
	return node;
}

static struct weir_inbox_node *send_batch(struct weir_inbox_node *node, bool *is_taken)
{
	struct json_object *spans, *request = weir_span_otlp_request(sender.settings, &spans);
	uint64_t refused = 0;
	unsigned int count;

	node = write_batch(node, spans, &count);
	*is_taken = post(json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN));
	json_object_put(request);
	refused = *is_taken ? weir_span_otlp_rejected(sender.answer) : count;
	if (refused > count)
		refused = count;
	__atomic_add_fetch(&sender.refused, refused, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sender.exported, count - refused, __ATOMIC_RELAXED);
	return node;
}

static void refuse(struct weir_inbox_node *node)
{
	while (node) {
		struct weir_span *span = container_of(node, struct weir_span, node);

		node = node->next;
		weir_span_put_back(span);
		__atomic_add_fetch(&sender.refused, 1, __ATOMIC_RELAXED);
	}
}

/* A process that ends does not try for each batch. */
static void send_ended(bool is_last)
{
	struct weir_inbox_node *node = weir_span_take_ended();
	bool is_taken = true;

	while (node && (is_taken || !is_last))
		node = send_batch(node, &is_taken);
	refuse(node);
}

static void *run(void *arg)
{
	bool is_last;

	(void)arg;
	do {
		is_last = __atomic_load_n(&sender.stops, __ATOMIC_ACQUIRE);
		send_ended(is_last);
		if (!is_last)
			weir_futex_wait(&sender.stops, 0, weir_now_ns() + PERIOD_NS);
	} while (!is_last);
	return NULL;
}

static void set_headers(void)
{
	const char *list = sender.settings->headers;
	char name[256], value[256], line[sizeof(name) + sizeof(value) + 2];
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");

	headers = curl_slist_append(headers, "Expect:");
	while (weir_span_settings_pair(&list, name, value, sizeof(name))) {
		snprintf(line, sizeof(line), "%s: %s", name, value);
		headers = curl_slist_append(headers, line);
	}
	sender.headers = headers;
}

static int prepare_curl(void)
{
	CURL *curl = weir_http_handle();

	if (!curl)
		return -ENOMEM;
	sender.curl = curl;
	set_headers();
	curl_easy_setopt(curl, CURLOPT_URL, sender.settings->endpoint);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, sender.headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, POST_MS);
	return 0;
}

static void release_curl(void)
{
	curl_easy_cleanup(sender.curl);
	curl_slist_free_all(sender.headers);
	sender.curl = NULL;
	sender.headers = NULL;
}

int weir_span_sender_start(const struct weir_span_settings *settings)
{
	int rc;

	sender.settings = settings;
	sender.stops = 0;
	rc = prepare_curl();
	if (rc)
		return rc;
	rc = weir_thread_create(&sender.thread, "weir spans", run, NULL, NULL);
	if (rc)
		release_curl();
	return rc;
}

void weir_span_sender_stop(void)
{
	__atomic_store_n(&sender.stops, 1, __ATOMIC_RELEASE);
	weir_futex_wake(&sender.stops, 1);
	pthread_join(sender.thread, NULL);
	release_curl();
}

void weir_span_sender_counts(struct weir_span_counts *counts)
{
	counts->exported = __atomic_load_n(&sender.exported, __ATOMIC_RELAXED);
	counts->refused = __atomic_load_n(&sender.refused, __ATOMIC_RELAXED);
}
