/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/doctor/sysfs.h"
#include "apps/common/device.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool sysfs_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

bool sysfs_number(const char *path, uint64_t *number)
{
	char line[64];

	return sysfs_line(path, line, sizeof(line)) && sscanf(line, "%" SCNu64, number) == 1;
}

bool sysfs_meminfo(const char *name, uint64_t *number)
{
	FILE *file = fopen("/proc/meminfo", "re");
	size_t length = strlen(name);
	char line[128];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, name, length) && line[length] == ':' &&
			sscanf(line + length + 1, "%" SCNu64, number) == 1;
	if (file)
		fclose(file);
	return found;
}

bool sysfs_rdma_device(char *name, size_t size)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		/* softnic, preloaded, shows its own devices there */
		found = entry->d_name[0] != '.' && !device_is_named_softnic(entry->d_name);
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool fix_step(const char *const argv[])
{
	pid_t pid;
	int status;

	fputs("fix:", stderr);
	for (size_t i = 0; argv[i]; i++)
		fprintf(stderr, " %s", argv[i]);
	fputc('\n', stderr);
	pid = fork();
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}
