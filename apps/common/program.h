/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_COMMON_PROGRAM_H
#define WEIR_APPS_COMMON_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Finds the folder that contains this program. Returns false if the kernel does not say. */
bool program_folder(char folder[PATH_MAX]);

#endif
