/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Choice of the verbs device: a NIC, Soft-RoCE, or softnic.
 *
 * softnic must be loaded before libibverbs. To choose it, the command executes itself again with
 * LD_PRELOAD set, then restores the environment, so that children do not inherit the preload.
 */
#ifndef WEIR_APPS_COMMON_DEVICE_H
#define WEIR_APPS_COMMON_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* --device for commands that call device_choose(). */
#define DEVICE_OPTION(type, member) \
	{ "device", 'd', "DEVICE", \
	  "auto, softnic, or the name of a verbs device such as rxe0;\n" \
	  "default $WEIR_DEVICE, then auto: a real device if there\n" \
	  "is one, else softnic", \
	  CMDLINE_TEXT(type, member) }

/* Saves the command line for a second execution. main() calls this first. */
void device_init(int argc, char **argv);

/**
 * device_choose() - choose a device, and name it on standard error
 * @cmd: argv[0] of the command, for messages
 * @wanted: the argument of --device, or NULL
 * @device: receives a device name for the field device of session and donor options, or NULL for
 *	any device; never freed
 *
 * May execute the program again and not return. Commands therefore call this right after parsing
 * options, before printing, opening or starting anything.
 *
 * Return: 0, or an exit status after a message.
 */
int device_choose(const char *cmd, const char *wanted, const char **device);

/*
 * Has softnic encrypt nothing; before device_choose(). Return: 0 or an exit status after a message.
 */
int device_leave_clear(const char *cmd);

/* Whether device_choose() has chosen softnic. */
bool device_is_softnic(void);

/* Whether this is the name of one of softnic's devices. */
bool device_is_named_softnic(const char *name);

/**
 * device_execute_on_softnic() - execute this command line again, with softnic preloaded
 *
 * The environment of the second execution is that of the first.
 *
 * Return: an exit status after a message; on success there is no return.
 */
int device_execute_on_softnic(const char *cmd);

/* Whether this is the second execution, for actions that must run only once. */
bool device_is_second_execution(void);

/* The path of softnic's library, beside this command or installed. */
__attribute__((nonnull)) int device_softnic_path(char *path, size_t size);

/* Libraries to preload; flags. */
enum device_library {
	DEVICE_SOFTNIC = 1,
	DEVICE_UNLOAD = 2, /* goes before softnic or libibverbs */
	DEVICE_FILES = 4,
};

/**
 * device_preload() - prepend libraries to LD_PRELOAD, and the sanitizer's runtime if there is one
 * @cmd: argv[0] of the command, for messages
 * @libraries: flags of enum device_library; libraries already listed are not added again
 *
 * Return: 0, or an exit status after a message.
 */
int device_preload(const char *cmd, unsigned int libraries);

#endif
