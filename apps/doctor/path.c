/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proves that data gets through: a child lends memory, like weir serve, and this process writes,
 * reads back and compares. On softnic over loopback. On a real device over the device's own
 * address, with a temporary key.
 */
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"
#include "apps/doctor/transfer.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/donor.h>
#include <weir/session.h>

#define LENT_BYTES (64u << 20)
#define PROOF_SECONDS 5

struct path_check {
	const char *device;
	char address[64]; /* where the donor listens */
	struct weir_key *key;
	pid_t donor;
	int from_donor, to_donor;
};

/* Finds the IPv4 address in the GID table of a RoCE device. */
static bool device_address(const char *device, char *address, size_t size)
{
	char path[128], gid[64];
	unsigned int high, low;

	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%d", device, i);
		if (sysfs_line(path, gid, sizeof(gid)) &&
		    sscanf(gid, "0000:0000:0000:0000:0000:ffff:%4x:%4x", &high, &low) == 2) {
			snprintf(address, size, "%u.%u.%u.%u:0", high >> 8, high & 255, low >> 8,
				 low & 255);
			return true;
		}
	}
	return false;
}

static int make_key(struct path_check *path, struct weir_error *error)
{
	char dir[] = "/tmp/weir-doctor-XXXXXX";
	char file[sizeof(dir) + 8];
	int rc;

	if (!mkdtemp(dir)) {
		snprintf(error->text, sizeof(error->text), "%s: %s", dir, strerror(errno));
		return -errno;
	}
	snprintf(file, sizeof(file), "%s/key", dir);
	rc = weir_key_create(file, error);
	if (!rc)
		rc = weir_key_load(file, &path->key, error);
	unlink(file);
	rmdir(dir);
	return rc;
}

/* Chooses an address that the device can reach. */
static int choose_address(struct path_check *path, struct weir_error *error)
{
	static char first[64];

	strcpy(path->address, "127.0.0.1:0");
	if (!path->device && sysfs_rdma_device(first, sizeof(first)) && !getenv("WEIR_DEVICE"))
		path->device = first;
	if (!path->device || !device_address(path->device, path->address, sizeof(path->address)))
		return 0;
	return make_key(path, error);
}

/*
 * The child process: lends until the parent closes the pipe. Reports its address, or an error,
 * through @to_parent.
 */
static void lend(const struct path_check *path, int to_parent, int from_parent)
{
	const struct weir_key *keys[] = { path->key };
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = path->address,
		.device = path->device,
		.keys = keys,
		.nr_keys = path->key ? 1 : 0,
		.memory_bytes = LENT_BYTES,
	};
	struct weir_donor *donor;
	struct weir_donor_info info;
	struct weir_error error;
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (weir_donor_open(&options, &donor, &error)) {
		dprintf(to_parent, "!%s", error.text);
		_exit(1);
	}
	weir_donor_info(donor, &info, sizeof(info));
	dprintf(to_parent, "%s", info.address);
	close(to_parent);
	while (read(from_parent, &end, 1) < 0 && errno == EINTR)
		;
	weir_donor_close(donor);
	_exit(0);
}

static int start_donor(struct path_check *path, struct weir_error *error)
{
	int up[2], down[2];
	char said[sizeof(error->text) - 16];
	ssize_t length;

	if (pipe(up) || pipe(down) || (path->donor = fork()) < 0) {
		snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
		return -errno;
	}
	if (!path->donor) {
		close(up[0]);
		close(down[1]);
		lend(path, up[1], down[0]);
	}
	close(up[1]);
	close(down[0]);
	path->to_donor = down[1];
	length = read(up[0], said, sizeof(said) - 1);
	close(up[0]);
	said[length > 0 ? length : 0] = '\0';
	if (length <= 0 || said[0] == '!') {
		snprintf(error->text, sizeof(error->text), "no donor: %s",
			 length > 0 ? said + 1 : "the process ended without a message");
		return -EIO;
	}
	snprintf(path->address, sizeof(path->address), "%.*s", (int)sizeof(path->address) - 1,
		 said);
	return 0;
}

static void stop_donor(struct path_check *path)
{
	if (path->donor <= 0)
		return;
	close(path->to_donor);
	waitpid(path->donor, NULL, 0);
}

void check_path(struct report *report, const char *device)
{
	struct path_check path = { .device = device };
	struct data_proof t = { .seconds = PROOF_SECONDS };
	struct weir_error error = { "" };
	int rc = choose_address(&path, &error);

	if (!rc)
		rc = start_donor(&path, &error);
	t.address = path.address;
	t.device = path.device;
	t.key = path.key;
	if (!rc)
		rc = transfer_prove(&t, &error);
	stop_donor(&path);
	weir_key_free(path.key);
	if (rc) {
		report_add(report, "path", VERDICT_FAIL, "%s", error.text);
		report_remedy(report,
			      "first fix the problems above; then weir ping DONOR shows more");
		return;
	}
	report_add(
		report, "path", VERDICT_OK,
		"%u MiB written and read back over %s, all equal: write %.0f MB/s, read %.0f MB/s, "
		"4 KiB in %.1f and %.1f us",
		(unsigned int)(t.bytes >> 20), t.info.device, t.write_mbps, t.read_mbps, t.write_us,
		t.read_us);
}
