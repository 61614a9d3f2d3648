/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The least there is: a session, a region of the donor's memory, a write and a read.
 *
 *	read_write 127.0.0.1:7474
 */
#include <stdio.h>
#include <weir/weir.h>

int main(int argc, char **argv)
{
	struct weir_session *session;
	struct weir_region *region;
	struct weir_error error;
	char text[32] = "";
	int rc;

	if (weir_session_open(argc > 1 ? argv[1] : "127.0.0.1", NULL, &session, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	if (weir_region_create(session, NULL, 1 << 20, 0, &region, &error)) {
		fprintf(stderr, "%s\n", error.text);
		weir_session_close(session);
		return 1;
	}
	rc = weir_write(region, 4096, "over the weir", 14);
	if (!rc)
		rc = weir_read(region, 4096, text, 14);
	printf("%s: %s\n", weir_strerror(rc), text);

	weir_region_close(region);
	weir_session_close(session);
	return rc != 0;
}
