/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows with classes, in random worlds of users and a device with completions in order. A naive
 * account of waiting users and of work requests in flight tells right takes from wrong ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "core/sched/window_classes.h"

#define USERS 6
#define QUEUE 4096
#define STEPS 20000
#define SEEDS 40
#define CHAIN 3 /* work requests of a turn */
#define SEGMENT WEIR_SCHED_SEGMENT_BYTES

struct class_user {
	struct weir_window_waiter waiter;
	enum weir_window_class class;
	uint32_t bytes; /* of each of its work requests */
	uint32_t wanted; /* work requests not yet taken */
	uint32_t wrs; /* in flight */
	uint64_t sent;
};

struct class_world {
	struct weir_window window;
	struct weir_window_classes classes;
	struct class_user users[USERS];
	/* the work requests in flight, the oldest first */
	struct {
		unsigned int user;
		bool has_class;
	} device[QUEUE];
	unsigned int head, tail;
	uint64_t passed[WEIR_WINDOW_CLASSES]; /* bytes of higher classes while the class waits */
	uint64_t rng;
};

static void world_open(struct class_world *world, uint64_t bytes_max, uint32_t wrs_max)
{
	unsigned int i;

	memset(world, 0, sizeof(*world));
	for (i = 0; i < USERS; i++)
		weir_window_waiter_init(&world->users[i].waiter);
	assert_int_equal(weir_window_init(&world->window, bytes_max, wrs_max), 0);
	weir_window_classes_init(&world->classes);
}

static void user_open(struct class_world *world, unsigned int nr, enum weir_window_class class,
		      uint16_t weight, uint32_t bytes)
{
	struct class_user *user = &world->users[nr];

	*user = (struct class_user){ .class = class, .bytes = bytes };
	weir_window_waiter_init(&user->waiter);
	if (!weight)
		return;
	weir_window_classes_set(&world->classes, &user->waiter, class, weight);
	weir_window_classes_join(&world->window, &world->classes);
}

static bool waits(const struct class_user *user)
{
	return !weir_list_is_empty(&user->waiter.link);
}

static bool class_waits(const struct class_world *world, enum weir_window_class class)
{
	unsigned int i;

	for (i = 0; i < USERS; i++)
		if (world->users[i].class == class && waits(&world->users[i]))
			return true;
	return false;
}

static uint64_t low_bytes(const struct class_world *world)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < USERS; i++)
		if (world->users[i].class > WEIR_WINDOW_URGENT)
			bytes += (uint64_t)world->users[i].wrs * world->users[i].bytes;
	return bytes;
}

/* Most bytes that low classes may have in flight: a segment for each user, or the limit. */
static uint64_t low_bytes_max(const struct class_world *world)
{
	uint64_t segments = 0;
	unsigned int i;

	for (i = 0; i < USERS; i++)
		if (world->users[i].class > WEIR_WINDOW_URGENT &&
		    (world->users[i].wrs || world->users[i].wanted || waits(&world->users[i])))
			segments++;
	return segments * SEGMENT > WEIR_WINDOW_LOW_BYTES ? segments * SEGMENT :
							    WEIR_WINDOW_LOW_BYTES;
}

/* A take of a class has succeeded: no higher class may wait for room that is there. */
static void check_turn(struct class_world *world, const struct class_user *user)
{
	unsigned int class, i;

	for (i = 0; i < USERS; i++) {
		const struct class_user *other = &world->users[i];

		if (other->class >= user->class || !waits(other))
			continue;
		assert_true(!weir_window_fits(&world->window, other->bytes) ||
			    world->passed[user->class] >=
				    (uint64_t)WEIR_WINDOW_PASS_SEGMENTS * SEGMENT ||
			    (other->class > WEIR_WINDOW_URGENT &&
			     low_bytes(world) + SEGMENT > low_bytes_max(world)));
	}
	world->passed[user->class] = 0;
	for (class = user->class + 1; class < WEIR_WINDOW_CLASSES; class ++)
		world->passed[class] =
			class_waits(world, class) ? world->passed[class] + user->bytes : 0;
}

static int take(struct class_world *world, struct class_user *user)
{
	int rc = weir_window_take(&world->window, &user->waiter, user->bytes);

	if (rc)
		return rc;
	if (world->window.classes)
		check_turn(world, user);
	user->wanted--;
	user->wrs++;
	user->sent += user->bytes;
	world->device[world->tail % QUEUE].user = (unsigned int)(user - world->users);
	world->device[world->tail++ % QUEUE].has_class = world->window.classes;
	assert_true(world->window.bytes <= world->window.bytes_max);
	assert_true(world->window.wrs <= world->window.wrs_max);
	if (world->window.classes && user->class > WEIR_WINDOW_URGENT)
		assert_true(low_bytes(world) <= low_bytes_max(world));
	return 0;
}

/* As an engine does: chains, each a turn of its own, until the window refuses or all is taken. */
static void run_user(struct class_world *world, struct class_user *user)
{
	unsigned int chain;
	int rc = 0;

	while (!rc && user->wanted && !weir_window_must_wait(&world->window, &user->waiter)) {
		for (chain = 0; !rc && chain < CHAIN && user->wanted; chain++)
			rc = take(world, user);
		if (!rc || chain > 1)
			weir_window_leave(&user->waiter);
		if (chain > 1)
			rc = 0;
	}
	if (!user->wanted)
		weir_window_leave(&user->waiter);
}

static void call_waiters(struct class_world *world)
{
	struct weir_window_waiter *waiter;

	while ((waiter = weir_window_next_waiter(&world->window)))
		run_user(world, container_of(waiter, struct class_user, waiter));
}

static void complete_oldest(struct class_world *world)
{
	unsigned int at = world->head++ % QUEUE;
	struct class_user *user = &world->users[world->device[at].user];

	if (world->device[at].has_class)
		weir_window_classes_completed(&user->waiter, user->bytes);
	weir_window_give(&world->window, user->bytes);
	user->wrs--;
	run_user(world, user);
	call_waiters(world);
}

/* With nothing in flight, no user may wait. */
static void finish(struct class_world *world)
{
	unsigned int i;

	while (world->head != world->tail)
		complete_oldest(world);
	for (i = 0; i < USERS; i++) {
		assert_int_equal(world->users[i].wanted, 0);
		assert_false(waits(&world->users[i]));
	}
	assert_int_equal(world->window.bytes, 0);
	assert_int_equal(world->classes.sched.low_bytes, 0);
	assert_int_equal(world->classes.sched.low_floor, 0);
}

static void turns_are_right_in_random_worlds(void **state)
{
	static struct class_world world;
	uint64_t seed;
	unsigned int i;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++) {
		world_open(&world, SEGMENT * (1 + seed % 8), 4 + seed % 13);
		world.rng = seed;
		for (i = 0; i < USERS; i++)
			user_open(&world, i, (enum weir_window_class)(i % WEIR_WINDOW_CLASSES),
				  (uint16_t)(1 + weir_rng_next(&world.rng) % 4),
				  1 + weir_rng_next(&world.rng) % SEGMENT);
		for (i = 0; i < STEPS; i++) {
			struct class_user *user = &world.users[weir_rng_next(&world.rng) % USERS];

			if (weir_rng_next(&world.rng) % 4 && user->wanted < 64) {
				user->wanted += 1 + weir_rng_next(&world.rng) % 8;
				run_user(&world, user);
				call_waiters(&world);
			} else if (world.head != world.tail) {
				complete_oldest(&world);
			}
		}
		finish(&world);
	}
}

/* Two users of a class that always want more, with weights 1 and 3. */
static void users_of_a_class_share_by_weight(void **state)
{
	static struct class_world world;
	unsigned int i;

	(void)state;
	world_open(&world, 4 * SEGMENT, 64);
	user_open(&world, 0, WEIR_WINDOW_BULK, 1, SEGMENT / 2);
	user_open(&world, 1, WEIR_WINDOW_BULK, 3, SEGMENT / 2);
	for (i = 0; i < STEPS; i++) {
		world.users[i % 2].wanted += 2;
		run_user(&world, &world.users[i % 2]);
		if (world.head != world.tail)
			complete_oldest(&world);
	}
	assert_in_range(world.users[1].sent / (world.users[0].sent / 100), 290, 310);
}

/*
 * An urgent request finds two segments on the device, in an 8 MiB window with much bulk. The line
 * would have 8 MiB there.
 */
static void bulk_leaves_the_device_to_urgent_requests(void **state)
{
	static struct class_world world;
	unsigned int i;

	(void)state;
	world_open(&world, 8u << 20, 4096);
	user_open(&world, 0, WEIR_WINDOW_URGENT, 1, 4096);
	user_open(&world, 1, WEIR_WINDOW_BULK, 1, SEGMENT);
	user_open(&world, 2, WEIR_WINDOW_NORMAL, 0, SEGMENT);
	world.users[1].wanted = world.users[2].wanted = 1000;
	run_user(&world, &world.users[1]);
	run_user(&world, &world.users[2]);
	for (i = 0; i < 100; i++) {
		world.users[0].wanted = 1;
		run_user(&world, &world.users[0]);
		assert_int_equal(world.users[0].wanted, 0);
		assert_true(world.window.bytes <= WEIR_WINDOW_LOW_BYTES + 4096);
		while (world.users[0].wrs)
			complete_oldest(&world);
	}
	finish(&world);
	assert_int_equal(world.users[1].sent, world.users[2].sent);
}

/* An urgent user takes the room that was offered to another, which is then offered room again. */
static void an_offer_that_was_overtaken_comes_again(void **state)
{
	static struct class_world world;

	(void)state;
	world_open(&world, SEGMENT, 64);
	user_open(&world, 0, WEIR_WINDOW_URGENT, 1, SEGMENT);
	user_open(&world, 1, WEIR_WINDOW_BULK, 1, SEGMENT);
	assert_int_equal(weir_window_take(&world.window, &world.users[0].waiter, SEGMENT), 0);
	weir_window_leave(&world.users[0].waiter);
	world.users[1].wanted = 1;
	run_user(&world, &world.users[1]);
	assert_true(waits(&world.users[1]));
	weir_window_classes_completed(&world.users[0].waiter, SEGMENT);
	weir_window_give(&world.window, SEGMENT);
	assert_ptr_equal(weir_window_next_waiter(&world.window), &world.users[1].waiter);
	world.users[0].wanted = 1;
	run_user(&world, &world.users[0]);
	assert_int_equal(world.users[0].wrs, 1);
	run_user(&world, &world.users[1]);
	assert_int_equal(world.users[1].wrs, 0);
	finish(&world);
}

/* The last user with a class has gone: the line is back, for waiters and for a lone user. */
static void without_members_the_line_is_back(void **state)
{
	static struct class_world world;

	(void)state;
	world_open(&world, 4 * SEGMENT, 64);
	user_open(&world, 1, WEIR_WINDOW_NORMAL, 0, SEGMENT);
	assert_true(weir_window_try_take(&world.window, 1));
	weir_window_give(&world.window, 1);
	user_open(&world, 0, WEIR_WINDOW_URGENT, 1, SEGMENT);
	assert_false(weir_window_try_take(&world.window, 1));
	world.users[1].wanted = 8;
	run_user(&world, &world.users[1]);
	assert_int_equal(world.users[1].wrs, 2);
	assert_true(waits(&world.users[1]));
	weir_window_classes_part(&world.window);
	call_waiters(&world);
	assert_int_equal(world.users[1].wrs, 4);
	finish(&world);
	assert_true(weir_window_try_take(&world.window, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_right_in_random_worlds),
		cmocka_unit_test(users_of_a_class_share_by_weight),
		cmocka_unit_test(bulk_leaves_the_device_to_urgent_requests),
		cmocka_unit_test(an_offer_that_was_overtaken_comes_again),
		cmocka_unit_test(without_members_the_line_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
