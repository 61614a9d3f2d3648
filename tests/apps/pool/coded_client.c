/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of a volume with a code or copies, for pool_test.py: coded_client VOLUME MODEL. The file
 * MODEL has the right bytes of the volume, over several clients. The program prints "open". Each
 * line on standard input is a command, answered by "done" and three numbers: reads with wrong
 * checksums, bytes that the volume has repaired, and bytes of data that the command spoilt.
 *
 *	work N		some threads make N requests each, and compare each read
 *	check		read the volume from begin to end, and compare each byte
 *	spoil DONOR	change all stripes in the memory of a donor behind the volume's back
 *	spoil -		change a page of the copy of each extent that is read first
 *
 * The threads write slices of the volume. Neighbours share pages and stripes. The end of the input
 * closes the volume.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "lib/volume/coded/coded.h"

#define THREADS 4u
#define SLICE 3001u /* a stripe has slices of all threads */
#define RUN_MAX 90000u

static struct weir_volume *volume;
static uint64_t bytes;
static char *model;
static unsigned int requests;
static uint64_t spoilt;

static void must(bool holds, const char *what, uint64_t offset)
{
	if (holds)
		return;
	fprintf(stderr, "coded_client: %s at %llu\n", what, (unsigned long long)offset);
	exit(1);
}

/* Other threads may be writing some of the bytes: only the thread's own are compared. */
static void read_some(uint64_t *rng, unsigned int self, char *buf)
{
	uint64_t length = 1 + weir_rng_scale(weir_rng_next(rng), RUN_MAX);
	uint64_t first = weir_rng_scale(weir_rng_next(rng), bytes - length);

	must(!weir_volume_read(volume, first, buf, length), "no read", first);
	for (uint64_t i = 0; i < length; i++) {
		if ((first + i) / SLICE % THREADS == self)
			must(buf[i] == model[first + i], "a wrong byte", first + i);
	}
}

static void write_slice(uint64_t *rng, unsigned int self, char *buf)
{
	uint64_t slices = bytes / SLICE / THREADS;
	uint64_t slice = weir_rng_scale(weir_rng_next(rng), slices) * THREADS + self;
	uint64_t length = 1 + weir_rng_scale(weir_rng_next(rng), SLICE);
	uint64_t first = slice * SLICE + weir_rng_scale(weir_rng_next(rng), SLICE - length + 1);

	if (!weir_rng_scale(weir_rng_next(rng), 8)) {
		memset(model + first, 0, length);
		must(!weir_volume_discard(volume, first, length), "no discard", first);
		return;
	}
	for (uint64_t i = 0; i < length; i++)
		buf[i] = (char)weir_rng_next(rng);
	memcpy(model + first, buf, length);
	must(!weir_volume_write(volume, first, buf, length), "no write", first);
}

static void *work(void *arg)
{
	unsigned int self = (unsigned int)(uintptr_t)arg;
	uint64_t rng = weir_rng_mix(self + (uint64_t)getpid() * THREADS);
	char *buf = malloc(RUN_MAX);

	for (unsigned int i = 0; i < requests; i++) {
		if (weir_rng_scale(weir_rng_next(&rng), 2))
			read_some(&rng, self, buf);
		else
			write_slice(&rng, self, buf);
	}
	free(buf);
	return NULL;
}

static void work_all(void)
{
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void check(void)
{
	char *buf = malloc(bytes);

	must(!weir_volume_read(volume, 0, buf, bytes), "no read", 0);
	for (uint64_t i = 0; i < bytes; i++)
		must(buf[i] == model[i], "a wrong byte", i);
	free(buf);
}

/* Only fragments with data count as spoilt: no read has to notice wrong parity. */
static void spoil_stripe(uint32_t extent, uint32_t stripe, uint8_t slot)
{
	const struct weir_volume_coded *coded = volume->coded;
	char noise[64];
	uint32_t place;
	uint64_t page;

	weir_volume_lock(volume);
	place = coded->extent[extent].current[stripe];
	weir_volume_unlock(volume);
	if (place == WEIR_CODED_NO_PLACE)
		return;
	memset(noise, 0x55, sizeof(noise));
	page = weir_coded_place_page(&coded->layout, place);
	for (uint64_t i = page; i < page + WEIR_CODED_FRAGMENT_PAGES; i++)
		must(!weir_write(*weir_volume_region(volume, extent, slot),
				 i * WEIR_VOLUME_PAGE_BYTES + 100, noise, sizeof(noise)),
		     "no spoiling", i);
	if (volume->extents[extent].replica[slot].shard < coded->layout.data)
		spoilt += WEIR_VOLUME_FRAGMENT_BYTES;
}

static void spoil(const char *donor)
{
	for (uint32_t i = 0; i < volume->core.nr_extents; i++) {
		for (uint8_t slot = 0; slot < volume->core.slots; slot++) {
			const struct weir_replica *replica = &volume->extents[i].replica[slot];

			if (replica->state != WEIR_REPLICA_VALID ||
			    strcmp(volume->targets[replica->donor].id, donor))
				continue;
			for (uint32_t s = 0; s < volume->coded->layout.stripes; s++)
				spoil_stripe(i, s, slot);
		}
	}
}

static void spoil_copies(void)
{
	char noise[64];

	memset(noise, 0x55, sizeof(noise));
	for (uint32_t i = 0; i < volume->core.nr_extents; i++)
		must(!weir_write(*weir_volume_region(volume, i, 0), 5000, noise, sizeof(noise)),
		     "no spoiling", i);
}

static void obey(const char *line)
{
	struct weir_volume_info info = { 0 };
	char donor[64];

	spoilt = 0;
	if (sscanf(line, "work %u", &requests) == 1)
		work_all();
	else if (sscanf(line, "spoil %63s", donor) == 1)
		volume->coded ? spoil(donor) : spoil_copies();
	else
		check();
	weir_volume_info(volume, &info, sizeof(info));
	printf("done %llu %llu %llu\n", (unsigned long long)info.mismatches,
	       (unsigned long long)info.repaired_bytes, (unsigned long long)spoilt);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weir_volume_options options = { .size = sizeof(options), .device = "softnic0" };
	struct weir_volume_info info = { 0 };
	struct weir_error error;
	char line[100];
	int fd;

	if (argc != 3)
		return 2;
	options.volume = argv[1];
	if (weir_volume_open(&options, &volume, &error)) {
		fprintf(stderr, "coded_client: %s\n", error.text);
		return 1;
	}
	weir_volume_info(volume, &info, sizeof(info));
	bytes = info.bytes;
	must((volume->coded != NULL) == (info.data > 1), "another scheme", 0);
	fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && !ftruncate(fd, (off_t)bytes), "no model", 0);
	model = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	must(model != MAP_FAILED, "no model", 0);
	puts("open");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	weir_volume_close(volume);
	munmap(model, bytes);
	return 0;
}
