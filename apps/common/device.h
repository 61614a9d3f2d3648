/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which verbs device the bytes take: a real one, Soft-RoCE, or softnic.
 *
 * softnic is a library that must be loaded before libibverbs, so choosing it means executing
 * the command once more with LD_PRELOAD set. The environment is as it was after that:
 * children do not inherit the preload.
 */
#ifndef WEIR_APPS_COMMON_DEVICE_H
#define WEIR_APPS_COMMON_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* For the --help of commands that call device_choose(). */
#define DEVICE_HELP                                                                             \
	"  -d, --device DEVICE    auto, softnic, or the name of a verbs device such as rxe0;\n" \
	"                         default $WEIR_DEVICE, or else auto: a real device if there\n" \
	"                         is one, else softnic\n"

/* Remembers the command line for a second execution. main() calls it first. */
void device_init(int argc, char **argv);

/**
 * device_choose() - settle on a device, and say on standard error which
 * @cmd: argv[0] of the command, for messages
 * @wanted: the argument of --device, or NULL
 * @device: receives the verbs device to restrict oneself to, or NULL for any: what
 *	weir_session_options.device and weir_donor_options.device want. Lives for ever.
 *
 * May execute the program anew and not return: call it right after parsing the options, before
 * anything has been printed, opened or started.
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int device_choose(const char *cmd, const char *wanted, const char **device);

/* Is the device that device_choose() settled on softnic's? */
bool device_is_softnic(void);

/* Has device_choose() executed the program anew? For what must happen once, before it. */
bool device_is_second_execution(void);

/* What softnic's library is called where this command was built or installed. */
__attribute__((nonnull)) int device_softnic_path(char *path, size_t size);

/* What may be preloaded into a program; both may be. */
enum device_library {
	DEVICE_SOFTNIC = 1,
	DEVICE_UNLOAD = 2, /* goes before softnic, or before libibverbs */
};

/**
 * device_preload() - put libraries, and the runtime of a sanitizer if this program has
 * one, before what LD_PRELOAD holds already
 * @libraries: of enum device_library; what is there already is not put there again
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int device_preload(const char *cmd, unsigned int libraries);

#endif
