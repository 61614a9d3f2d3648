// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "softnic/strict/finding.h"
#include "strict_case.h"

static void run(strict_program *program, const char *settings, int output)
{
	struct loopback_pair pair;

	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	close(output);
	setenv("WEIR_SOFTNIC", settings, 1);
	pair_open(&pair);
	must(pair_connect(&pair, NULL));
	program(&pair);
	exit(0);
}

static void read_all(int fd, char *text, size_t size)
{
	size_t at = 0;
	ssize_t n;

	while (at + 1 < size && (n = read(fd, text + at, size - 1 - at)) > 0)
		at += n;
	text[at] = '\0';
}

int strict_case_output(strict_program *program, const char *settings, char *text, size_t size)
{
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(ends[0]);
		run(program, settings, ends[1]);
	}
	close(ends[1]);
	read_all(ends[0], text, size);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Is there a line with all words? */
static bool has_line(char *text, const char *const words[4])
{
	char *line, *rest = text;
	int i;

	while ((line = strsep(&rest, "\n"))) {
		for (i = 0; i < 4 && words[i] && strstr(line, words[i]); i++)
			;
		if (i == 4 || !words[i])
			return true;
	}
	return false;
}

static void run_case(const struct strict_case *c)
{
	char text[16384], *copy;
	int status;

	status = strict_case_output(c->wrong, "strict=1", text, sizeof(text));
	copy = strdup(text);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != STRICT_EXIT_STATUS ||
	    !has_line(copy, c->words))
		fail_msg("%s, wrong: status 0x%x, '%s'", c->name, status, text);
	free(copy);
	status = strict_case_output(c->right, "strict=1,strict_leaks=0", text, sizeof(text));
	if (status || strstr(text, "softnic: strict"))
		fail_msg("%s, right: status 0x%x, '%s'", c->name, status, text);
}

void strict_case_run(const struct strict_case *cases, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		print_message("# %s\n", cases[i].name);
		run_case(&cases[i]);
	}
}

int strict_post(struct loopback_pair *pair, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(pair->qp[0], wr, &bad);
}

struct ibv_wc strict_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		usleep(100);
	must(n == 1);
	return wc;
}
