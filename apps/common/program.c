/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/program.h"

#include <string.h>
#include <unistd.h>

bool program_folder(char folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);

	if (length <= 0)
		return false;
	folder[length] = '\0';
	*strrchr(folder, '/') = '\0';
	return true;
}
