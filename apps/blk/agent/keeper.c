/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process that starts another agent if one dies. A write may wait for an agent, and so may the
 * whole machine, if it swaps.
 *
 * Three processes: the command, which ends once the device is there; its child, the keeper; and the
 * agent, a child of the keeper. An agent that ends by itself is not replaced. ctrl-c reaches all
 * three. The agent takes it, and gives the volume back; the others wait for the agent's end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"

#define PAUSE_S 1 /* between agents: each may die at once */

void blk_agent_leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (chdir("/") || null < 0)
		return;
	for (int i = 0; i < 3; i++)
		dup2(null, i);
}

/* Return: the exit status of a child, or BLK_AGENT_AGAIN if it was killed. */
static int await(pid_t child)
{
	int result;

	while (waitpid(child, &result, 0) < 0) {
		if (errno != EINTR)
			return BLK_AGENT_AGAIN;
	}
	return WIFEXITED(result) ? WEXITSTATUS(result) : BLK_AGENT_AGAIN;
}

/* Return: the exit status of the last agent. */
static int keep(const char *cmd, uint32_t number, pid_t agent)
{
	int status;

	blk_agent_keep_memory();
	status = await(agent);
	while (status == BLK_AGENT_AGAIN) {
		sleep(PAUSE_S);
		agent = fork();
		if (!agent)
			_exit(blk_agent_replace(cmd, number));
		if (agent > 0)
			status = await(agent);
	}
	return status;
}

/* @ready: the command waits for a byte. */
static int attach_and_keep(const struct blk_agent_options *options, int ready)
{
	uint8_t status = EXIT_OK;
	uint32_t number;
	pid_t agent;
	int told[2];

	if (pipe2(told, O_CLOEXEC))
		return failure(options->cmd, "no pipe: %s", strerror(errno));
	agent = fork();
	if (agent < 0)
		return failure(options->cmd, "no process: %s", strerror(errno));
	if (!agent) {
		close(ready);
		close(told[0]);
		_exit(blk_agent_attach_and_run(options, told[1]));
	}
	close(told[1]);
	if (read(told[0], &number, sizeof(number)) != sizeof(number)) {
		int failed = await(agent);

		return failed == BLK_AGENT_AGAIN ? failure(options->cmd, "the agent has died") :
						   failed;
	}
	blk_agent_leave_terminal();
	signal(SIGINT, SIG_DFL);
	if (write(ready, &status, 1) != 1)
		(void)0; /* the command has ended */
	close(ready);
	close(told[0]);
	return keep(options->cmd, number, agent);
}

int blk_agent_attach(const struct blk_agent_options *options)
{
	int ready[2], failed;
	uint8_t status;
	pid_t keeper;

	if (pipe2(ready, O_CLOEXEC))
		return failure(options->cmd, "no pipe: %s", strerror(errno));
	signal(SIGINT, SIG_IGN);
	keeper = fork();
	if (keeper < 0)
		return failure(options->cmd, "no process: %s", strerror(errno));
	if (!keeper) {
		close(ready[0]);
		_exit(attach_and_keep(options, ready[1]));
	}
	close(ready[1]);
	if (read(ready[0], &status, 1) == 1)
		return status;
	failed = await(keeper);
	return failed == BLK_AGENT_AGAIN ? failure(options->cmd, "the agent has died") : failed;
}
