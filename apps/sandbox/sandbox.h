/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The system calls that a service may make once it has started. A mistake that lets a peer run code
 * in the service gives that peer no other program, no mount and no new privilege.
 */
#ifndef WEIR_APPS_SANDBOX_SANDBOX_H
#define WEIR_APPS_SANDBOX_SANDBOX_H

#include <stdbool.h>

/* An option that leaves the sandbox off. @type: the command's struct; @field: a bool */
#define SANDBOX_OPTION(type, field)                                             \
	{                                                                       \
		"no-sandbox", 0, NULL, "allow all system calls, for debugging", \
			CMDLINE_FLAG(type, field)                               \
	}

/**
 * sandbox_enter() - refuse all system calls but those of a service, for good
 * @cmd: begins a warning
 *
 * Refused calls fail with EPERM, and the kernel's audit log has them (type 1326). The filter holds
 * for all threads, and for those that follow. Where the kernel has no filters, a warning
 * says so; where the build has none, Meson did.
 *
 * Context: After the last program was executed and the last privilege dropped.
 * Return: whether the filter holds.
 */
bool sandbox_enter(const char *cmd);

#endif
