/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of a pool's volume that checks it as an array of registers: register VOLUME LOG SECONDS
 * SEED [KEYFILE].
 *
 * Each page of 4 KiB is a register. A version fills the page with words that tell page and version.
 * Each page has one writing thread; other threads read at any time. The log, a file in shared
 * memory, holds for each page the last version begun and the last done, and the last that a reader
 * saw. It outlives the process, and the next client goes on with it.
 *
 * A read must give one whole version, not older than the last version done or seen before the read
 * began, and not newer than the last begun when it ended. With one writer, this is
 * linearizability: a failed write may take effect or not, but a version that was read stays.
 *
 * A client may be killed or stopped in the middle of a write, and leave a page of old and new
 * words. So of versions that the last client began and did not complete, a page may be a mixture.
 *
 * The program prints "open", and at its end counters as one line of JSON. It ends after SECONDS,
 * or by SIGTERM. Exit status: 0; 2 bad arguments; 3 a wrong page; 4 a request failed; 5 the claim
 * on the volume is over; 6 the volume does not open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <weir/volume.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"

#define PAGE 4096u
#define WORDS (PAGE / 8)
#define WRITERS 3u
#define READERS 3u
#define RUN_MAX 80u /* pages of a request: more than a unit of the stripe */
#define DISCARD 16u /* each version that is a multiple is a discard */

struct page_log {
	uint64_t begun, done, seen;
};

static struct weir_volume *volume;
static struct page_log *page_logs;
static uint64_t *inherited; /* by page: begun when this client opened the volume */
static uint32_t nr_pages;
static bool stops; /* atomic */
static int result;
static uint64_t reads, writes, torn, last_write_ns, gap_max_ns;

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void raise_to(uint64_t *word, uint64_t value)
{
	uint64_t old = load(word);

	while (old < value && !__atomic_compare_exchange_n(word, &old, value, false,
							   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void finish(int status)
{
	int none = 0;

	__atomic_compare_exchange_n(&result, &none, status, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
}

static void fail_request(const char *what, uint32_t page, int rc)
{
	fprintf(stderr, "register: %s of page %u: %s\n", what, page, weir_strerror(rc));
	finish(rc == -ESTALE ? 5 : 4);
}

static void fill(uint64_t *words, uint32_t page, uint64_t version)
{
	words[0] = (uint64_t)page << 32 | version;
	for (uint32_t i = 1; i < WORDS; i++)
		words[i] = weir_rng_mix(words[0] + i);
}

static bool is_zero(const uint64_t *words)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		sum |= words[i];
	return !sum;
}

/* Return: the version of a page that was read, or UINT64_MAX if it is none. */
static uint64_t version_of(const uint64_t *words, uint32_t page, uint64_t low)
{
	uint64_t expected[WORDS];

	if (is_zero(words))
		return (low + DISCARD - 1) / DISCARD * DISCARD;
	fill(expected, page, words[0] & UINT32_MAX);
	return memcmp(words, expected, PAGE) ? UINT64_MAX : words[0] & UINT32_MAX;
}

static uint64_t word_of(uint32_t page, uint64_t version, uint32_t i)
{
	uint64_t first = (uint64_t)page << 32 | version;

	if (!(version % DISCARD))
		return 0;
	return i ? weir_rng_mix(first + i) : first;
}

/* Whether each word is of one of the versions from @low to the last that another client began. */
static bool is_torn_by_another(const uint64_t *words, uint32_t page, uint64_t low)
{
	for (uint32_t i = 0; i < WORDS; i++) {
		uint64_t version = low;

		while (version <= inherited[page] && words[i] != word_of(page, version, i))
			version++;
		if (version > inherited[page])
			return false;
	}
	return true;
}

static void check_page(const uint64_t *words, uint32_t page, uint64_t low)
{
	uint64_t high = load(&page_logs[page].begun), version = version_of(words, page, low);

	if (version >= low && version <= high) {
		raise_to(&page_logs[page].seen, version);
		return;
	}
	if (version == UINT64_MAX && is_torn_by_another(words, page, low)) {
		__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
		return;
	}
	fprintf(stderr, "register: page %u has version %lld of [%llu, %llu], first word %llx\n",
		page, (long long)version, (unsigned long long)low, (unsigned long long)high,
		(unsigned long long)words[0]);
	finish(3);
}

static void read_pages(char *buf, uint32_t first, uint32_t count)
{
	uint64_t low[RUN_MAX];
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t done = load(&page_logs[first + i].done);

		low[i] = load(&page_logs[first + i].seen);
		low[i] = done > low[i] ? done : low[i];
	}
	rc = weir_volume_read(volume, (uint64_t)first * PAGE, buf, (size_t)count * PAGE);
	if (rc) {
		fail_request("read", first, rc);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		check_page((const uint64_t *)(buf + (size_t)i * PAGE), first + i, low[i]);
	__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
}

static void note_write(void)
{
	uint64_t now_ns = weir_now_ns(), last_ns;

	last_ns = __atomic_exchange_n(&last_write_ns, now_ns, __ATOMIC_SEQ_CST);
	if (last_ns && now_ns > last_ns)
		raise_to(&gap_max_ns, now_ns - last_ns);
	__atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
}

/* A run of pages gets one version each; a discard covers one page. */
static void write_pages(char *buf, uint32_t first, uint32_t count)
{
	uint64_t version[RUN_MAX];
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		version[i] = __atomic_add_fetch(&page_logs[first + i].begun, 1, __ATOMIC_SEQ_CST);
		if (version[i] % DISCARD)
			fill((uint64_t *)(buf + (size_t)i * PAGE), first + i, version[i]);
		else
			memset(buf + (size_t)i * PAGE, 0, PAGE);
	}
	if (count == 1 && !(version[0] % DISCARD))
		rc = weir_volume_discard(volume, (uint64_t)first * PAGE, PAGE);
	else
		rc = weir_volume_write(volume, (uint64_t)first * PAGE, buf, (size_t)count * PAGE);
	if (rc) {
		fail_request("write", first, rc);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		raise_to(&page_logs[first + i].done, version[i]);
	note_write();
}

struct worker {
	pthread_t thread;
	uint64_t rng;
	uint32_t first, count; /* of its pages */
	bool is_writer;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	char *buf = malloc((size_t)RUN_MAX * PAGE);

	while (!__atomic_load_n(&stops, __ATOMIC_RELAXED)) {
		uint32_t most = weir_rng_scale(weir_rng_next(&w->rng), 8) ? 3 : RUN_MAX;
		uint32_t count = 1 + (uint32_t)weir_rng_scale(weir_rng_next(&w->rng), most);
		uint32_t first;

		if (count > w->count)
			count = w->count;
		first = w->first + (uint32_t)weir_rng_scale(weir_rng_next(&w->rng),
							    w->count - count + 1);
		if (w->is_writer)
			write_pages(buf, first, count);
		else
			read_pages(buf, first, count);
	}
	free(buf);
	return NULL;
}

static int map_log(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	size_t length = nr_pages * sizeof(*page_logs);

	if (fd < 0 || ftruncate(fd, (off_t)length))
		return -1;
	page_logs = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	inherited = calloc(nr_pages, sizeof(*inherited));
	if (page_logs == MAP_FAILED || !inherited)
		return -1;
	for (uint32_t i = 0; i < nr_pages; i++)
		inherited[i] = load(&page_logs[i].begun);
	return 0;
}

static void on_term(int signal)
{
	(void)signal;
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
}

static void start_workers(struct worker *workers, uint64_t seed)
{
	for (uint32_t i = 0; i < WRITERS + READERS; i++) {
		struct worker *w = &workers[i];

		w->rng = weir_rng_mix(seed * 100 + i);
		w->is_writer = i < WRITERS;
		w->first = w->is_writer ? i * (nr_pages / WRITERS) : 0;
		w->count = w->is_writer ? nr_pages / WRITERS : nr_pages;
		pthread_create(&w->thread, NULL, work, w);
	}
}

static void print_result(void)
{
	struct weir_volume_info info = { 0 };

	weir_volume_info(volume, &info, sizeof(info));
	printf("{\"reads\":%llu,\"writes\":%llu,\"torn\":%llu,\"gap_max_ms\":%llu,"
	       "\"failovers\":%llu,"
	       "\"missed_writes\":%llu,\"mismatches\":%llu,\"copied_bytes\":%llu}\n",
	       (unsigned long long)reads, (unsigned long long)writes, (unsigned long long)torn,
	       (unsigned long long)(gap_max_ns / 1000000), (unsigned long long)info.failovers,
	       (unsigned long long)info.missed_writes, (unsigned long long)info.mismatches,
	       (unsigned long long)info.copied_bytes);
}

int main(int argc, char **argv)
{
	struct weir_volume_options options = { .size = sizeof(options), .device = "softnic0" };
	struct worker workers[WRITERS + READERS];
	struct weir_volume_info info = { 0 };
	struct weir_error error;
	struct weir_key *key = NULL;
	char *buf;

	if (argc < 5 || argc > 6)
		return 2;
	signal(SIGTERM, on_term);
	options.volume = argv[1];
	if (argc == 6 && weir_key_load(argv[5], &key, &error)) {
		fprintf(stderr, "register: %s\n", error.text);
		return 2;
	}
	options.key = key;
	if (weir_volume_open(&options, &volume, &error)) {
		fprintf(stderr, "register: %s\n", error.text);
		return 6;
	}
	weir_volume_info(volume, &info, sizeof(info));
	nr_pages = (uint32_t)(info.bytes / PAGE);
	if (map_log(argv[2]))
		return 2;
	puts("open");
	fflush(stdout);
	start_workers(workers, strtoull(argv[4], NULL, 0));
	for (uint64_t until_ns = weir_now_ns() + (uint64_t)(atof(argv[3]) * 1e9);
	     !__atomic_load_n(&stops, __ATOMIC_RELAXED) && weir_now_ns() < until_ns;)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	__atomic_store_n(&stops, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < WRITERS + READERS; i++)
		pthread_join(workers[i].thread, NULL);
	buf = malloc(PAGE);
	for (uint32_t i = 0; buf && !result && i < nr_pages; i++)
		read_pages(buf, i, 1);
	free(buf);
	print_result();
	weir_volume_close(volume);
	weir_key_free(key);
	return result;
}
