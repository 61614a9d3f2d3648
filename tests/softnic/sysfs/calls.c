// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Each function of the C library that takes a path, with softnic preloaded: on softnic's tree, and
 * with what the kernel refuses.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#define CLASS "/sys/class/infiniband"
#define RDMA "/sys/devices/softnic0/infiniband/softnic0"
#define NODE_TYPE CLASS "/softnic0/node_type"
#define TEXT "1: CA\n"

static void assert_text(int fd)
{
	char text[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(TEXT));
	assert_string_equal(text, TEXT);
	close(fd);
}

static void assert_fails(long rc, int error)
{
	assert_int_equal(rc, -1);
	assert_int_equal(errno, error);
}

static void files_open(void **state)
{
	int dir = open(CLASS "/softnic0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[64];
	FILE *stream;
	void *map;
	int fd;

	(void)state;
	assert_true(dir >= 0);
	assert_text(open(NODE_TYPE, O_RDONLY));
	assert_text(openat(AT_FDCWD, NODE_TYPE, O_RDONLY));
	assert_text(openat(dir, "node_type", O_RDONLY));
	assert_text(openat(dir, "../../infiniband/softnic0/node_type", O_RDONLY));
	fd = dup(dir);
	assert_text(openat(fd, "node_type", O_RDONLY));
	close(fd);
	close(dir);

	stream = fopen(NODE_TYPE, "re");
	assert_non_null(stream);
	assert_string_equal(fgets(text, sizeof(text), stream), TEXT);
	rewind(stream);
	assert_string_equal(fgets(text, sizeof(text), stream), TEXT);
	fclose(stream);

	fd = open(NODE_TYPE, O_RDONLY);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_memory_equal(map, TEXT, strlen(TEXT));
	munmap(map, 4096);
	assert_fails(pwrite(fd, "2", 1, 0), EPERM);
	close(fd);
}

static void opening_is_refused_as_in_the_kernel(void **state)
{
	static const struct {
		const char *path;
		int flags, error;
	} cases[] = {
		{ NODE_TYPE, O_WRONLY, EACCES },
		{ NODE_TYPE, O_RDWR, EACCES },
		{ NODE_TYPE, O_RDONLY | O_TRUNC, EACCES },
		{ NODE_TYPE, O_RDONLY | O_DIRECTORY, ENOTDIR },
		{ CLASS, O_RDWR, EISDIR },
		{ CLASS "/softnic0", O_RDONLY | O_NOFOLLOW, ELOOP },
		{ CLASS "/softnic0/none", O_RDONLY, ENOENT },
		{ CLASS "/softnic0/ports/1/gid_attrs/types/255", O_RDONLY, EINVAL },
		{ "/dev/infiniband/softnic0", O_RDWR, ENXIO },
		{ "/dev/infiniband/none", O_RDWR, ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = 0;
		if (open(cases[i].path, cases[i].flags) != -1 || errno != cases[i].error)
			fail_msg("%s: %s", cases[i].path, strerror(errno));
	}
	errno = 0;
	assert_null(fopen(NODE_TYPE, "r+"));
	assert_int_equal(errno, EACCES);
	assert_null(fopen(NODE_TYPE, "w"));
}

/* A sanitizer's own functions, which stand before softnic's, read the pointer. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void an_invalid_pointer_is_the_kernels_to_refuse(void **state)
{
	char *volatile bad = (char *)1;
	struct stat st;
	char text[8];

	(void)state;
	assert_fails(open(bad, O_RDONLY), EFAULT);
	assert_fails(openat(AT_FDCWD, bad, O_RDONLY), EFAULT);
	assert_fails(stat(bad, &st), EFAULT);
	assert_fails(lstat(bad, &st), EFAULT);
	assert_fails(access(bad, F_OK), EFAULT);
	assert_fails(readlink(bad, text, sizeof(text)), EFAULT);
	assert_fails(chdir(bad), EFAULT);
}
#endif

static void check_stat(int rc, const struct stat *st, mode_t mode)
{
	assert_int_equal(rc, 0);
	assert_int_equal(st->st_mode, mode);
	assert_true(st->st_ino != 0);
}

static void files_have_a_type_and_a_mode(void **state)
{
	int dir = open(CLASS, O_RDONLY), file = open(NODE_TYPE, O_RDONLY);
	struct statx stx;
	struct stat st;

	(void)state;
	check_stat(stat(NODE_TYPE, &st), &st, S_IFREG | 0444);
	check_stat(stat(CLASS "/softnic0", &st), &st, S_IFDIR | 0555);
	check_stat(lstat(CLASS "/softnic0", &st), &st, S_IFLNK | 0777);
	check_stat(lstat(CLASS "/softnic0/", &st), &st, S_IFDIR | 0555);
	check_stat(stat("/dev/infiniband/softnic0", &st), &st, S_IFCHR | 0666);
	check_stat(fstat(dir, &st), &st, S_IFDIR | 0555);
	check_stat(fstat(file, &st), &st, S_IFREG | 0444);
	check_stat(fstatat(dir, "softnic0", &st, 0), &st, S_IFDIR | 0555);
	check_stat(fstatat(dir, "softnic0", &st, AT_SYMLINK_NOFOLLOW), &st, S_IFLNK | 0777);
	check_stat(fstatat(dir, "", &st, AT_EMPTY_PATH), &st, S_IFDIR | 0555);
	assert_int_equal(statx(dir, "softnic0", AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx), 0);
	assert_int_equal(stx.stx_mode, S_IFLNK | 0777);
	assert_int_equal(statx(dir, "", AT_EMPTY_PATH, STATX_TYPE, &stx), 0);
	assert_int_equal(stx.stx_mode, S_IFDIR | 0555);
	assert_fails(statx(dir, "none", 0, STATX_TYPE, &stx), ENOENT);
	assert_fails(stat(CLASS "/none", &st), ENOENT);
	check_stat(stat(CLASS "/softnic0/device/net/lo", &st), &st, S_IFDIR | 0755);
	close(dir);
	close(file);
}

static void nobody_may_write(void **state)
{
	(void)state;
	assert_int_equal(access(NODE_TYPE, R_OK), 0);
	assert_fails(access(NODE_TYPE, W_OK), EACCES);
	assert_fails(access(NODE_TYPE, X_OK), EACCES);
	assert_int_equal(access(CLASS, R_OK | X_OK), 0);
	assert_int_equal(access("/dev/infiniband/softnic0", R_OK | W_OK), 0);
	assert_int_equal(faccessat(AT_FDCWD, NODE_TYPE, R_OK, AT_EACCESS), 0);
	assert_int_equal(eaccess(NODE_TYPE, R_OK), 0);
	assert_fails(euidaccess(NODE_TYPE, W_OK), EACCES);
	assert_fails(access(CLASS "/softnic9", F_OK), ENOENT);
	assert_fails(mkdir(CLASS "/x", 0777), ENOENT);
	assert_fails(unlink(NODE_TYPE), ENOENT);
	assert_fails(getxattr(NODE_TYPE, "user.x", NULL, 0), ENOTSUP);
	assert_fails(llistxattr(CLASS "/softnic0", NULL, 0), ENOTSUP);
}

static void links_are_read_and_resolved(void **state)
{
	static const char target[] = "../../devices/softnic0/infiniband/softnic0";
	int dir = open(CLASS, O_RDONLY);
	char text[PATH_MAX] = "", *path;

	(void)state;
	assert_int_equal(readlink(CLASS "/softnic0", text, sizeof(text)), strlen(target));
	assert_string_equal(text, target);
	assert_int_equal(readlink(CLASS "/softnic0", text, 5), 5);
	assert_int_equal(readlinkat(dir, "softnic0", text, sizeof(text)), strlen(target));
	assert_fails(readlink(CLASS, text, sizeof(text)), EINVAL);
	assert_fails(readlink(CLASS "/none", text, sizeof(text)), ENOENT);
	close(dir);

	assert_ptr_equal(realpath(CLASS "/softnic0", text), text);
	assert_string_equal(text, RDMA);
	path = realpath(CLASS "/softnic0/device", NULL);
	assert_string_equal(path, "/sys/devices/softnic0");
	free(path);
	path = canonicalize_file_name(CLASS "/softnic0/device/net/lo");
	assert_string_equal(path, "/sys/devices/virtual/net/lo");
	free(path);
	errno = 0;
	assert_null(realpath(CLASS "/none", text));
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(realpath(NULL, text));
	assert_int_equal(errno, EINVAL);
}

static int count_entries(DIR *dir, bool *has_dots)
{
	const struct dirent *entry;
	int n = 0, dots = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		n++;
		dots += !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	}
	*has_dots = dots == 2;
	return n;
}

static void directories_are_listed(void **state)
{
	DIR *dir = opendir(CLASS "/softnic0/ports/1/gids");
	const struct dirent *entry;
	bool has_dots;
	long at;

	(void)state;
	assert_int_equal(count_entries(dir, &has_dots), 258);
	assert_true(has_dots);
	rewinddir(dir);
	assert_non_null(readdir(dir));
	at = telldir(dir);
	entry = readdir(dir);
	seekdir(dir, at);
	assert_ptr_equal(readdir(dir), entry);
	assert_text(openat(dirfd(dir), "../../../node_type", O_RDONLY));
	assert_int_equal(closedir(dir), 0);

	dir = fdopendir(open(CLASS "/softnic0/ports", O_RDONLY | O_DIRECTORY));
	assert_int_equal(count_entries(dir, &has_dots), 3);
	closedir(dir);
	dir = opendir("/proc/self/fdinfo"); /* the kernel's directories stay as they are */
	assert_true(count_entries(dir, &has_dots) > 4);
	closedir(dir);
	assert_null(opendir(NODE_TYPE));
	assert_int_equal(errno, ENOTDIR);
	assert_null(opendir(CLASS "/none"));
	assert_int_equal(errno, ENOENT);
}

static int is_port(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void directories_are_scanned(void **state)
{
	struct dirent **list;
	glob_t found;
	int n;

	(void)state;
	n = scandir(CLASS "/softnic0/ports", &list, is_port, alphasort);
	assert_int_equal(n, 1);
	assert_string_equal(list[0]->d_name, "1");
	free(list[0]);
	free(list);
	n = scandir(CLASS "/softnic0/gone", &list, NULL, NULL);
	assert_fails(n, ENOENT);

	assert_int_equal(glob(CLASS "/*/ports/*/gids/1?", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 10);
	assert_string_equal(found.gl_pathv[0], CLASS "/softnic0/ports/1/gids/10");
	globfree(&found);
	assert_int_equal(glob(CLASS "/x*", 0, NULL, &found), GLOB_NOMATCH);
	assert_int_equal(glob("/proc/self/stat*", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 3);
	globfree(&found);
}

static void a_process_may_stand_in_the_tree(void **state)
{
	char path[PATH_MAX], *old = getcwd(NULL, 0);
	struct stat st;
	bool has_dots;
	DIR *dir;
	int fd;

	(void)state;
	assert_int_equal(chdir(CLASS "/softnic0"), 0);
	assert_string_equal(getcwd(path, sizeof(path)), RDMA);
	assert_null(getcwd(path, strlen(RDMA)));
	assert_int_equal(errno, ERANGE);
	assert_text(open("node_type", O_RDONLY));
	assert_text(open("./node_type", O_RDONLY));
	check_stat(stat("../softnic0/ports", &st), &st, S_IFDIR | 0555);
	dir = opendir(".");
	assert_true(count_entries(dir, &has_dots) > 8);
	closedir(dir);
	assert_int_equal(system("read type < node_type && test \"$type\" = '1: CA'"), 0);
	assert_int_equal(chdir("ports"), 0);
	fd = open(CLASS, O_RDONLY);
	assert_int_equal(fchdir(fd), 0);
	close(fd);
	assert_string_equal(getcwd(path, sizeof(path)), CLASS);
	assert_int_equal(chdir(".."), 0);
	assert_fails(chdir(NODE_TYPE), ENOTDIR);
	assert_int_equal(chdir(old), 0);
	assert_string_equal(getcwd(path, sizeof(path)), old);
	free(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_open),
		cmocka_unit_test(opening_is_refused_as_in_the_kernel),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(an_invalid_pointer_is_the_kernels_to_refuse),
#endif
		cmocka_unit_test(files_have_a_type_and_a_mode),
		cmocka_unit_test(nobody_may_write),
		cmocka_unit_test(links_are_read_and_resolved),
		cmocka_unit_test(directories_are_listed),
		cmocka_unit_test(directories_are_scanned),
		cmocka_unit_test(a_process_may_stand_in_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
