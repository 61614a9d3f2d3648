/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Joining of the members: see wire/group.h. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/link/reconnect.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/exchange/setup.h"
#include "lib/group/group.h"
#include "wire/group.h"

enum { JOIN_S = 10, SLICE_MS = 100 };

/**
 * struct join - a group being joined
 * @group: members so far
 * @listener: where higher members connect to us; NULL: there are none
 * @options: for each exchange
 * @deadline_ns: all members must have joined by then
 * @addresses: where each member listens
 */
struct join {
	struct weir_group *group;
	struct weir_exchange_listener *listener;
	struct weir_exchange_options options;
	uint64_t deadline_ns;
	char (*addresses)[WIRE_GROUP_ADDRESS];
	struct weir_error *error;
};

static uint64_t left_ns(const struct join *j)
{
	uint64_t now_ns = weir_now_ns();

	return now_ns < j->deadline_ns ? j->deadline_ns - now_ns : 1;
}

/* Timeout of a single wait; between waits we check whether to go on. */
static uint64_t slice_ns(const struct join *j)
{
	uint64_t ns = left_ns(j);

	return ns < SLICE_MS * WEIR_NS_PER_MS ? ns : SLICE_MS * WEIR_NS_PER_MS;
}

/* After a slice that ended with @status. Return: whether to wait on. */
static bool goes_on(const struct join *j, int *status)
{
	int rc;

	if (*status != -ETIMEDOUT && *status != -EAGAIN)
		return false;
	rc = weir_exchange_check_goes_on(&j->options, j->error);
	if (!rc && j->listener)
		rc = weir_exchange_listener_check_open(j->listener, j->error);
	if (rc)
		*status = rc;
	return !rc && weir_now_ns() < j->deadline_ns;
}

static int get_message(const struct join *j, struct weir_exchange *x, void *data, size_t max,
		       size_t *length)
{
	int status;

	do
		status = weir_exchange_get(x, data, max, length, slice_ns(j));
	while (goes_on(j, &status));
	return status;
}

static int put_message(const struct join *j, struct weir_exchange *x, const void *data,
		       size_t length)
{
	const char *at = data;
	size_t done;
	int status;

	do {
		status = weir_exchange_put(x, at, length, slice_ns(j), &done);
		at += done;
		length -= done;
	} while (goes_on(j, &status));
	if (status)
		return status;
	do
		status = weir_exchange_flush(x, slice_ns(j));
	while (goes_on(j, &status));
	return status;
}

static int fail_with(const struct join *j, unsigned int member, int status)
{
	return weir_error_set(j->error, status, "member %u of the group: %s", member,
			      weir_strerror(status));
}

static int add_member(struct join *j, unsigned int member, struct weir_exchange *x)
{
	int status = 0;

	if (j->group->peers[member].x)
		status = weir_error_set(j->error, -EEXIST,
					"two processes claim to be member %u of the group", member);
	else if (weir_exchange_is_unordered(x))
		status = weir_error_set(j->error, -EINVAL,
					"a group needs ordered messages: member %u or "
					"this member has the option unordered",
					member);
	else if (weir_group_add_peer(j->group, member, x))
		status = weir_error_set(j->error, -ENOMEM, "no memory for member %u of the group",
					member);
	if (status)
		weir_exchange_close(x);
	return status;
}

/* Accepts one member with a higher number. */
static int accept_one(struct join *j)
{
	struct wire_group_hello hello;
	struct weir_exchange *x;
	size_t length = 0;
	int status;

	do
		status = weir_exchange_accept(j->listener, slice_ns(j), &x, j->error);
	while (goes_on(j, &status));
	if (status == -ETIMEDOUT)
		return weir_error_set(j->error, status,
				      "not all %u members of the group have joined",
				      j->group->size);
	if (status)
		return status;
	status = get_message(j, x, &hello, sizeof(hello), &length);
	if (!status || status == -EMSGSIZE)
		status = wire_group_hello_check(&hello, length, j->group->size, j->group->member);
	if (status) {
		weir_exchange_close(x);
		if (status == -ECANCELED)
			return status;
		return weir_error_set(
			j->error, status,
			status == -EPROTO ?
				"a member of another group connected: our size is %u" :
				"a peer connected and did not say its member number (size %u)",
			j->group->size);
	}
	memcpy(j->addresses[hello.member], hello.address, WIRE_GROUP_ADDRESS);
	return add_member(j, hello.member, x);
}

static int accept_those_above(struct join *j)
{
	unsigned int i;
	int status = 0;

	for (i = j->group->member + 1; !status && i < j->group->size; i++)
		status = accept_one(j);
	return status;
}

static int send_hello(struct join *j, unsigned int member)
{
	struct wire_group_hello hello = {
		.magic = WIRE_GROUP_MAGIC,
		.member = j->group->member,
		.size = j->group->size,
	};
	struct weir_exchange *x = j->group->peers[member].x;
	int status;

	if (j->listener)
		snprintf(hello.address, sizeof(hello.address), "%s",
			 weir_exchange_address(j->listener));
	status = put_message(j, x, &hello, sizeof(hello));
	return status ? fail_with(j, member, status) : 0;
}

/* Retries, since member 0 may start later than we do. */
static int connect_to(struct join *j, unsigned int member)
{
	struct weir_reconnect attempts;
	struct weir_exchange *x;
	int status;

	weir_reconnect_begin(&attempts, j->deadline_ns, weir_now_ns());
	for (;;) {
		j->options.timeout_ns = left_ns(j);
		status = weir_exchange_connect(j->addresses[member], &j->options, &x, j->error);
		if ((status != -ECONNREFUSED && status != -EAGAIN) ||
		    weir_now_ns() >= j->deadline_ns)
			break;
		if (weir_exchange_check_goes_on(&j->options, j->error))
			return -ECANCELED;
		weir_reconnect_pause(&attempts, randombytes_random(), weir_now_ns());
		weir_sleep_until_ns(attempts.next_ns);
	}
	if (!status)
		status = add_member(j, member, x);
	return status ? status : send_hello(j, member);
}

static int learn_addresses(struct join *j)
{
	size_t length = 0, size = (size_t)j->group->size * WIRE_GROUP_ADDRESS;
	int status;

	status = get_message(j, j->group->peers[0].x, j->addresses, size, &length);
	if (!status || status == -EMSGSIZE)
		status = wire_group_addresses_check(j->addresses, length, j->group->size);
	return status ? fail_with(j, 0, status) : 0;
}

static int tell_addresses(struct join *j)
{
	size_t size = (size_t)j->group->size * WIRE_GROUP_ADDRESS;
	unsigned int i;
	int status = 0;

	for (i = 1; !status && i < j->group->size; i++) {
		status = put_message(j, j->group->peers[i].x, j->addresses, size);
		if (status)
			fail_with(j, i, status);
	}
	return status;
}

static int join_leader(struct join *j, const char *here)
{
	char any[WIRE_GROUP_ADDRESS];
	unsigned int i;
	int status = 0;

	if (snprintf(any, sizeof(any), strchr(here, ':') ? "[%s]:0" : "%s:0", here) >=
	    (int)sizeof(any))
		return weir_error_set(j->error, -EINVAL, "%s: not an address", here);
	if (j->group->member + 1 < j->group->size)
		status = weir_exchange_listen(any, &j->options, &j->listener, j->error);
	if (!status)
		status = connect_to(j, 0);
	if (!status)
		status = learn_addresses(j);
	for (i = 1; !status && i < j->group->member; i++)
		status = connect_to(j, i);
	return status ? status : accept_those_above(j);
}

static int begin_join(struct join *j, unsigned int member, unsigned int size, uint64_t timeout_ns)
{
	if (!size || size > WEIR_GROUP_SIZE_MAX || member >= size)
		return weir_error_set(
			j->error, -EINVAL,
			"member %u of %u: a group has 1 to %u members, counted from 0", member,
			size, WEIR_GROUP_SIZE_MAX);
	j->deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns);
	j->group = weir_group_new(member, size);
	j->addresses = calloc(size, sizeof(*j->addresses));
	if (!j->group || !j->addresses)
		return weir_error_set(j->error, -ENOMEM, "no memory for a group of %u", size);
	return 0;
}

static int end_join(struct join *j, int status, struct weir_group **group)
{
	free(j->addresses);
	if (status)
		weir_group_close(j->group);
	else
		*group = j->group;
	return status;
}

int weir_group_lead(struct weir_exchange_listener *listener, unsigned int size, uint64_t timeout_ns,
		    struct weir_group **group, struct weir_error *error)
{
	struct join j = { .listener = listener, .error = error };
	struct weir_exchange_options alone;
	int status = weir_exchange_listener_get(listener, error);

	if (status)
		return status;
	status = begin_join(&j, 0, size, timeout_ns);
	if (!status) {
		weir_exchange_listener_divide_pool(listener, size - 1, &j.options);
		status = accept_those_above(&j);
		weir_exchange_listener_divide_pool(listener, 1, &alone);
	}
	if (!status)
		status = tell_addresses(&j);
	status = end_join(&j, status, group);
	weir_exchange_listener_put(listener);
	return status;
}

int weir_group_join(const char *address, const char *here, unsigned int member, unsigned int size,
		    const struct weir_exchange_options *options, struct weir_group **group,
		    struct weir_error *error)
{
	struct join j = { .error = error };
	int status = weir_sized_in(&j.options, sizeof(j.options), options, "weir_exchange_options",
				   error);

	if (status)
		return status;
	if (!j.options.exchanges && size > 1)
		j.options.exchanges = size - 1;
	if (!member)
		return weir_error_set(error, -EINVAL, "member 0 must lead, not join");
	if (strlen(address) >= WIRE_GROUP_ADDRESS)
		return weir_error_set(error, -EINVAL,
				      "%s: an address may have at most %d characters", address,
				      WIRE_GROUP_ADDRESS - 1);
	status = begin_join(&j, member, size,
			    j.options.timeout_ns ? j.options.timeout_ns : JOIN_S * WEIR_NS_PER_S);
	if (!status) {
		strcpy(j.addresses[0], address);
		status = join_leader(&j, here ? here : "127.0.0.1");
	}
	if (j.listener)
		weir_exchange_unlisten(j.listener);
	return end_join(&j, status, group);
}
