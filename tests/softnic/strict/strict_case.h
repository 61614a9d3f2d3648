/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs that are wrong, and the same programs put right, run in strict mode in processes of
 * their own. Each begins with two connected queue pairs.
 */
#ifndef WEIR_TESTS_SOFTNIC_STRICT_STRICT_CASE_H
#define WEIR_TESTS_SOFTNIC_STRICT_STRICT_CASE_H

#include <stdio.h>
#include <unistd.h>

#include "tests/support/loopback_pair.h"

typedef void strict_program(struct loopback_pair *pair);

struct strict_case {
	const char *name;
	strict_program *wrong;
	const char *words[4]; /* all in one message of the wrong program */
	strict_program *right; /* nothing is found in it */
};

/* A condition of the programs; cmocka's would jump into the parent's tests. */
#define must(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(3);                                                       \
		}                                                                       \
	} while (0)

/* Run both programs of each case, and compare their messages and exit statuses. */
void strict_case_run(const struct strict_case *cases, size_t nr);

/**
 * strict_case_output() - run one program
 * @settings: the value of WEIR_SOFTNIC
 * @text: receives the output
 *
 * Return: its status, as waitpid() gives it.
 */
int strict_case_output(strict_program *program, const char *settings, char *text, size_t size);

/* Post one work request on the first queue pair; its own wr_id. */
int strict_post(struct loopback_pair *pair, struct ibv_send_wr *wr);
/* Wait for one completion. */
struct ibv_wc strict_wait(struct ibv_cq *cq);

#endif
