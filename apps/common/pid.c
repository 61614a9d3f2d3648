/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/pid.h"

#include "apps/common/number.h"

#include <limits.h>

bool pid_parse(const char *text, pid_t *pid)
{
	unsigned int number;

	if (!number_parse_uint(text, 1, INT_MAX, &number))
		return false;
	*pid = (pid_t)number;
	return true;
}

void pid_clean_comm(char *comm)
{
	for (; *comm; comm++)
		if (*comm < ' ' || *comm > '~')
			*comm = '?';
}
