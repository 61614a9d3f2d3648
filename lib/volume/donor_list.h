/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A volume over a list of donors. Context of all: the opening thread; sleep. */
#ifndef WEIR_LIB_VOLUME_DONOR_LIST_H
#define WEIR_LIB_VOLUME_DONOR_LIST_H

#include "lib/volume/volume.h"

/* Checks the options, and fills in defaults. Return: 0; -EINVAL. */
int weir_volume_donor_list_check(struct weir_volume_options *o, struct weir_error *error);

/* Connects to all donors, and borrows all memory. Return: 0, or an errno. */
int weir_volume_donor_list_open(struct weir_volume *v, struct weir_error *error);

#endif
