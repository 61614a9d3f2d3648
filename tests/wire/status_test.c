/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The statuses that a peer may name, in replies about regions and of the file system. */
#include "tests/support/cmocka_all.h"
#include "wire/control.h"
#include "wire/status.h"

/* The smallest status that FUSE passes on; the kernel keeps lower ones for itself. */
#define FUSE_MIN (-511)

static int decoded(int status)
{
	const struct wire_control_head sent = { .kind = WIRE_CONTROL_REPLY, .status = status };
	struct wire_control_head head;
	const void *body;

	assert_int_equal(wire_control_decode(&sent, sizeof(sent), &head, &body), 0);
	return head.status;
}

static void a_reply_outside_the_closed_list_is_an_io_error(void **state)
{
	static const int refused[] = { -EINTR, -ENOTDIR, -512, -513, -529, -999, -4095, INT32_MIN };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(decoded(refused[i]), -EIO);
	assert_int_equal(decoded(0), 0);
	assert_int_equal(decoded(-EDQUOT), -EDQUOT);
	assert_int_equal(decoded(-ENOENT), -ENOENT);
}

static void no_status_is_one_that_a_kernel_keeps_for_itself(void **state)
{
	int status;

	(void)state;
	for (status = -5000; status <= 5000; status++) {
		int taken = wire_status(status), taken_fs = wire_status_fs(status);

		assert_true(taken == status || taken == -EIO);
		assert_true(taken_fs == status || taken_fs == -EIO);
		assert_in_range(-taken, 0, -FUSE_MIN);
		assert_in_range(-taken_fs, 0, -FUSE_MIN);
	}
}

static void the_file_system_has_posix_errors_besides(void **state)
{
	(void)state;
	assert_int_equal(wire_status_fs(-ENOTEMPTY), -ENOTEMPTY);
	assert_int_equal(wire_status_fs(-EINTR), -EINTR);
	assert_int_equal(wire_status_fs(-ENOENT), -ENOENT);
	/* The kernel would never ask again for this operation. */
	assert_int_equal(wire_status_fs(-ENOSYS), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_outside_the_closed_list_is_an_io_error),
		cmocka_unit_test(no_status_is_one_that_a_kernel_keeps_for_itself),
		cmocka_unit_test(the_file_system_has_posix_errors_besides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
