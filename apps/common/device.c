/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/device.h"
#include "apps/common/cmd.h"
#include "apps/common/program.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 64 /* bytes of a device's name, with its NUL */
#define SOFTNIC_LIBRARY "libweir-softnic.so"
#define UNLOAD_LIBRARY "libweir-unload.so"
#define FILES_LIBRARY "libweir-files.so"
/* Original LD_PRELOAD, in the environment of the second execution only. */
#define SAVED_PRELOAD "WEIR_SAVED_PRELOAD"

static char **command_line;
static bool is_second_execution;

void device_init(int argc, char **argv)
{
	const char *saved = getenv(SAVED_PRELOAD);

	command_line = calloc(argc + 1, sizeof(*command_line));
	if (!command_line)
		abort();
	memcpy(command_line, argv, argc * sizeof(*command_line));
	if (!saved)
		return;
	is_second_execution = true;
	if (*saved)
		setenv("LD_PRELOAD", saved, 1);
	else
		unsetenv("LD_PRELOAD");
	unsetenv(SAVED_PRELOAD);
}

bool device_is_second_execution(void)
{
	return is_second_execution;
}

/* Looks beside this program, in @folder, and then in the installation's library directory. */
static int library_path(const char *folder, const char *name, char *path, size_t size)
{
	char program[PATH_MAX];

	if (program_folder(program)) {
		snprintf(path, size, "%s/%s/%s", program, folder, name);
		if (!access(path, R_OK))
			return 0;
	}
	snprintf(path, size, "%s/%s", WEIR_LIBDIR, name);
	return access(path, R_OK) ? -ENOENT : 0;
}

int device_softnic_path(char *path, size_t size)
{
	return library_path("softnic", SOFTNIC_LIBRARY, path, size);
}

/* gcc's sanitizers are shared libraries and must be loaded first. */
static int note_sanitizer(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (strncmp(name, "libasan.", 8) && strncmp(name, "libtsan.", 8))
		return 0;
	*(const char **)arg = info->dlpi_name;
	return 1;
}

static int preload_first(const char *cmd, const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	char *all;
	int rc;

	if (asprintf(&all, "%s%s%s", path, others && *others ? ":" : "", others ? others : "") < 0)
		return failure(cmd, "out of memory");
	rc = setenv("LD_PRELOAD", all, 1);
	free(all);
	return rc ? failure(cmd, "out of memory") : 0;
}

static int preload_library(const char *cmd, const char *folder, const char *name)
{
	const char *others = getenv("LD_PRELOAD");
	char path[PATH_MAX];

	if (others && strstr(others, name))
		return 0;
	if (library_path(folder, name, path, sizeof(path)))
		return failure(cmd, "the library %s is neither beside this program nor in %s", name,
			       WEIR_LIBDIR);
	return preload_first(cmd, path);
}

int device_preload(const char *cmd, unsigned int libraries)
{
	const char *sanitizer = NULL;
	int status = 0;

	if (libraries & DEVICE_SOFTNIC)
		status = preload_library(cmd, "softnic", SOFTNIC_LIBRARY);
	if (!status && libraries & DEVICE_UNLOAD)
		status = preload_library(cmd, "preload/unload", UNLOAD_LIBRARY);
	if (!status && libraries & DEVICE_FILES)
		status = preload_library(cmd, "preload/files", FILES_LIBRARY);
	dl_iterate_phdr(note_sanitizer, &sanitizer);
	return status || !sanitizer ? status : preload_first(cmd, sanitizer);
}

int device_execute_on_softnic(const char *cmd)
{
	const char *others = getenv("LD_PRELOAD");
	char *saved = strdup(others ? others : "");
	int status;

	if (!saved || setenv(SAVED_PRELOAD, saved, 1))
		return failure(cmd, "out of memory");
	free(saved);
	status = device_preload(cmd, DEVICE_SOFTNIC);
	if (status)
		return status;
	execv("/proc/self/exe", command_line);
	return failure(cmd, "cannot execute /proc/self/exe for softnic: %s", strerror(errno));
}

bool device_is_named_softnic(const char *name)
{
	return !strncmp(name, "softnic", strlen("softnic"));
}

/*
 * Finds the device @name or, if NULL, the first device. @found: receives the name, NAME_BYTES at
 * most.
 */
static bool find_device(const char *name, char *found)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	int i = 0;

	while (list && i < count && name && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	if (i < count)
		snprintf(found, NAME_BYTES, "%s", ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
	return i < count;
}

bool device_is_softnic(void)
{
	char first[NAME_BYTES];

	return find_device(NULL, first) && device_is_named_softnic(first);
}

static int choose_softnic(const char *cmd, const char *why)
{
	if (device_is_softnic()) {
		/* the first execution has printed this already */
		if (!is_second_execution)
			cmd_say(NULL, "%susing softnic", why);
		return 0;
	}
	if (is_second_execution)
		return failure(
			cmd,
			"softnic's library is preloaded but shows no device: check WEIR_SOFTNIC");
	cmd_say(NULL, "%susing softnic", why);
	return device_execute_on_softnic(cmd);
}

static int choose_named(const char *cmd, const char *wanted, const char **device)
{
	static char found[NAME_BYTES];

	if (find_device(wanted, found)) {
		cmd_say(NULL, "using RDMA device %s", found);
		*device = found;
		return 0;
	}
	if (find_device(NULL, found))
		return failure(cmd, "no RDMA device %s on this host; there is %s", wanted, found);
	return failure(cmd, "no RDMA device %s on this host: try --device softnic", wanted);
}

/* Lists all devices: librdmacm chooses by the routing table. */
static void say_devices(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	char names[512] = "";

	for (int i = 0; list && i < count; i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s %s", i ? " or" : "",
			 ibv_get_device_name(list[i]));
	}
	cmd_say(NULL, "using RDMA device%s%s", names, count > 1 ? ", as the route says" : "");
	if (list)
		ibv_free_device_list(list);
}

int device_leave_clear(const char *cmd)
{
	const char *others = getenv("WEIR_SOFTNIC");
	char *all;
	int rc;

	if (asprintf(&all, "%s%sencrypt=0", others ? others : "", others && *others ? "," : "") < 0)
		return failure(cmd, "out of memory");
	rc = setenv("WEIR_SOFTNIC", all, 1);
	free(all);
	return rc ? failure(cmd, "out of memory") : 0;
}

int device_choose(const char *cmd, const char *wanted, const char **device)
{
	char first[NAME_BYTES];

	*device = NULL;
	if (!wanted || !*wanted)
		wanted = getenv("WEIR_DEVICE");
	if (wanted && device_is_named_softnic(wanted))
		return choose_softnic(cmd, "");
	if (wanted && *wanted && strcmp(wanted, "auto"))
		return choose_named(cmd, wanted, device);

	if (!find_device(NULL, first) || device_is_named_softnic(first))
		return choose_softnic(cmd, "no RDMA device found: ");
	say_devices();
	return 0;
}
