/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs a function in the donor's thread, to which the donor's clients and file systems belong. */
#ifndef WEIR_APPS_SERVE_DONOR_CALL_H
#define WEIR_APPS_SERVE_DONOR_CALL_H

struct weir_donor;

/*
 * donor_call(): returns after @fn has. Context: any other thread, until weir_donor_close(). Return:
 * 0; -ENOMEM, and @fn does not run.
 */
int donor_call(struct weir_donor *donor, void (*fn)(void *arg), void *arg);

#endif
