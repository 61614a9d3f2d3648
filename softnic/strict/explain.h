/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Words for completions with an error.
 */
#ifndef WEIR_SOFTNIC_STRICT_EXPLAIN_H
#define WEIR_SOFTNIC_STRICT_EXPLAIN_H

#include "wr.h"

/**
 * explain_error() - report a completion with an error, unless nobody is to blame for it
 * @wr: its record
 * @status: of the completion
 *
 * Context: The lock of wr.h is not held. The queue pair cannot be destroyed meanwhile.
 */
void explain_error(const struct strict_wr *wr, enum ibv_wc_status status);

#endif
