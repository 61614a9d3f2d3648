/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib scq; devices: softnic rxe; timeout: 180 */
/* Sessions that share completion queues, and the thread that polls those queues. */
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"

#define SESSIONS 4
#define ROUNDS 200
#define DEPTH 16
#define PLACE 64

/* A session, and a thread that uses it. */
struct user {
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	pthread_t thread;
	bool stop; /* atomic */
	int status; /* the first error */
	uint64_t done; /* rounds begun; atomic */
	char bytes[2 * DEPTH * PLACE];
};

static void open_user(struct user *user, const struct donor_process *donor,
		      struct weir_session_options options)
{
	options.polling = WEIR_POLLING_SCQ;
	memset(user, 0, sizeof(*user));
	user->session = session_to(donor, &options);
	user->region = region_of(user->session, MIB);
	assert_int_equal(weir_memory_register(user->session, user->bytes, sizeof(user->bytes),
					      &user->memory, NULL),
			 0);
}

static void close_user(struct user *user)
{
	weir_memory_deregister(user->memory);
	weir_region_close(user->region);
	weir_session_close(user->session);
}

static struct ibv_cq *cq_of(const struct user *user, unsigned int channel)
{
	struct ibv_cq *cq = NULL;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	assert_int_equal(weir_session_verbs(user->session, channel, &pd, &cq, &qp), 0);
	assert_ptr_equal(qp->send_cq, cq);
	return cq;
}

/* The number of this process's threads with the name @name. */
static int count_threads(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], comm[32];
	struct dirent *entry;
	int count = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		count += fgets(comm, sizeof(comm), file) && !strncmp(comm, name, strlen(name));
		fclose(file);
	}
	closedir(tasks);
	return count;
}

/*
 * pthread_join() returns before the kernel removes the thread from /proc
 * (CLONE_CHILD_CLEARTID), so the thread may still be seen for a moment.
 */
static void threads_end(const char *name)
{
	uint64_t deadline_ns = now_ns() + 60 * SECOND_NS;

	while (count_threads(name) > 0) {
		if (now_ns() > deadline_ns)
			fail_msg("there is still a thread that is called %s", name);
		usleep(200);
	}
}

/* Write all blocks at once and read them back. Return: the first error. */
static int write_and_read(struct user *user)
{
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct weir_iov iov = { user->bytes, PLACE, user->memory };
	int i, rc, submitted = 0;

	__atomic_fetch_add(&user->done, 1, __ATOMIC_RELAXED);
	memset(user->bytes, (int)user->done, DEPTH * PLACE);
	for (i = 0; i < 2 * DEPTH; i++) {
		uint64_t offset = (uint64_t)(i % DEPTH) * PLACE;

		iov.addr = user->bytes + i * PLACE;
		rc = i < DEPTH ?
			     weir_write_async(user->region, offset, &iov, 1, &completion, NULL) :
			     weir_read_async(user->region, offset, &iov, 1, &completion, NULL);
		if (rc)
			break;
		submitted++;
	}
	tally_wait(&tally, submitted);
	if (rc || tally.status)
		return rc ? rc : tally.status;
	return memcmp(user->bytes, user->bytes + DEPTH * PLACE, DEPTH * PLACE) ? -EILSEQ : 0;
}

/* Blocking calls: the caller sleeps, and the polling thread wakes it. */
static int wait_for_each(struct user *user)
{
	char to[PLACE], from[PLACE];
	int rc;

	memset(to, (int)user->done, sizeof(to));
	rc = weir_write(user->region, 65536, to, sizeof(to));
	if (!rc)
		rc = weir_read(user->region, 65536, from, sizeof(from));
	if (!rc)
		rc = memcmp(to, from, sizeof(to)) ? -EILSEQ : 0;
	return rc;
}

static void *use(void *arg)
{
	struct user *user = arg;

	while (!user->status && !__atomic_load_n(&user->stop, __ATOMIC_RELAXED)) {
		user->status = write_and_read(user);
		if (!user->status)
			user->status = wait_for_each(user);
	}
	return NULL;
}

static void start_user(struct user *user)
{
	assert_int_equal(pthread_create(&user->thread, NULL, use, user), 0);
}

/* A busy machine may not let the thread run for longer than a whole test takes. */
static void await_first_round(const struct user *user)
{
	while (!__atomic_load_n(&user->done, __ATOMIC_RELAXED))
		usleep(1000);
}

static int stop_user(struct user *user)
{
	__atomic_store_n(&user->stop, true, __ATOMIC_RELAXED);
	pthread_join(user->thread, NULL);
	return user->status;
}

static void sessions_share_a_queue_and_a_thread(void **in)
{
	struct user users[SESSIONS];
	struct donor_process donor;
	int i, round;

	(void)in;
	donor_process_start(&donor, "16777216", NULL);
	for (i = 0; i < SESSIONS; i++)
		open_user(&users[i], &donor, (struct weir_session_options){ TUNING(.depth = 32) });
	for (i = 0; i < SESSIONS; i++) {
		assert_ptr_equal(cq_of(&users[i], 0), cq_of(&users[0], 0));
		assert_ptr_equal(cq_of(&users[i], 1), cq_of(&users[0], 0));
	}
	assert_int_equal(count_threads("weir-scq"), 1);
	assert_int_equal(count_threads("weir-session"), 0);
	for (round = 0; round < fixture_rounds(ROUNDS); round++) {
		for (i = 0; i < SESSIONS; i++) {
			assert_int_equal(write_and_read(&users[i]), 0);
			assert_int_equal(wait_for_each(&users[i]), 0);
		}
	}
	for (i = 0; i < SESSIONS; i++)
		close_user(&users[i]);
	threads_end("weir-scq");
	donor_process_stop(&donor);
}

static void the_first_session_says_how_many_queues_there_are(void **in)
{
	struct user users[2];
	struct donor_process donor;
	unsigned int cqs;

	(void)in;
	donor_process_start(&donor, "16777216", NULL);
	for (cqs = 1; cqs <= 3; cqs++) {
		open_user(&users[0], &donor, (struct weir_session_options){ TUNING(.cqs = cqs) });
		open_user(&users[1], &donor, (struct weir_session_options){ TUNING(.cqs = 16) });
		assert_true((cq_of(&users[0], 0) == cq_of(&users[0], 1)) == (cqs == 1));
		assert_true((cq_of(&users[1], 0) == cq_of(&users[1], 1)) == (cqs == 1));
		/*
		 * In rotation: channels 0 and 1 of the second session are the third and fourth
		 * overall.
		 */
		assert_ptr_equal(cq_of(&users[1], cqs % 2), cq_of(&users[0], 0));
		assert_int_equal(write_and_read(&users[0]), 0);
		assert_int_equal(write_and_read(&users[1]), 0);
		/* The first session may also end first. */
		close_user(&users[0]);
		assert_int_equal(write_and_read(&users[1]), 0);
		assert_int_equal(wait_for_each(&users[1]), 0);
		close_user(&users[1]);
	}
	donor_process_stop(&donor);
}

static void sessions_come_and_go_while_others_work(void **in)
{
	struct user users[2], guest;
	struct donor_process donor;
	int i;

	(void)in;
	donor_process_start(&donor, "16777216", NULL);
	for (i = 0; i < 2; i++)
		open_user(&users[i], &donor, (struct weir_session_options){ TUNING(.depth = 8) });
	for (i = 0; i < 2; i++)
		start_user(&users[i]);
	for (i = 0; i < 2; i++)
		await_first_round(&users[i]);
	for (i = 0; i < fixture_rounds(20); i++) {
		struct completion_tally tally = { 0 };
		struct weir_completion completion = { .done = tally_done, .arg = &tally };
		struct weir_iov iov = { guest.bytes, PLACE, NULL };

		open_user(&guest, &donor, (struct weir_session_options){ TUNING(.depth = 64) });
		iov.memory = guest.memory;
		assert_int_equal(write_and_read(&guest), 0);
		assert_int_equal(weir_read_async(guest.region, 0, &iov, 1, &completion, NULL), 0);
		weir_session_close(guest.session); /* with requests in flight */
		assert_int_equal(tally.done, 1);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(stop_user(&users[i]), 0);
	for (i = 0; i < 2; i++) {
		assert_true(users[i].done > 0);
		close_user(&users[i]);
	}
	donor_process_stop(&donor);
}

static void a_dead_donor_costs_the_others_nothing(void **in)
{
	struct user living, dying;
	struct donor_process donors[2];

	(void)in;
	donor_process_start(&donors[0], "16777216", NULL);
	donor_process_start(&donors[1], "16777216", NULL);
	open_user(&living, &donors[0], (struct weir_session_options){ 0 });
	open_user(&dying, &donors[1], (struct weir_session_options){ .timeout_ns = SECOND_NS });
	start_user(&living);
	start_user(&dying);
	donor_process_kill(&donors[1]);
	pthread_join(dying.thread, NULL);
	assert_true(dying.status < 0 && dying.status != -EILSEQ);
	close_user(&dying);
	assert_int_equal(stop_user(&living), 0);
	assert_int_equal(write_and_read(&living), 0);
	close_user(&living);
	donor_process_stop(&donors[0]);
}

static void told(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		 size_t length)
{
	(void)peer;
	(void)call;
	(void)data;
	assert_int_equal(length, 1);
	tally_done(arg, 0);
}

static void messages_arrive_too(void **in)
{
	struct completion_tally tallies[2] = { 0 };
	struct user users[2];
	struct donor_process donor;
	char answer[8];
	size_t length;
	int i, sent;

	(void)in;
	donor_process_start(&donor, "16777216", NULL);
	for (i = 0; i < 2; i++)
		open_user(&users[i], &donor,
			  (struct weir_session_options){ .on_message = told, .arg = &tallies[i] });
	for (sent = 1; sent <= 20; sent++) {
		for (i = 0; i < 2; i++) {
			assert_int_equal(weir_send(users[i].session, "p", 1), 0);
			tally_wait(&tallies[i], sent);
			assert_int_equal(weir_call(users[i].session, "echo", 4, answer,
						   sizeof(answer), &length),
					 0);
			assert_int_equal(length, 4);
		}
	}
	for (i = 0; i < 2; i++)
		close_user(&users[i]);
	donor_process_stop(&donor);
}

static void what_makes_no_sense_is_refused(void **in)
{
	struct weir_session_options options = { .size = sizeof(options),
						.polling = WEIR_POLLING_SCQ,
						TUNING(.cqs = 17) };
	struct weir_error error = { "" };
	struct weir_session *session;

	(void)in;
	assert_int_equal(weir_session_open("127.0.0.1", &options, &session, &error), -EINVAL);
	assert_non_null(strstr(error.text, "17"));
	options = (struct weir_session_options){ .size = sizeof(options),
						 .polling = WEIR_POLLING_SCQ,
						 .no_thread = true };
	assert_int_equal(weir_session_open("127.0.0.1", &options, &session, &error), -EINVAL);
	assert_non_null(strstr(error.text, "no_thread"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_share_a_queue_and_a_thread),
		cmocka_unit_test(the_first_session_says_how_many_queues_there_are),
		cmocka_unit_test(sessions_come_and_go_while_others_work),
		cmocka_unit_test(a_dead_donor_costs_the_others_nothing),
		cmocka_unit_test(messages_arrive_too),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
