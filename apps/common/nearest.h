/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds the name that a mistyped word resembles, for "did you mean". */
#ifndef WEIR_APPS_COMMON_NEAREST_H
#define WEIR_APPS_COMMON_NEAREST_H

#include <stddef.h>

/**
 * struct nearest - a search
 * @typed: the word
 * @name: the nearest name so far, or NULL if none resembles the word
 * @distance: of @name, in letters to add, drop or change
 */
struct nearest {
	const char *typed, *name;
	size_t distance;
};

/* Names that differ in 3 letters or more do not resemble the word. */
static inline struct nearest nearest_begin(const char *typed)
{
	return (struct nearest){ .typed = typed, .distance = 3 };
}

/* Considers one more name; of equally near ones the first stays. */
void nearest_consider(struct nearest *nearest, const char *name);

#endif
