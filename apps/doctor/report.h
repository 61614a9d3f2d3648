/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The findings of weir doctor, in the order of the checks. */
#ifndef WEIR_APPS_DOCTOR_REPORT_H
#define WEIR_APPS_DOCTOR_REPORT_H

#include <stdbool.h>

#define FINDINGS_MAX 512 /* five for each donor of a pool, and those of the machine */
#define MEASURES_MAX 32

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL, VERDICTS };

struct finding {
	const char *check;
	enum verdict verdict;
	char text[400]; /* the finding */
	char remedy[400]; /* for the user; empty if there is none */
};

/* A number, for programs. */
struct measure {
	const char *name;
	double value;
};

/* @printed: findings so far on standard output; @shows_progress: a line of it is on the terminal */
struct report {
	struct finding findings[FINDINGS_MAX];
	unsigned int count, printed;
	struct measure measures[MEASURES_MAX];
	unsigned int nr_measures;
	bool shows_progress;
};

/* Adds a finding. @format: its text. */
void report_add(struct report *report, const char *check, enum verdict verdict, const char *format,
		...) __attribute__((format(printf, 4, 5)));
/* Adds a remedy to the last finding. */
void report_remedy(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds a number to the JSON. @name: with its unit. */
void report_measure(struct report *report, const char *name, double value);

/* Says on a terminal what happens now, until the next finding is printed. */
void report_progress(struct report *report, const char *now);
/* Prints the findings that have not been printed. */
void report_print_new(struct report *report);
/* The same, and their numbers. */
void report_print(struct report *report);
void report_print_json(struct report *report);
unsigned int report_count(const struct report *report, enum verdict verdict);

#endif
