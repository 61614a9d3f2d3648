/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * names-load DIRECTORY FILES - operations on names and small files, a phase at a time
 *
 * Reads the names of phases from standard input, a line each. Runs each phase on all files and
 * prints a line: nanoseconds, and the sleeps of this program. A parent reads its counters between
 * two phases.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 100000
#define SMALL_FILE 4096

static unsigned int files;
static int *fds;
static char bytes[SMALL_FILE];

__attribute__((noreturn)) static void fail(const char *what, unsigned int i)
{
	fprintf(stderr, "names-load: %s of file %u: %s\n", what, i, strerror(errno));
	exit(1);
}

static const char *name_of(char prefix, unsigned int i)
{
	static char names[2][32];
	static unsigned int turn;
	char *name = names[turn ^= 1];

	snprintf(name, sizeof(names[0]), "%c%u", prefix, i);
	return name;
}

static void do_create(unsigned int i)
{
	fds[i] = open(name_of('f', i), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fds[i] < 0)
		fail("create", i);
}

static void do_write(unsigned int i)
{
	if (pwrite(fds[i], bytes, sizeof(bytes), 0) != sizeof(bytes))
		fail("write", i);
}

static void do_close(unsigned int i)
{
	if (close(fds[i]))
		fail("close", i);
}

static void do_stat(unsigned int i)
{
	struct stat st;

	if (stat(name_of('f', i), &st) || st.st_size != sizeof(bytes))
		fail("stat", i);
}

static void do_open(unsigned int i)
{
	fds[i] = open(name_of('f', i), O_RDONLY | O_CLOEXEC);
	if (fds[i] < 0)
		fail("open", i);
}

static void do_read(unsigned int i)
{
	if (pread(fds[i], bytes, sizeof(bytes), 0) != sizeof(bytes))
		fail("read", i);
}

static void do_write_file(unsigned int i)
{
	do_create(i);
	do_write(i);
	do_close(i);
}

static void do_read_file(unsigned int i)
{
	do_open(i);
	do_read(i);
	do_close(i);
}

static void do_set(unsigned int i)
{
	const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	if (chmod(name_of('f', i), 0600) || utimensat(AT_FDCWD, name_of('f', i), times, 0))
		fail("chmod or utimes", i);
}

static void do_rename(unsigned int i)
{
	if (rename(name_of('f', i), name_of('g', i)))
		fail("rename", i);
}

static void do_unlink(unsigned int i)
{
	if (unlink(name_of('g', i)))
		fail("unlink", i);
}

static void do_mkdir(unsigned int i)
{
	if (mkdir(name_of('d', i), 0755))
		fail("mkdir", i);
}

static void do_rmdir(unsigned int i)
{
	if (rmdir(name_of('d', i)))
		fail("rmdir", i);
}

/* A listing of all names, by the first call; the other calls have nothing to do. */
static void do_readdir(unsigned int i)
{
	unsigned int seen = 0;
	DIR *dir;

	if (i)
		return;
	dir = opendir(".");
	if (!dir)
		fail("opendir", i);
	while (readdir(dir))
		seen++;
	closedir(dir);
	if (seen != files + 2)
		fail("readdir", seen);
}

static const struct {
	const char *name;
	void (*run)(unsigned int i);
} phases[] = {
	{ "create", do_create },
	{ "write 4 KiB", do_write },
	{ "close", do_close },
	{ "stat", do_stat },
	{ "open", do_open },
	{ "read 4 KiB", do_read },
	{ "close again", do_close },
	{ "readdir, a name", do_readdir },
	{ "chmod + utimes", do_set },
	{ "rename", do_rename },
	{ "unlink", do_unlink },
	{ "mkdir", do_mkdir },
	{ "rmdir", do_rmdir },
	{ "create + write + close", do_write_file },
	{ "open + read + close", do_read_file },
};

static long count_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_phase(const char *name)
{
	const unsigned int nr = sizeof(phases) / sizeof(phases[0]);
	unsigned int which = 0;
	uint64_t begun_ns, taken_ns;
	long sleeps;

	while (which < nr && strcmp(phases[which].name, name) != 0)
		which++;
	if (which == nr) {
		fprintf(stderr, "names-load: no phase '%s'\n", name);
		exit(2);
	}
	sleeps = count_sleeps();
	begun_ns = now_ns();
	for (unsigned int i = 0; i < files; i++)
		phases[which].run(i);
	taken_ns = now_ns() - begun_ns;
	printf("%llu %ld\n", (unsigned long long)taken_ns, count_sleeps() - sleeps);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	char line[64];

	files = argc == 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	if (!files || files > FILES_MAX) {
		fprintf(stderr, "Usage: names-load DIRECTORY FILES\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	fds = calloc(files, sizeof(*fds));
	if (!fds || chdir(argv[1])) {
		perror("names-load");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		run_phase(line);
	}
	free(fds);
	return 0;
}
