// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Loaded by late_outer.c. */
extern int late_inner;
int late_inner;
