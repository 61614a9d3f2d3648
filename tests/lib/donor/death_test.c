/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor death; suites: donor; devices: softnic rxe; timeout: 120 */
/* Either end, in another process, is killed in the middle of its work. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/donor_fixture.h"

extern char **environ;

static const char *program;

struct child {
	pid_t pid;
	int out;
};

/* Start this program again in a role, and wait for the line that reports ready. */
static void child_start(struct child *child, const char *role, const char *address, char line[64])
{
	char *argv[] = { (char *)program, (char *)role, (char *)address, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	assert_int_equal(posix_spawn(&child->pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	child->out = fds[0];
	n = read(child->out, line, 63);
	assert_true(n > 0);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static void child_kill(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->out);
}

static void ready(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

/* Hold a nameless region, and a named region exclusively, and write without end. */
static int role_writer(const char *address)
{
	struct wire_control_region nameless, named;
	struct raw_client raw;

	if (raw_open(&raw, address, &key_a) || raw_create(&raw, NULL, MIB, 0, &nameless) ||
	    raw_create(&raw, "mine", MIB, WIRE_REGION_EXCLUSIVE, &named))
		return 1;
	memset(raw.data, 0xee, RAW_DATA);
	raw_write(&raw, named.addr, named.rkey, MIB);
	ready("writing");
	while (!raw_write(&raw, nameless.addr, nameless.rkey, MIB))
		;
	return 1;
}

/* Connect, and prove nothing. */
static int role_stranger(const char *address)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	struct raw_client raw;

	if (raw_connect(&raw, address, &connect, sizeof(connect)))
		return 1;
	ready("connected");
	return sleep(60);
}

static int role_donor(const char *address)
{
	struct donor_fixture f;

	(void)address;
	donor_fixture_start(&f, NULL);
	ready(f.info.address);
	return sleep(60);
}

static void a_killed_client_leaves_nothing_behind(void **state)
{
	struct wire_control_region r, named;
	struct child child;
	struct donor_fixture f;
	struct raw_client other;
	char line[64];
	size_t i;
	int n;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&other, f.info.address, &key_a), 0);
	for (n = 0; n < 5; n++) {
		child_start(&child, "writer", f.info.address, line);
		assert_string_equal(line, "writing");
		assert_int_equal(donor_fixture_info(&f)->lent_bytes, 2 * MIB);
		assert_int_equal(raw_region_open(&other, "mine", 0, &named), -EBUSY);
		child_kill(&child);
		assert_soon(donor_fixture_info(&f)->lent_bytes == MIB);
		assert_soon(donor_fixture_info(&f)->clients == 1);
		/* The exclusively held region is free, with its content unchanged. */
		assert_int_equal(raw_region_open(&other, "mine", WIRE_REGION_EXCLUSIVE, &named), 0);
		assert_int_equal(raw_read(&other, named.addr, named.rkey, MIB), 0);
		assert_int_equal((unsigned char)other.data[MIB - 1], 0xee);
		/* The nameless region is zero again. */
		assert_int_equal(raw_create(&other, NULL, 8 * MIB, 0, &r), 0);
		for (i = 0; i < 8; i++) {
			assert_int_equal(raw_read(&other, r.addr + i * MIB, r.rkey, MIB), 0);
			assert_int_equal(other.data[0] | other.data[MIB - 1], 0);
		}
		assert_int_equal(raw_region_close(&other, r.hold), 0);
		assert_int_equal(raw_region_delete(&other, "mine"), 0);
		assert_int_equal(raw_region_close(&other, named.hold), 0);
		assert_int_equal(donor_fixture_info(&f)->lent_bytes, 0);
	}
	raw_close(&other);
	donor_fixture_stop(&f);
}

static void a_killed_stranger_makes_room(void **state)
{
	struct child children[4];
	struct donor_fixture f;
	struct raw_client honest;
	char line[64];
	int i;

	(void)state;
	donor_fixture_start(&f, NULL);
	for (i = 0; i < 4; i++)
		child_start(&children[i], "stranger", f.info.address, line);
	for (i = 0; i < 4; i++)
		child_kill(&children[i]);
	assert_int_equal(raw_open(&honest, f.info.address, &key_a), 0);
	assert_int_equal(raw_create(&honest, NULL, MIB, 0, &(struct wire_control_region){ 0 }), 0);
	raw_close(&honest);
	donor_fixture_stop(&f);
}

static void a_killed_donor_ends_its_clients(void **state)
{
	struct wire_control_region r;
	struct child child;
	struct raw_client raw;
	char address[64];
	uint64_t start_ns;

	(void)state;
	child_start(&child, "donor", "", address);
	assert_int_equal(raw_open(&raw, address, &key_a), 0);
	assert_int_equal(raw_create(&raw, NULL, MIB, 0, &r), 0);
	assert_int_equal(raw_write(&raw, r.addr, r.rkey, MIB), 0);
	child_kill(&child);
	start_ns = weir_now_ns();
	assert_int_not_equal(raw_write(&raw, r.addr, r.rkey, MIB), 0);
	assert_true(raw_is_cut_off(&raw, SOON_MS));
	assert_true(weir_now_ns() - start_ns < SOON_MS * WEIR_NS_PER_MS);
	raw_close(&raw);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_client_leaves_nothing_behind),
		cmocka_unit_test(a_killed_stranger_makes_room),
		cmocka_unit_test(a_killed_donor_ends_its_clients),
	};

	program = argv[0];
	if (argc == 3 && !strcmp(argv[1], "writer"))
		return role_writer(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "stranger"))
		return role_stranger(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "donor"))
		return role_donor(argv[2]);
	return cmocka_run_group_tests_name("death", tests, NULL, NULL);
}
