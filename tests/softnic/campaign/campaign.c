// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * campaign [--seed N] [--runs N]: run the seeds N, N + 1... campaign.h says what a seed
 * repeats.
 *
 * The judge starts the workers with the faults of the seed and leads them from phase to phase.
 * Meanwhile the judge kills, stops or disturbs some workers. At the end the judge compares the
 * world with the logs, and looks for leaked processes and sockets. For a failing seed, the
 * judge prints the command to run the seed again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "campaign.h"
#include "leaks.h"
#include "softnic/control/control.h"

struct campaign_run {
	struct campaign_world *w;
	int world_fd;
	uint64_t random;
	pid_t pids[WORKERS_MAX];
	int fds[WORKERS_MAX];
	uint32_t killed;
	struct leaked_sockets litter;
	char why[512];
};

static bool fail(struct campaign_run *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
	return false;
}

/* Half of the workers meet faults, of several kinds at once. */
static void think_of_faults(struct campaign_run *r, char *text, size_t size)
{
	static const struct {
		const char *format;
		uint32_t most;
		uint32_t one_in;
	} faults[] = {
		{ ",rnr=%u", 80, 3 },
		{ ",delay_us=%u", 300, 3 },
		{ ",error=%u", 4, 6 },
		{ ",error_after=%u", OPS_MAX, 6 },
		{ ",port_down_ms=20,port_down_after=%u", 2 * OPS_MAX, 6 },
		{ ",device_gone_after=%u", 4 * OPS_MAX, 12 },
	};
	size_t n, i;

	n = snprintf(text, size, "seed=%u", (unsigned int)random_below(&r->random, 1 << 30));
	if (random_below(&r->random, 2))
		return;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!random_below(&r->random, faults[i].one_in))
			n += snprintf(text + n, size - n, faults[i].format,
				      (unsigned int)random_below(&r->random, faults[i].most));
}

static bool spawn(struct campaign_run *r, uint32_t i)
{
	char faults[256], self[16], fd[16], world[16];
	int fds[2];

	think_of_faults(r, faults, sizeof(faults));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return fail(r, "no socket: %s", strerror(errno));
	r->pids[i] = fork();
	if (!r->pids[i]) {
		fcntl(fds[1], F_SETFD, 0);
		fcntl(r->world_fd, F_SETFD, 0);
		setenv("WEIR_SOFTNIC", faults, 1);
		snprintf(self, sizeof(self), "%u", i);
		snprintf(fd, sizeof(fd), "%d", fds[1]);
		snprintf(world, sizeof(world), "%d", r->world_fd);
		execl("/proc/self/exe", "campaign", "--worker", self, fd, world, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	r->fds[i] = fds[0];
	return r->pids[i] > 0 || fail(r, "no process: %s", strerror(errno));
}

static bool is_alive(const struct campaign_run *r, uint32_t i)
{
	return !(r->killed & 1u << i);
}

static bool tell_all(struct campaign_run *r, enum campaign_phase phase)
{
	uint8_t word = phase;
	uint32_t i;

	for (i = 0; i < r->w->workers; i++)
		if (is_alive(r, i) && send(r->fds[i], &word, 1, MSG_NOSIGNAL) != 1)
			return fail(r, "worker %u left before phase %d", i, phase);
	return true;
}

static bool await_all(struct campaign_run *r, enum campaign_phase phase)
{
	uint32_t i;

	for (i = 0; i < r->w->workers; i++) {
		struct pollfd p = { .fd = r->fds[i], .events = POLLIN };
		uint8_t word;

		if (!is_alive(r, i))
			continue;
		if (poll(&p, 1, 2 * PATIENCE_MS) != 1)
			return fail(r, "worker %u hangs in phase %d", i, phase);
		if (read(r->fds[i], &word, 1) != 1 || word != phase)
			return fail(r, "worker %u failed in phase %d", i, phase);
	}
	return true;
}

static void note_all(struct campaign_run *r)
{
	uint32_t i;

	for (i = 0; i < r->w->workers; i++)
		if (is_alive(r, i))
			leaks_note(&r->litter, r->pids[i]);
}

static void trouble(struct campaign_run *r, uint32_t victim)
{
	static const char *const faults[] = {
		"port_down_after=0,port_down_ms=10",
		"rnr=60",
		"delay_us=500",
		"error_after=3",
		"device_gone_after=0",
		"mr_bytes_max=1",
	};
	struct softnic_options o;
	char why[512];

	option_defaults(&o);
	option_parse(faults[random_below(&r->random, sizeof(faults) / sizeof(faults[0]))],
		     OPTION_FIRST_FAULT, &o, why, sizeof(why));
	softnic_control_set_faults(r->pids[victim], &o); /* the victim may have finished already */
}

static void stop_for_a_while(struct campaign_run *r, uint32_t victim)
{
	kill(r->pids[victim], SIGSTOP);
	usleep(random_below(&r->random, 20000));
	kill(r->pids[victim], SIGCONT);
}

static void kill_one(struct campaign_run *r, uint32_t victim)
{
	kill(r->pids[victim], SIGKILL);
	r->killed |= 1u << victim;
}

/* In every second run the judge leaves all workers alone. */
static void make_mischief(struct campaign_run *r)
{
	uint32_t victim = random_below(&r->random, r->w->workers);

	usleep(random_below(&r->random, 3000));
	switch (random_below(&r->random, 6)) {
	case 0:
		kill_one(r, victim);
		break;
	case 1:
		stop_for_a_while(r, victim);
		break;
	case 2:
		trouble(r, victim);
		break;
	}
}

static bool play(struct campaign_run *r)
{
	uint32_t i;

	for (i = 0; i < r->w->workers; i++)
		if (!spawn(r, i))
			return false;
	if (!tell_all(r, PHASE_OPEN) || !await_all(r, PHASE_OPEN) || !tell_all(r, PHASE_CONNECT) ||
	    !await_all(r, PHASE_CONNECT))
		return false;
	note_all(r);
	if (!litter_is_named(&r->litter, r->w->workers))
		return fail(r, "what is left behind would not be seen");
	if (!tell_all(r, PHASE_WORK))
		return false;
	make_mischief(r);
	if (!await_all(r, PHASE_WORK))
		return false;
	note_all(r);
	return tell_all(r, PHASE_CLOSE) && await_all(r, PHASE_CLOSE);
}

/* Return: false if a worker failed that should have succeeded. */
static bool bury(struct campaign_run *r, bool well)
{
	uint32_t i;
	int status;

	for (i = 0; i < r->w->workers && r->pids[i] > 0; i++) {
		if (!well)
			kill(r->pids[i], SIGKILL);
		waitpid(r->pids[i], &status, 0);
		close(r->fds[i]);
		if (well && is_alive(r, i) && status)
			well = fail(r, "worker %u ended with status %#x", i, status);
	}
	return well;
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Children of the workers would become children of the judge: see main(). */
static bool has_no_children(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* The workers' peers can map every second world. */
static int make_world(uint64_t seed)
{
	int fd = memfd_create("world", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, sizeof(struct campaign_world)) < 0 ||
	    (seed % 2 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0))
		abort();
	return fd;
}

static bool run_seed(uint64_t seed, char *why, size_t why_size)
{
	struct campaign_run r = { .random = seed };
	int before = count_descriptors();
	bool well;

	r.world_fd = make_world(seed);
	r.w = mmap(NULL, sizeof(*r.w), PROT_READ | PROT_WRITE, MAP_SHARED, r.world_fd, 0);
	if (r.w == MAP_FAILED)
		abort();
	r.w->seed = seed;
	r.w->workers = 2 + random_below(&r.random, WORKERS_MAX - 1);
	well = bury(&r, play(&r));
	if (well)
		well = judge_world(r.w, r.killed, r.why, sizeof(r.why));
	munmap(r.w, sizeof(*r.w));
	close(r.world_fd);
	if (well && count_descriptors() != before)
		well = fail(&r, "descriptors were left behind");
	if (well && !has_no_children())
		well = fail(&r, "processes were left behind");
	if (well && leaks_left(&r.litter))
		well = fail(&r, "sockets were left behind");
	snprintf(why, why_size, "%s", r.why);
	return well;
}

static int run_all(const char *program, uint64_t first, uint64_t runs)
{
	uint64_t seed, failed = 0;
	char why[512];

	for (seed = first; seed < first + runs; seed++) {
		if (run_seed(seed, why, sizeof(why)))
			continue;
		failed++;
		fprintf(stderr, "seed %llu: %s\nagain: %s --seed %llu\n", (unsigned long long)seed,
			why, program, (unsigned long long)seed);
	}
	printf("%llu runs, %llu failed\n", (unsigned long long)runs, (unsigned long long)failed);
	return failed ? 1 : 0;
}

static int be_worker(char **argv)
{
	struct campaign_world *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);

	if (w == MAP_FAILED)
		return 1;
	return worker_play(w, atoi(argv[0]), atoi(argv[1]));
}

static const char usage[] =
	"Usage: %s [--seed N] [--runs N]\n"
	"Random operations between processes, with random faults: runs with the seeds N, N + 1...\n"
	"A seed repeats what is asked along each lane (a queue pair between two processes), by\n"
	"which transport, which faults it meets there, and what befalls which process from "
	"outside:\n"
	"killed, stopped, or given a fault. It does not repeat how lanes interleave, nor when it\n"
	"befalls; so one that failed may have to run several times to fail again:\n"
	"'for i in $(seq 50); do %s --seed N; done' repeats one.\n";

int main(int argc, char **argv)
{
	uint64_t seed = 1, runs = 1;
	int i;

	if (argc == 5 && !strcmp(argv[1], "--worker"))
		return be_worker(argv + 2);
	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--runs"))
			runs = strtoull(argv[i + 1], NULL, 10);
		else
			break;
	}
	if (i != argc) {
		bool asked = argc == 2 && !strcmp(argv[1], "--help");

		fprintf(asked ? stdout : stderr, usage, argv[0], argv[0]);
		return asked ? 0 : 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!litter_is_seen()) {
		fprintf(stderr, "%s: what is left behind would not be seen\n", argv[0]);
		return 1;
	}
	return run_all(argv[0], seed, runs);
}
