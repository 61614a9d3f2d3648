/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of a pool's volume that records what it does, for linear.go: history VOLUME LOG SECONDS
 * SEED [KEYFILE], as register.c.
 *
 * The first eight bytes of a few pages are registers; register.c looks at whole pages. Each thread
 * writes and reads every page, one at a time. The log, a file in shared memory, has a record of
 * each operation: when it was called, and when it returned. An operation that never returned,
 * because its client was killed or replaced, has 0 there: it may have taken effect at any time, or
 * never. The next client goes on with the log.
 *
 * The program prints "open", and at its end counters as one line of JSON. Exit status: 0; 2 bad
 * arguments; 4 a request failed; 5 the claim on the volume is over; 6 the volume does not open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/volume.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"

#define PAGE 4096u
#define THREADS 5u
#define REGISTERS 16u
#define RECORDS_MAX 200000u
#define PAUSE_US 4000u /* at most, between operations of a thread */

enum history_kind { READ, WRITE };

/* As linear.go reads it. @value: written, or read */
struct record {
	uint64_t call_ns, return_ns, value;
	uint32_t page, kind;
};

struct history {
	uint64_t count;
	struct record record[RECORDS_MAX];
};

static struct weir_volume *volume;
static struct history *history;
static uint32_t nr_pages;
static bool stops; /* atomic */
static int result;
static uint64_t reads, writes, last_write_ns, gap_max_ns;

static void fail_request(const char *what, uint32_t page, int rc)
{
	int none = 0;

	fprintf(stderr, "history: %s of page %u: %s\n", what, page, weir_strerror(rc));
	__atomic_compare_exchange_n(&result, &none, rc == -ESTALE ? 5 : 4, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
}

/* The longest time without a write. */
static void note_write(uint64_t now_ns)
{
	uint64_t last_ns = __atomic_exchange_n(&last_write_ns, now_ns, __ATOMIC_SEQ_CST);
	uint64_t most = __atomic_load_n(&gap_max_ns, __ATOMIC_SEQ_CST);

	while (last_ns && now_ns > last_ns + most &&
	       !__atomic_compare_exchange_n(&gap_max_ns, &most, now_ns - last_ns, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	__atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
}

static void use_register(uint64_t *words, uint32_t page, enum history_kind kind,
			 bool discards)
{
	uint64_t index = __atomic_fetch_add(&history->count, 1, __ATOMIC_SEQ_CST);
	uint64_t offset = (uint64_t)page * PAGE;
	struct record *record = &history->record[index];
	int rc;

	if (index >= RECORDS_MAX) {
		fail_request("record", page, -ENOSPC);
		return;
	}
	memset(words, 0, PAGE);
	words[0] = discards ? 0 : index + 1;
	*record = (struct record){ .value = words[0], .page = page, .kind = kind };
	__atomic_store_n(&record->call_ns, weir_now_ns(), __ATOMIC_SEQ_CST);
	if (kind == READ)
		rc = weir_volume_read(volume, offset, words, PAGE);
	else if (discards)
		rc = weir_volume_discard(volume, offset, PAGE);
	else
		rc = weir_volume_write(volume, offset, words, PAGE);
	if (rc) {
		fail_request(kind == READ ? "read" : "write", page, rc);
		return;
	}
	record->value = words[0];
	__atomic_store_n(&record->return_ns, weir_now_ns(), __ATOMIC_SEQ_CST);
	if (kind == READ)
		__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
	else
		note_write(record->return_ns);
}

static void *work(void *arg)
{
	uint64_t rng = (uint64_t)(uintptr_t)arg;
	uint64_t *words = malloc(PAGE);

	while (words && !__atomic_load_n(&stops, __ATOMIC_RELAXED)) {
		uint32_t page = (uint32_t)weir_rng_scale(weir_rng_next(&rng), REGISTERS) *
				(nr_pages / REGISTERS);
		bool writes_it = !weir_rng_scale(weir_rng_next(&rng), 2);

		use_register(words, page, writes_it ? WRITE : READ,
			     writes_it && !weir_rng_scale(weir_rng_next(&rng), 16));
		usleep((useconds_t)weir_rng_scale(weir_rng_next(&rng), PAUSE_US));
	}
	free(words);
	return NULL;
}

static int map_history(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*history)))
		return -1;
	history = mmap(NULL, sizeof(*history), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return history == MAP_FAILED ? -1 : 0;
}

static void on_term(int signal)
{
	(void)signal;
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
}

static void print_result(void)
{
	struct weir_volume_info info = { 0 };

	weir_volume_info(volume, &info, sizeof(info));
	printf("{\"reads\":%llu,\"writes\":%llu,\"gap_max_ms\":%llu,\"failovers\":%llu,"
	       "\"missed_writes\":%llu,\"mismatches\":%llu,\"copied_bytes\":%llu}\n",
	       (unsigned long long)reads, (unsigned long long)writes,
	       (unsigned long long)(gap_max_ns / WEIR_NS_PER_MS),
	       (unsigned long long)info.failovers, (unsigned long long)info.missed_writes,
	       (unsigned long long)info.mismatches, (unsigned long long)info.copied_bytes);
}

static void run(double seconds, uint64_t seed)
{
	uint64_t until_ns = weir_now_ns() + (uint64_t)(seconds * WEIR_NS_PER_S);
	pthread_t threads[THREADS];

	for (uint32_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work,
			       (void *)(uintptr_t)weir_rng_mix(seed * 100 + i));
	while (!__atomic_load_n(&stops, __ATOMIC_RELAXED) && weir_now_ns() < until_ns)
		usleep(5000);
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	struct weir_volume_options options = { .size = sizeof(options), .device = "softnic0" };
	struct weir_volume_info info = { 0 };
	struct weir_error error;
	struct weir_key *key = NULL;

	if (argc < 5 || argc > 6 || map_history(argv[2]))
		return 2;
	signal(SIGTERM, on_term);
	options.volume = argv[1];
	if (argc == 6 && weir_key_load(argv[5], &key, &error)) {
		fprintf(stderr, "history: %s\n", error.text);
		return 2;
	}
	options.key = key;
	if (weir_volume_open(&options, &volume, &error)) {
		fprintf(stderr, "history: %s\n", error.text);
		return 6;
	}
	weir_volume_info(volume, &info, sizeof(info));
	nr_pages = (uint32_t)(info.bytes / PAGE);
	puts("open");
	fflush(stdout);
	run(atof(argv[3]), strtoull(argv[4], NULL, 0));
	print_result();
	weir_volume_close(volume);
	weir_key_free(key);
	return result;
}
