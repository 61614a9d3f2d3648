/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"

void file_requests_init(struct file_requests *requests)
{
	pthread_condattr_t monotonic;

	TAILQ_INIT(&requests->list);
	pthread_mutex_init(&requests->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&requests->arrived, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void file_requests_fini(struct file_requests *requests)
{
	pthread_cond_destroy(&requests->arrived);
	pthread_mutex_destroy(&requests->lock);
}

/* A client that is gone needs no reply. */
void file_request_end(struct file_request *request, const void *bytes, size_t length)
{
	if (request->call)
		(void)weir_reply(request->call, bytes, length);
	staging_unref(request->conn);
	free(request);
}

int file_requests_add(struct file_requests *requests, struct staging_conn *conn,
		      struct weir_call *call, const void *message, size_t length)
{
	struct file_request *request = malloc(sizeof(*request) + length);
	bool is_closed;

	if (!request)
		return -ENOMEM;
	request->conn = conn;
	request->call = call;
	request->length = length;
	memcpy(request->message, message, length);
	staging_ref(conn);
	pthread_mutex_lock(&requests->lock);
	is_closed = requests->is_closed;
	if (!is_closed) {
		TAILQ_INSERT_TAIL(&requests->list, request, entry);
		pthread_cond_signal(&requests->arrived);
	}
	pthread_mutex_unlock(&requests->lock);
	if (is_closed)
		file_request_end(request, NULL, 0);
	return 0;
}

bool file_requests_await(struct file_requests *requests, struct file_request_list *list,
			 uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / WEIR_NS_PER_S),
		.tv_nsec = (long)(until_ns % WEIR_NS_PER_S),
	};
	bool goes_on;

	pthread_mutex_lock(&requests->lock);
	while (TAILQ_EMPTY(&requests->list) && !requests->stops && weir_now_ns() < until_ns)
		pthread_cond_timedwait(&requests->arrived, &requests->lock, &until);
	TAILQ_CONCAT(list, &requests->list, entry);
	goes_on = !requests->stops;
	pthread_mutex_unlock(&requests->lock);
	return goes_on;
}

void file_requests_stop(struct file_requests *requests)
{
	pthread_mutex_lock(&requests->lock);
	__atomic_store_n(&requests->stops, true, __ATOMIC_RELEASE);
	pthread_cond_signal(&requests->arrived);
	pthread_mutex_unlock(&requests->lock);
}

void file_requests_close(struct file_requests *requests, struct file_request_list *list)
{
	struct file_request *request;

	pthread_mutex_lock(&requests->lock);
	TAILQ_CONCAT(list, &requests->list, entry);
	requests->is_closed = true;
	pthread_mutex_unlock(&requests->lock);
	while ((request = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, request, entry);
		file_request_end(request, NULL, 0);
	}
}

enum wire_fs_op file_message_op(const void *message, size_t length)
{
	struct wire_fs_head head;

	if (length < sizeof(struct wire_fs_call) + sizeof(head))
		return 0;
	memcpy(&head, (const char *)message + sizeof(struct wire_fs_call), sizeof(head));
	return head.op;
}
