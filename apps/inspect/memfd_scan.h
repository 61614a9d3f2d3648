/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds memory files that processes of this host keep open for others to read. */
#ifndef WEIR_APPS_INSPECT_MEMFD_SCAN_H
#define WEIR_APPS_INSPECT_MEMFD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * struct memfd_scan - what to look for
 * @name: of the file, as in memfd_create(2)
 * @found: called for each descriptor of such a file. Any program may give a file this name.
 *	@fd: open for reading, and closed afterwards; @comm: the process's name, printable. Return:
 *	0; an error ends the scan
 * @arg: for @found
 */
struct memfd_scan {
	const char *name;
	int (*found)(void *arg, int fd, pid_t pid, const char *comm);
	void *arg;
};

/**
 * memfd_scan_process() - look through the descriptors of one process
 *
 * Return: 0; -ESRCH no such process; -EACCES another user's process; other errors of /proc; an
 * error of @found.
 */
int memfd_scan_process(const struct memfd_scan *scan, pid_t pid);

/*
 * The same for all processes of this user, or of all users if root asks. Skips processes that may
 * not be inspected, and those in other network namespaces: they are other hosts, or containers
 * with addresses of their own. Return: 0; -ENOMEM; errors of /proc.
 */
int memfd_scan_all(const struct memfd_scan *scan);

/* Ends and makes printable a text of @size bytes, which any program may have written. */
void memfd_scan_clean(char *text, size_t size);

/* Has memfd_scan_all() find processes in all network namespaces. Context: one thread. */
void memfd_scan_include_containers(bool containers);

#define MEMFD_SCAN_OPTION(type, member) \
	{ "containers", 0, NULL, \
	  "also processes in other network namespaces, such as containers", \
	  CMDLINE_FLAG(type, member) }

#endif
