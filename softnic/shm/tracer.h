/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which peers may reach all memory of this process: those that the kernel lets attach to it.
 */
#ifndef WEIR_SOFTNIC_SHM_TRACER_H
#define WEIR_SOFTNIC_SHM_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * tracer_is_allowed() - may the process at the other end of a socket attach to this process?
 * @fd: a connected local socket of a peer with our effective user ID
 * @pid: the peer's PID in our PID namespace; 0: not visible
 *
 * Call early: before Linux 6.5 the PID of an ended peer may be another's.
 *
 * Return: true if both share user and PID namespaces, all user and group IDs and the security
 * label, and the peer has all our capabilities, as the kernel asks for PTRACE_MODE_ATTACH. Yama,
 * Landlock and seccomp are not asked. True also if the option trust_user is set. False if that is
 * unknown.
 */
bool tracer_is_allowed(int fd, pid_t pid);

/**
 * tracer_is_same() - is one process at the other ends of two connected local sockets?
 *
 * For processes without a number in our PID namespace. Before Linux 6.9 this is unknown, and the
 * option trust_user is the answer.
 */
bool tracer_is_same(int fd, int other);

/**
 * tracer_yama_scope() - Yama's ptrace_scope
 *
 * Return: 0 also without Yama: the kernel lets a process attach that tracer_is_allowed() allows,
 * unless Landlock or another module forbids it. 1: to its children only, unless the target
 * permits more; 2: with CAP_SYS_PTRACE; 3: to none.
 */
int tracer_yama_scope(void);

/** tracer_shares_namespace() - true if process @pid has our namespace @kind, such as "pid" */
bool tracer_shares_namespace(pid_t pid, const char *kind);

#endif
