/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The findings of weir doctor, in the order of the checks. */
#ifndef WEIR_APPS_DOCTOR_REPORT_H
#define WEIR_APPS_DOCTOR_REPORT_H

#include <stdbool.h>

#define FINDINGS_MAX 32

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL, VERDICTS };

struct finding {
	const char *check;
	enum verdict verdict;
	char text[400]; /* the finding */
	char remedy[400]; /* for the user; empty if there is none */
};

struct report {
	struct finding findings[FINDINGS_MAX];
	unsigned int count;
};

/* Adds a finding. @format: its text. */
void report_add(struct report *report, const char *check, enum verdict verdict, const char *format,
		...) __attribute__((format(printf, 4, 5)));
/* Adds a remedy to the last finding. */
void report_remedy(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void report_print(const struct report *report);
void report_print_json(const struct report *report);
unsigned int report_count(const struct report *report, enum verdict verdict);

#endif
