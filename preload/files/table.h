/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Knowledge of this process's descriptors. The kernel is the truth: a descriptor may be
 * closed, duplicated or inherited by calls that this library does not see. So an entry only says
 * what a descriptor was when a grant's closes had a certain value; see wire/files.h. With any
 * other value the descriptor is looked at anew. The kernel frees a number before it tells the
 * mount, so each call also asks the kernel which file the number has now: table_holds().
 *
 * A descriptor that was none of a mount's stays so until a call that makes descriptors returns
 * that number. A mistake there costs speed alone.
 */
#ifndef WEIR_PRELOAD_FILES_TABLE_H
#define WEIR_PRELOAD_FILES_TABLE_H

#include <stdbool.h>

#include "preload/files/lane.h"

/**
 * table_find() - look a descriptor up
 * @access: FILES_MAY_READ or FILES_MAY_WRITE
 * @grant: receives the file's grant
 *
 * Return: false: the kernel has to do it.
 */
bool table_find(int fd, unsigned int access, struct grant *grant);

/* Return: whether the descriptor has the grant's file now. */
bool table_holds(int fd, const struct grant *grant);

/* The descriptor is a new one, or its entry is wrong. */
void table_forget(int fd);
/* In the child of a fork. */
void table_forget_all(void);

/* The kernel has to do the next few writes: the file grows. */
void table_note_growth(int fd);
bool table_grows(int fd);

/* The descriptor is about to be mapped, shared. */
void table_mapped(int fd);

#endif
