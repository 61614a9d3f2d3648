/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: apps stats view */
/* Statistics are read as written, and malformed files do no harm. */
#include "apps/inspect/session_list.h"
#include "apps/inspect/stats_view.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define SLOTS WEIR_STATS_SHM_SLOTS
#define SAYS(sentence, function)                         \
	{                                                \
		(sentence), (function), NULL, NULL, NULL \
	}

static struct stats_view_trace look;

/* Statistics as a session creates them, and a trace that writes to them. */
struct shown {
	struct weir_stats_shm *stats;
	struct weir_trace trace;
	struct stats_view view;
	int fd;
};

static void shown_init(struct shown *s)
{
	assert_int_equal(weir_stats_shm_open(&s->stats, &s->fd), 0);
	assert_int_equal(weir_trace_init(&s->trace, s->stats->trace, SLOTS), 0);
	weir_stats_shm_publish(s->stats, "softnic0", "127.0.0.1:7474", 5);
	assert_int_equal(stats_view_open(&s->view, s->fd), 0);
}

static void shown_fini(struct shown *s)
{
	stats_view_close(&s->view);
	weir_stats_shm_close(s->stats, s->fd);
}

static void note(struct shown *s, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		weir_trace_note(&s->trace, s->trace.number + 1,
				&(struct weir_trace_record){ .event = WEIR_TRACE_POST, .wrs = 1 });
}

static void statistics_are_read(void **state)
{
	struct weir_stats_shm_window window;
	struct weir_histogram latency;
	struct weir_counters counters;
	struct shown s;

	(void)state;
	shown_init(&s);
	assert_string_equal(s.view.device, "softnic0");
	assert_string_equal(s.view.peer, "127.0.0.1:7474");
	assert_int_equal(s.view.opened_ns, 5);
	s.stats->counters.requests = 7;
	s.stats->counters.reconnects = 8;
	s.stats->window.wrs = 9;
	stats_view_counters(&s.view, &counters, &window);
	assert_int_equal(counters.requests, 7);
	assert_int_equal(counters.reconnects, 8);
	assert_int_equal(window.wrs, 9);
	weir_histogram_add(&s.stats->latency[WEIR_STATS_SHM_WRITE], 5000);
	stats_view_latency(&s.view, WEIR_STATS_SHM_WRITE, &latency);
	assert_int_equal(latency.count, 1);
	assert_int_equal(weir_histogram_at(&latency, 500000), 5000);
	stats_view_latency(&s.view, WEIR_STATS_SHM_READ, &latency);
	assert_int_equal(latency.count, 0);
	shown_fini(&s);
}

static void each_decision_is_seen_once(void **state)
{
	struct shown s;

	(void)state;
	shown_init(&s);
	stats_view_trace(&s.view, 0, &look);
	assert_int_equal(look.count, 0);
	note(&s, 3);
	stats_view_trace(&s.view, 0, &look);
	assert_int_equal(look.count, 3);
	assert_int_equal(look.record[0].at_ns, 1);
	assert_int_equal(look.newest, 3);
	stats_view_trace(&s.view, look.newest, &look);
	assert_int_equal(look.count, 0);
	assert_int_equal(look.newest, 3);
	note(&s, 2);
	stats_view_trace(&s.view, look.newest, &look);
	assert_int_equal(look.count, 2);
	assert_int_equal(look.record[0].at_ns, 4);
	assert_int_equal(look.lost, 0);
	shown_fini(&s);
}

static void overwritten_records_are_counted(void **state)
{
	struct shown s;

	(void)state;
	shown_init(&s);
	note(&s, SLOTS + 10);
	stats_view_trace(&s.view, 0, &look);
	assert_int_equal(look.count, SLOTS);
	assert_int_equal(look.record[0].at_ns, 11);
	assert_int_equal(look.lost, 0); /* the first read reports no loss */
	note(&s, SLOTS + 3);
	stats_view_trace(&s.view, look.newest, &look);
	assert_int_equal(look.count, SLOTS);
	assert_int_equal(look.lost, 3);
	shown_fini(&s);
}

static void numbers_where_they_do_not_belong_are_passed_over(void **state)
{
	struct shown s;

	(void)state;
	shown_init(&s);
	note(&s, 3);
	s.stats->trace[5].number = 4;
	s.stats->trace[6].number = UINT64_MAX;
	stats_view_trace(&s.view, 0, &look);
	assert_int_equal(look.count, 3);
	assert_int_equal(look.newest, 3);
	shown_fini(&s);
}

static void the_last_number_there_is_ends_it(void **state)
{
	struct shown s;

	(void)state;
	shown_init(&s);
	s.stats->trace[SLOTS - 1].number = UINT64_MAX;
	stats_view_trace(&s.view, 1, &look);
	assert_int_equal(look.count, 1);
	assert_int_equal(look.newest, UINT64_MAX);
	assert_int_equal(look.lost, UINT64_MAX - 2);
	stats_view_trace(&s.view, look.newest, &look);
	assert_int_equal(look.count, 0);
	shown_fini(&s);
}

static void texts_end_and_can_be_printed(void **state)
{
	static struct weir_stats_shm stats = { .magic = WEIR_STATS_SHM_MAGIC,
					       .version = WEIR_STATS_SHM_VERSION,
					       .slots = SLOTS,
					       .device = "\x1b[2J\n" };
	struct stats_view view;

	(void)state;
	memset(stats.peer, 'x', sizeof(stats.peer));
	assert_int_equal(stats_view_check(&view, &stats), 0);
	assert_string_equal(view.device, "?[2J?");
	assert_int_equal(strlen(view.peer), WEIR_STATS_SHM_TEXT - 1);
}

/* A file of @size that begins with @head, sealed or not. */
static int file_of(const void *head, size_t head_size, size_t size, int seals)
{
	int fd = memfd_create(WEIR_STATS_SHM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, head, head_size, 0), head_size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void refuses(int fd, int why)
{
	struct stats_view view;

	assert_int_equal(stats_view_open(&view, fd), why);
	close(fd);
}

static void a_file_without_statistics_is_refused(void **state)
{
	struct weir_stats_shm head = { .magic = WEIR_STATS_SHM_MAGIC,
				       .version = WEIR_STATS_SHM_VERSION,
				       .slots = SLOTS };
	size_t begin = offsetof(struct weir_stats_shm, opened_ns), size = sizeof(head);
	int fds[2];

	(void)state;
	refuses(file_of(&head, begin, size, 0), -EPROTO); /* could shrink */
	refuses(file_of(&head, begin, size - 1, F_SEAL_SHRINK), -EPROTO);
	refuses(file_of(&head, begin, size + 1, F_SEAL_SHRINK), -EPROTO);
	refuses(file_of(&head, 8, 8, F_SEAL_SHRINK), -EPROTO);
	refuses(open("/dev/zero", O_RDONLY), -EPROTO);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	refuses(fds[0], -EPROTO);
	close(fds[1]);
	head.slots = 1u << 31;
	refuses(file_of(&head, begin, size, F_SEAL_SHRINK), -EPROTONOSUPPORT);
	head.version++;
	refuses(file_of(&head, begin, size + 4096, F_SEAL_SHRINK), -EPROTONOSUPPORT);
}

static void only_the_session_writes(void **state)
{
	struct shown s;
	char path[64];
	int fd;

	(void)state;
	shown_init(&s);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.fd);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
	shown_fini(&s);
}

static void a_session_is_found_once(void **state)
{
	struct session_list find = { 0 };
	struct shown s;
	int again;

	(void)state;
	shown_init(&s);
	again = dup(s.fd);
	assert_int_equal(session_list_add_process(&find, getpid()), 0);
	assert_int_equal(find.count, 1);
	assert_int_equal(find.found[0].pid, getpid());
	assert_string_equal(find.found[0].view.device, "softnic0");
	assert_int_equal(session_list_add_process(&find, getpid()), 0);
	assert_int_equal(find.count, 1);
	close(again);
	shown_fini(&s);
	stats_view_trace(&find.found[0].view, 0, &look); /* the mapping stays valid */
	assert_int_equal(look.count, 0);
	session_list_free(&find);
	assert_int_equal(session_list_add_process(&find, getpid()), 0);
	assert_int_equal(find.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("what is shown is read", statistics_are_read),
		SAYS("each decision is seen once", each_decision_is_seen_once),
		SAYS("what was overwritten is counted", overwritten_records_are_counted),
		SAYS("numbers where they do not belong are passed over",
		     numbers_where_they_do_not_belong_are_passed_over),
		SAYS("the last number that there is ends it", the_last_number_there_is_ends_it),
		SAYS("texts end, and can be printed", texts_end_and_can_be_printed),
		SAYS("what is no ledger is refused", a_file_without_statistics_is_refused),
		SAYS("only the session writes", only_the_session_writes),
		SAYS("a session is found once", a_session_is_found_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
