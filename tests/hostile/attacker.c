/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * attacker COUNTER ATTACK AS SEED TARGET PEER [KEY]
 *
 * AS is the process that attacks: "same", this one; "stranger", another user; "user-namespace" or
 * "pid-namespace", a process in a new one.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/key.h>

#include "core/base/rng.h"
#include "tests/hostile/attacker.h"

#define POOL "pool-"

enum { STRANGER = 65534, CANNOT = 77 };

uint32_t attacker_dice(struct attacker *a, uint32_t nr)
{
	return (uint32_t)weir_rng_scale(weir_rng_next(&a->random), nr);
}

void attacker_noise(struct attacker *a, void *to, size_t length)
{
	uint8_t *at = to;

	while (length--)
		*at++ = (uint8_t)weir_rng_next(&a->random);
}

static const struct attack *find_attack(const char *name)
{
	const struct attack *const lists[] = { donor_attacks, file_attacks, socket_attacks,
					       share_attacks };
	const struct attack *attack;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (attack = lists[i]; attack->name; attack++)
			if (!strcmp(attack->name, name))
				return attack;
	return NULL;
}

/* A new PID namespace begins with a child. The child dies with its parent. */
static void attack_from_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		_exit(CANNOT);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void become(const char *who)
{
	if (!strcmp(who, "stranger")) {
		if (setresgid(STRANGER, STRANGER, STRANGER) ||
		    setresuid(STRANGER, STRANGER, STRANGER))
			_exit(CANNOT);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* changed with the user */
	} else if (!strcmp(who, "user-namespace")) {
		if (unshare(CLONE_NEWUSER))
			_exit(CANNOT);
	} else if (!strcmp(who, "pid-namespace")) {
		if (unshare(CLONE_NEWPID))
			_exit(CANNOT);
		attack_from_child();
	}
}

int main(int argc, char **argv)
{
	struct attacker a = { 0 };
	struct weir_key *key = NULL;
	const struct attack *attack;
	uint64_t rounds = 0;
	bool of_pool;
	int counter;

	if (argc < 7)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	counter = open(argv[1], O_WRONLY | O_CLOEXEC);
	of_pool = !strncmp(argv[2], POOL, strlen(POOL));
	attack = find_attack(argv[2] + (of_pool ? strlen(POOL) : 0));
	if (counter < 0 || !attack || (argc > 7 && weir_key_load(argv[7], &key, NULL)))
		return 2;
	a = (struct attacker){ argv[5], argv[6], key, strtoull(argv[4], NULL, 0), of_pool };
	become(argv[3]);
	for (;;) {
		attack->round(&a);
		rounds++;
		if (pwrite(counter, &rounds, sizeof(rounds), 0) != sizeof(rounds))
			return 1;
	}
}
