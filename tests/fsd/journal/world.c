/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/fsd/journal/world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOT (FS_TRANSFER_MAX / 8) /* of a call, in the staging area of a connection */
#define STAGING (WORLD_BATCH_MAX * SLOT)

#define check(condition)                                                                      \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
			abort();                                                              \
		}                                                                             \
	} while (0)

static uint32_t draw(struct crash_world *w, uint32_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 32) % below;
}

/* The write that crashes changes some of its bytes: a part at the front, at the end, or any. */
static void tear(struct crash_world *w, uint8_t *to, const uint8_t *from, size_t length)
{
	uint32_t kind = draw(w, 4), cut = draw(w, (uint32_t)length + 1);

	for (size_t i = 0; i < length; i++) {
		if (kind == 0 ? i < cut : kind == 1 ? i >= cut : kind == 2 ? draw(w, 2) : 0)
			to[i] = from[i];
	}
}

static int put(struct crash_world *w, uint64_t offset, const uint8_t *from, size_t length)
{
	check(offset <= WORLD_BYTES && length <= WORLD_BYTES - offset);
	if (!w->is_down && ++w->writes == w->crash_at) {
		w->is_down = true;
		tear(w, w->disk + offset, from, length);
	}
	if (w->is_down)
		return -EIO;
	memcpy(w->disk + offset, from, length);
	return 0;
}

static int disk_read(void *arg, uint64_t offset, void *to, size_t length)
{
	struct crash_world *w = arg;

	check(offset % FSD_DISK_PAGE == 0 && length % FSD_DISK_PAGE == 0);
	check(offset <= WORLD_BYTES && length <= WORLD_BYTES - offset);
	if (w->is_down)
		return -EIO;
	memcpy(to, w->disk + offset, length);
	return 0;
}

static int disk_write(void *arg, uint64_t offset, const void *from, size_t length)
{
	check(offset % FSD_DISK_PAGE == 0 && length % FSD_DISK_PAGE == 0);
	return put(arg, offset, from, length);
}

static uint8_t *area_of(struct crash_world *w, const struct crash_request *request)
{
	return w->area[request->conn % 2];
}

static uint8_t *slot_of(struct crash_world *w, const struct crash_call *call)
{
	return w->area[w->conn % 2] + (call - w->call) * SLOT;
}

static void move(struct crash_world *w, const struct crash_move *m)
{
	static const uint8_t zeroes[WORLD_FILE_MAX + 2 * FS_BLOCK];
	const struct fsd_data *piece = &m->piece;
	uint8_t *at = NULL;
	int rc = 0;

	check(!m->request || !m->request->has_ended);
	if (piece->kind != FSD_DATA_ZERO)
		at = area_of(w, m->request) + piece->place;
	if (piece->kind == FSD_DATA_WRITE) {
		memset(at, 0, piece->before);
		memset(at + piece->length - piece->after, 0, piece->after);
		rc = put(w, piece->volume, at, piece->length);
	} else if (piece->kind == FSD_DATA_ZERO) {
		check(piece->length <= sizeof(zeroes));
		rc = put(w, piece->volume, zeroes, piece->length);
	} else if (piece->kind == FSD_DATA_HOLE) {
		memset(at, 0, piece->length);
	} else if (!w->is_down) {
		memcpy(at, w->disk + piece->volume, piece->length);
	}
	if (rc)
		*m->status = rc;
}

static void move_all(struct crash_world *w)
{
	for (unsigned int i = 0; i < w->nr_moves; i++)
		move(w, &w->move[i]);
	w->nr_moves = 0;
}

/* The bytes move now, or as late as they may. */
static void start(void *arg, void *to, const struct fsd_data *piece, int *status)
{
	struct crash_world *w = arg;

	check(w->nr_moves < WORLD_MOVES_MAX);
	check(piece->kind == FSD_DATA_ZERO || piece->place + piece->length <= STAGING);
	w->move[w->nr_moves++] = (struct crash_move){ *piece, to, status };
	if (draw(w, 2))
		move_all(w);
}

static int settle(void *arg)
{
	struct crash_world *w = arg;

	move_all(w);
	return w->is_down ? -EIO : 0;
}

static void check_transferred(struct crash_world *w, struct crash_call *call, const void *bytes)
{
	struct wire_fs_transferred out;

	memcpy(&out, bytes, sizeof(out));
	if (!call->reads) {
		call->expected_length = out.length;
		return;
	}
	check(out.length == call->expected_length);
	if (memcmp(slot_of(w, call) + call->place, call->expected, out.length)) {
		fprintf(stderr, "a read returned wrong bytes\n");
		abort();
	}
}

/* A reply to an earlier connection is lost. */
static void reply(void *arg, void *to, const void *bytes, size_t length)
{
	struct crash_world *w = arg;
	struct crash_request *request = to;
	struct crash_call *call = request->call;
	struct wire_fs_reply head;
	struct wire_fs_attr attr;

	check(!request->has_ended);
	request->has_ended = true;
	if (!length || request->conn != w->conn)
		return;
	check(!w->is_down);
	memcpy(&head, bytes, sizeof(head));
	check(head.shared);
	call->replies++;
	call->got = head.status;
	if (length == sizeof(head) + sizeof(attr) || length == sizeof(head) + 2 * sizeof(attr)) {
		memcpy(&attr, (const char *)bytes + sizeof(head), sizeof(attr));
		call->expected_length = attr.ino; /* of FS_MAKE and FS_LOOKUP */
	}
	if (length == sizeof(struct wire_fs_transferred))
		check_transferred(w, call, bytes);
}

static void wall(void *arg, struct wire_fs_time *now)
{
	*now = (struct wire_fs_time){ .sec = (int64_t)++((struct crash_world *)arg)->now };
}

static void random_bytes(void *arg, void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)bytes)[i] = (uint8_t)draw(arg, 256);
}

static int open_service(struct crash_world *w)
{
	const struct fsd_service_host host = {
		.disk = { disk_read, disk_write, WORLD_BYTES, w },
		.start = start,
		.settle = settle,
		.reply = reply,
		.wall = wall,
		.random = random_bytes,
		.arg = w,
	};

	return fsd_service_open(&host, 0, 0, &w->service);
}

static struct crash_call *new_call(struct crash_world *w, enum wire_fs_op op, uint64_t ino,
				   size_t fixed)
{
	struct crash_call *call = &w->call[w->nr_calls++];
	uint8_t *expected = call->expected;
	struct wire_fs_call head = { w->mount, ++w->number, w->number, 0 };
	struct wire_fs_head first = { .op = (uint16_t)op, .ino = ino };

	memset(call, 0, sizeof(*call));
	call->expected = expected;
	head.answered = w->number - (w->nr_calls - 1);
	memcpy(call->message, &head, sizeof(head));
	memcpy(call->message + sizeof(head), &first, sizeof(first));
	call->length = sizeof(head) + fixed;
	return call;
}

static void *body(struct crash_call *call)
{
	return call->message + sizeof(struct wire_fs_call);
}

static void add_text(struct crash_call *call, const void *text, size_t length, bool is_name)
{
	struct wire_fs_head head;

	memcpy(call->message + call->length, text, length);
	call->length += length;
	memcpy(&head, body(call), sizeof(head));
	if (is_name)
		head.name_length = (uint32_t)length;
	memcpy(body(call), &head, sizeof(head));
}

static void name_file(struct crash_call *call, unsigned int file)
{
	char name[8];

	snprintf(name, sizeof(name), "f%u", file);
	add_text(call, name, strlen(name), true);
}

/* Sends a call by the current connection. Return: the error if the server must end. */
static int send(struct crash_world *w, struct crash_call *call)
{
	struct crash_request *request = &call->request[w->conn % 2];
	int rc;

	if (w->is_down)
		return -EIO;
	*request = (struct crash_request){ .call = call, .conn = w->conn };
	rc = fsd_service_request(w->service, request, call->message, call->length);
	return rc < 0 ? rc : 0;
}

/* The mount's next connection, with another staging area. */
static void connect_again(struct crash_world *w)
{
	w->conn++;
	memset(w->area[w->conn % 2], 0xdd, STAGING);
}

static bool is_op(const struct crash_call *call, enum wire_fs_op op)
{
	struct wire_fs_head head;

	memcpy(&head, call->message + sizeof(struct wire_fs_call), sizeof(head));
	return head.op == op;
}

/*
 * Repeats the calls that have no reply by the next connection. The bytes of a write are put into
 * the new area. A read that others follow could see what they write, and is given up.
 */
static int repeat_calls(struct crash_world *w)
{
	const uint8_t *old = w->area[w->conn % 2];
	int rc = 0;

	connect_again(w);
	for (unsigned int i = w->done; i < w->nr_calls; i++) {
		struct crash_call *call = &w->call[i];

		if (!call->reads)
			memcpy(slot_of(w, call), old + i * SLOT, SLOT);
		call->is_given_up |= is_op(call, FS_READ) && i + 1 < w->nr_calls;
	}
	for (unsigned int i = w->done; i < w->nr_calls && !rc; i++) {
		if (!w->call[i].replies && !w->call[i].is_given_up)
			rc = send(w, &w->call[i]);
	}
	return rc;
}

static void end_service(struct crash_world *w)
{
	struct fsd_service_info info;

	fsd_service_info(w->service, &info);
	w->checkpoints += (unsigned int)info.checkpoints;
	fsd_service_close(w->service);
	w->service = NULL;
}

static void make(struct crash_world *w, unsigned int file)
{
	struct crash_call *call = new_call(w, FS_MAKE, FS_ROOT, sizeof(struct wire_fs_make));
	struct account_file *f = &w->after.file[file];
	struct wire_fs_make *make = body(call);

	make->mode = S_IFREG | 0600;
	make->make = FS_MAKE_OPEN | FS_MAKE_EXCLUSIVE;
	name_file(call, file);
	call->status = f->exists ? -EEXIST : 0;
	if (f->exists)
		return;
	memset(f, 0, sizeof(*f));
	f->exists = true;
}

static struct wire_fs_transfer *transfer(struct crash_world *w, enum wire_fs_op op,
					 unsigned int file, uint32_t offset, uint32_t length)
{
	struct crash_call *call = new_call(w, op, w->ino[file], sizeof(struct wire_fs_transfer));
	struct wire_fs_transfer *t = body(call);

	t->offset = offset;
	t->length = length;
	call->place = FS_BLOCK * draw(w, 3) + offset % FS_BLOCK;
	t->place = (uint64_t)(call - w->call) * SLOT + call->place;
	call->reads = op == FS_READ;
	return t;
}

static void write_file(struct crash_world *w, unsigned int file)
{
	struct account_file *f = &w->after.file[file];
	uint32_t length = 1 + draw(w, draw(w, 2) ? 300 : 12000);
	uint32_t offset = draw(w, 3) ? draw(w, WORLD_FILE_MAX - length) : f->size;
	struct crash_call *call;

	if (offset + length > WORLD_FILE_MAX)
		offset = 0;
	transfer(w, FS_WRITE, file, offset, length);
	call = &w->call[w->nr_calls - 1];
	memset(slot_of(w, call), 0xee, SLOT);
	for (uint32_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)(1 + draw(w, 255));

		slot_of(w, call)[call->place + i] = byte;
		f->bytes[offset + i] = byte;
		w->before.file[file].torn[offset + i] = true;
	}
	if (offset + length > f->size)
		f->size = offset + length;
}

static void read_file(struct crash_world *w, unsigned int file)
{
	const struct account_file *f = &w->after.file[file];
	uint32_t length = 1 + draw(w, 12000), offset = draw(w, WORLD_FILE_MAX - 12000);
	struct crash_call *call;

	transfer(w, FS_READ, file, offset, length);
	call = &w->call[w->nr_calls - 1];
	call->expected_length = offset < f->size ? f->size - offset : 0;
	if (call->expected_length > length)
		call->expected_length = length;
	memcpy(call->expected, f->bytes + offset, call->expected_length);
}

static void truncate_file(struct crash_world *w, unsigned int file)
{
	struct crash_call *call =
		new_call(w, FS_SETATTR, w->ino[file], sizeof(struct wire_fs_setattr));
	struct account_file *f = &w->after.file[file];
	struct wire_fs_setattr *set = body(call);

	set->mask = FS_SET_SIZE;
	set->size = draw(w, WORLD_FILE_MAX);
	if (set->size < f->size)
		memset(f->bytes + set->size, 0, f->size - set->size);
	f->size = (uint32_t)set->size;
}

static void punch_file(struct crash_world *w, unsigned int file)
{
	struct crash_call *call =
		new_call(w, FS_FALLOCATE, w->ino[file], sizeof(struct wire_fs_fallocate));
	struct account_file *f = &w->after.file[file];
	struct wire_fs_fallocate *punch = body(call);
	uint32_t offset = draw(w, WORLD_FILE_MAX - 10000), length = 1 + draw(w, 10000);

	punch->mode = draw(w, 2) ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0;
	punch->offset = offset;
	punch->length = length;
	for (uint32_t i = offset; punch->mode && i < offset + length; i++) {
		w->before.file[file].torn[i] = true;
		f->bytes[i] = 0;
	}
	if (!punch->mode && offset + length > f->size)
		f->size = offset + length;
}

static void chmod_file(struct crash_world *w, unsigned int file)
{
	struct crash_call *call =
		new_call(w, FS_SETATTR, w->ino[file], sizeof(struct wire_fs_setattr));
	struct wire_fs_setattr *set = body(call);

	set->mask = FS_SET_MODE;
	set->mode = draw(w, 01000);
}

/* Fills the log. */
static void label_file(struct crash_world *w, unsigned int file)
{
	static const char value[FS_XATTR_MAX];
	struct crash_call *call =
		new_call(w, FS_SETXATTR, w->ino[file], sizeof(struct wire_fs_xattr));

	((struct wire_fs_xattr *)body(call))->value_length = sizeof(value);
	add_text(call, "user.x", 6, true);
	add_text(call, value, sizeof(value), false);
}

/* The file is open, and closed with it: so that its blocks are freed. */
static void unlink_file(struct crash_world *w, unsigned int file)
{
	struct crash_call *call;

	if (draw(w, 2))
		new_call(w, FS_RELEASE, w->ino[file], sizeof(struct wire_fs_head));
	else
		new_call(w, FS_CLOSE, w->ino[file], sizeof(struct wire_fs_setattr));
	call = new_call(w, FS_UNLINK, FS_ROOT, sizeof(struct wire_fs_head));
	name_file(call, file);
	w->after.file[file].exists = false;
}

static void plan(struct crash_world *w)
{
	unsigned int file = draw(w, WORLD_FILES);

	if (!w->after.file[file].exists || !w->ino[file]) {
		if (!w->after.file[file].exists)
			make(w, file);
		w->ino[file] = 0; /* until the reply */
		return;
	}
	switch (draw(w, 9)) {
	case 0:
	case 1:
	case 2:
		write_file(w, file);
		break;
	case 3:
		read_file(w, file);
		break;
	case 4:
		truncate_file(w, file);
		break;
	case 5:
		punch_file(w, file);
		break;
	case 6:
		chmod_file(w, file);
		break;
	case 7:
		label_file(w, file);
		break;
	default:
		if (w->nr_calls + 2 <= WORLD_BATCH_MAX) {
			unlink_file(w, file);
			w->ino[file] = 0;
		}
	}
}

static unsigned int file_of(const struct crash_call *call)
{
	return call->message[call->length - 1] - (unsigned int)'0';
}

/* @end: the calls from w->done up to this one */
static void check_replies(struct crash_world *w, unsigned int end)
{
	for (unsigned int i = w->done; i < end; i++) {
		const struct crash_call *call = &w->call[i];

		if (!call->is_given_up)
			check(call->replies == 1 && call->got == call->status);
		if (is_op(call, FS_MAKE) && !call->status)
			w->ino[file_of(call)] = call->expected_length;
	}
	w->done = end;
}

/* Another server goes on. */
static void reopen(struct crash_world *w)
{
	if (w->service)
		end_service(w);
	w->is_down = false;
	w->nr_moves = 0;
	w->crash_at = 0;
	check(!open_service(w));
}

/* One request, with its reply. */
static struct crash_call *ask(struct crash_world *w, struct crash_call *call)
{
	check(!send(w, call) && !fsd_service_commit(w->service) && call->replies == 1);
	w->nr_calls = 0;
	return call;
}

static void mount(struct crash_world *w)
{
	struct crash_call *call;
	struct wire_fs_mount *m;

	w->nr_calls = w->done = 0;
	call = new_call(w, FS_MOUNT, FS_ROOT, sizeof(*m));
	m = body(call);
	m->magic = FS_MAGIC;
	m->version = FS_VERSION;
	if (send(w, call) || fsd_service_commit(w->service)) {
		reopen(w);
		check(!repeat_calls(w) && !fsd_service_commit(w->service));
	}
	check(call->replies == 1 && !call->got);
	w->nr_calls = 0;
}

static bool look_up(struct crash_world *w, unsigned int file, struct wire_fs_attr *attr)
{
	struct crash_call *call = new_call(w, FS_LOOKUP, FS_ROOT, sizeof(struct wire_fs_head));

	name_file(call, file);
	ask(w, call);
	attr->ino = call->expected_length;
	return !call->got;
}

/* Reads all files of the server into @found. The mount holds no file open. */
static void read_back(struct crash_world *w, struct account *found)
{
	memset(found, 0, sizeof(*found));
	for (unsigned int i = 0; i < WORLD_FILES; i++) {
		struct account_file *f = &found->file[i];
		struct crash_call *call;
		struct wire_fs_transfer *t;
		struct wire_fs_attr attr;

		f->exists = look_up(w, i, &attr);
		w->ino[i] = f->exists ? attr.ino : 0;
		if (!f->exists)
			continue;
		call = new_call(w, FS_OPEN, attr.ino, sizeof(struct wire_fs_open));
		check(ask(w, call)->got == 0);
		call = new_call(w, FS_READ, attr.ino, sizeof(*t));
		t = body(call);
		t->length = WORLD_FILE_MAX;
		ask(w, call);
		check(!call->got);
		f->size = (uint32_t)call->expected_length;
		memcpy(f->bytes, slot_of(w, call), f->size);
	}
}

static bool agrees(const struct account *found, const struct account *expected)
{
	for (unsigned int i = 0; i < WORLD_FILES; i++) {
		const struct account_file *a = &found->file[i], *b = &expected->file[i];

		if (a->exists != b->exists || (a->exists && a->size != b->size))
			return false;
		for (uint32_t j = 0; a->exists && j < b->size; j++) {
			if (a->bytes[j] != b->bytes[j] && !b->torn[j])
				return false;
		}
	}
	return true;
}

static void forget_torn(struct account *account)
{
	for (unsigned int i = 0; i < WORLD_FILES; i++)
		memset(account->file[i].torn, 0, WORLD_FILE_MAX);
}

/* The mount died: the batch has happened or not. A new mount finds out, and goes on from there. */
static void find_outcome(struct crash_world *w, bool had_reply)
{
	static struct account found;

	check(fsd_service_leave(w->service, w->mount) >= 0);
	w->mount++;
	w->number = 0;
	w->done = 0;
	mount(w);
	connect_again(w);
	read_back(w, &found);
	check(agrees(&found, &w->after) || (!had_reply && agrees(&found, &w->before)));
	w->after = found;
}

/* Another server goes on. Some mounts live, and repeat what had no reply. */
static void recover(struct crash_world *w)
{
	bool had_reply = w->done < w->nr_calls && w->call[w->done].replies;

	reopen(w);
	if (draw(w, 3) == 0) {
		find_outcome(w, had_reply);
		return;
	}
	check(!repeat_calls(w) && !fsd_service_commit(w->service));
	check_replies(w, w->nr_calls);
}

/*
 * Sends the calls from @first on. If the server commits what came before, only the rest may be
 * undone. @middle: the account before these calls. Return: the error if the server must end.
 */
static int send_planned(struct crash_world *w, unsigned int first, struct account *middle)
{
	for (unsigned int i = first; i < w->nr_calls; i++) {
		if (send(w, &w->call[i])) {
			w->nr_calls = i; /* this call never arrived */
			w->after = *middle;
			return -EIO;
		}
		if (i <= w->done || !w->call[i - 1].replies)
			continue;
		check_replies(w, i);
		for (unsigned int j = 0; j < WORLD_FILES; j++)
			memcpy(middle->file[j].torn, w->before.file[j].torn, WORLD_FILE_MAX);
		w->before = *middle;
	}
	return 0;
}

static void run_batch(struct crash_world *w)
{
	static struct account middle;
	unsigned int wanted = 1 + draw(w, WORLD_BATCH_MAX);
	int rc = 0;

	w->nr_calls = w->done = 0;
	w->before = w->after;
	for (unsigned int tries = 0; !rc && w->nr_calls < wanted && tries < 8; tries++) {
		unsigned int first = w->nr_calls;

		middle = w->after;
		plan(w);
		rc = send_planned(w, first, &middle);
	}
	if (!rc && !draw(w, 4)) /* the mount lost its connection */
		rc = repeat_calls(w);
	if (!rc)
		rc = fsd_service_commit(w->service);
	if (rc)
		recover(w);
	else
		check_replies(w, w->nr_calls);
	forget_torn(&w->after);
}

void world_run(struct crash_world *w, uint64_t seed, uint64_t crash_at, unsigned int batches)
{
	uint8_t *area[2], *expected[WORLD_BATCH_MAX];

	for (unsigned int i = 0; i < 2; i++)
		area[i] = w->area[i] ? w->area[i] : calloc(1, STAGING);
	for (unsigned int i = 0; i < WORLD_BATCH_MAX; i++)
		expected[i] = w->call[i].expected ? w->call[i].expected : calloc(1, SLOT);
	memset(w, 0, sizeof(*w));
	memcpy(w->area, area, sizeof(area));
	for (unsigned int i = 0; i < WORLD_BATCH_MAX; i++)
		w->call[i].expected = expected[i];
	w->random = seed * 0x9e3779b97f4a7c15u + 1;
	w->mount = 7;
	w->crash_at = crash_at;
	w->disk = mmap(NULL, WORLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	check(w->disk != MAP_FAILED);
	if (open_service(w)) {
		w->is_down = false;
		w->crash_at = 0;
		/* A superblock that is torn is refused; nobody had the volume yet. */
		if (open_service(w)) {
			munmap(w->disk, WORLD_BYTES);
			return;
		}
	}
	mount(w);
	for (unsigned int i = 0; i < batches; i++)
		run_batch(w);
	w->is_down = true; /* and once more, without a last write */
	recover(w);
	end_service(w);
	munmap(w->disk, WORLD_BYTES);
}
