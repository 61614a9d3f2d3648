// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What late_outer.c loads. */
extern int late_inner;
int late_inner;
