/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/support/engine_bench.h"
#include "core/slots/slot_poll.h"

#define SLOTS 128u
#define US 1000ull
#define RUNG ((struct weir_slot_poll_request){ 1, 64, 0 })

/* A sending end and its view of the peer: no slot is given back unless a test does so. */
struct slot_poll_end {
	struct weir_slot_poll look;
	struct weir_slot_bitmap_tx out;
	uint64_t bits[2], peer[2], memory[128];
	uint64_t bytes; /* in each slot put */
	uint64_t now_ns;
};

static const struct weir_slot_poll_request SILENT;

static void end_init(struct slot_poll_end *e, uint64_t bytes)
{
	*e = (struct slot_poll_end){ .bytes = bytes, .now_ns = 1000000000 };
	assert_true(weir_slot_bitmap_tx_bytes(SLOTS) <= sizeof(e->memory));
	weir_slot_bitmap_tx_init(&e->out, SLOTS, e->bits, e->memory);
	weir_slot_poll_init(&e->look, SLOTS, 40);
}

static void put(struct slot_poll_end *e, unsigned int count)
{
	while (count--) {
		weir_slot_bitmap_tx_commit(&e->out, (uint32_t)weir_slot_bitmap_tx_acquire(&e->out));
		weir_slot_poll_put(&e->look, e->bytes);
	}
}

/* Put @count slots with a notification. */
static void put_told(struct slot_poll_end *e, unsigned int count)
{
	put(e, count);
	weir_slot_bitmap_tx_notified(&e->out);
}

static void post(struct slot_poll_end *e)
{
	weir_slot_bitmap_tx_read_posted(&e->out);
	weir_slot_poll_posted(&e->look, e->now_ns);
}

/* The end waits for the read to complete, and finds @found full slots of the peer. */
static void back(struct slot_poll_end *e, uint64_t took_ns, uint32_t found)
{
	uint64_t arrived = e->out.arrived;
	int freed;

	e->now_ns += took_ns;
	weir_slot_poll_polled(&e->look, e->now_ns);
	freed = weir_slot_bitmap_tx_read_done(&e->out, e->peer);
	assert_true(freed >= 0);
	weir_slot_poll_read_done(&e->look, &e->out, found, (uint32_t)freed,
				 (uint32_t)(e->out.arrived - arrived), e->now_ns);
}

static void poll_end(struct slot_poll_end *e, uint64_t took_ns, uint32_t found)
{
	post(e);
	back(e, took_ns, found);
}

static bool is_due(const struct slot_poll_end *e, struct weir_slot_poll_request ring)
{
	return weir_slot_poll_is_due(&e->look, &e->out, ring, e->now_ns);
}

static void a_single_message_is_shown_at_once(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	assert_false(is_due(&e, SILENT)); /* nothing to show */
	put(&e, 1);
	assert_true(is_due(&e, SILENT));
	post(&e);
	assert_false(is_due(&e, SILENT)); /* one at a time */
	back(&e, 1 * US, 0);
	assert_false(is_due(&e, SILENT));
}

/* An end that is still busy does not wait: new slots are shown together. */
static void a_busy_peer_is_shown_many_together(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 8);
	poll_end(&e, 1 * US, 0);
	e.now_ns += 600 * US;
	put(&e, 4);
	assert_false(is_due(&e, SILENT)); /* fewer than the peer still has */
	assert_true(is_due(
		&e, (struct weir_slot_poll_request){ 1, 64 })); /* the peer has finished those */
	put(&e, 4);
	assert_true(is_due(&e, SILENT)); /* as many, and long ago */
	put(&e, 32);
	poll_end(&e, 1 * US, 0);
	put(&e, 31);
	e.now_ns += 600 * US;
	assert_false(is_due(&e, SILENT));
	put(&e, 1);
	assert_true(is_due(&e, SILENT)); /* so many are never left for long */
}

static void less_than_a_busy_peer_has_is_shown_in_the_end(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 8);
	poll_end(&e, 1 * US, 0);
	put(&e, 1);
	e.now_ns += 4 * 512 * US - 1;
	assert_false(is_due(&e, SILENT));
	e.now_ns += 1;
	assert_true(is_due(&e, SILENT));
}

static void free_slots_are_looked_for_when_few_are_left(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	put_told(&e, SLOTS * 60 / 100);
	assert_false(is_due(&e, SILENT));
	put_told(&e, 1);
	assert_true(is_due(&e, SILENT)); /* fewer than 40 % are free */
	assert_false(is_due(&e, (struct weir_slot_poll_request){
					1, WEIR_SLOT_POLL_NOTIFIES_MAX })); /* the peer sleeps */
	assert_true(is_due(&e, (struct weir_slot_poll_request){ 1, 1 }));
	poll_end(&e, 1 * US, 0);
	e.now_ns += 1000 * US;
	/* the last read freed nothing: the next is due at half as many free slots */
	assert_false(is_due(&e, SILENT));
	put_told(&e, e.out.free / 2 + 1);
	assert_true(is_due(&e, SILENT));
}

/* The peer gives back all notified slots, and the end notices. */
static void give_back(struct slot_poll_end *e)
{
	memcpy(e->out.seen, e->out.notified, sizeof(e->bits));
	memcpy(e->peer, e->out.seen, sizeof(e->peer));
	e->out.freed += SLOTS - e->out.free;
	e->out.free = SLOTS;
}

static void slots_with_much_in_them_are_looked_for_while_caches_have_them(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 64 << 10);
	put_told(&e, 3);
	assert_false(is_due(&e, SILENT));
	put_told(&e, 1);
	assert_true(is_due(&e, SILENT));
}

static void slots_with_little_in_them_are_not_looked_for(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 64 << 10);
	put_told(&e, 3);
	give_back(&e);
	e.bytes = 64;
	put_told(&e, SLOTS / 2);
	assert_false(is_due(&e, SILENT));
}

/* Put one slot. Return: the number of slots notified with it. */
static unsigned int put_one(struct slot_poll_end *e, struct weir_slot_poll_request ring)
{
	uint64_t together;

	put(e, 1);
	if (!weir_slot_poll_must_notify(&e->look, &e->out, ring, e->now_ns))
		return 0;
	together = weir_slot_poll_unshown(&e->out);
	weir_slot_poll_notified(&e->look, &e->out, together, e->now_ns);
	weir_slot_bitmap_tx_notified(&e->out);
	return (unsigned int)together;
}

/*
 * Put @count slots, one each @gap_ns, to a peer that waits and gives slots back at once.
 * Return: the number of notifications.
 */
static unsigned int put_each_to(struct slot_poll_end *e, struct weir_slot_poll_request ring,
				unsigned int count, uint64_t gap_ns)
{
	unsigned int notices_left = 0;

	while (count--) {
		e->now_ns += gap_ns;
		notices_left += put_one(e, ring) != 0;
		if (!weir_slot_poll_unshown(&e->out))
			give_back(e);
	}
	return notices_left;
}

static unsigned int put_each(struct slot_poll_end *e, unsigned int count, uint64_t gap_ns)
{
	return put_each_to(e, RUNG, count, gap_ns);
}

static void only_a_waiting_peer_is_notified(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	assert_int_equal(put_one(&e, SILENT), 0);
	assert_int_equal(put_one(&e, (struct weir_slot_poll_request){ 1, 0 }),
			 0); /* the peer waits for something else */
	/* includes the two slots unknown to the peer */
	assert_int_equal(put_one(&e, RUNG), 3);
	assert_false(is_due(&e, RUNG)); /* a read is then unnecessary */
}

static void a_single_message_is_notified_at_once(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	assert_int_equal(put_each(&e, 100, 1000 * US), 100);
}

/* As often as a read would show the slots: for half a pool, or for half a millisecond of slots. */
static void many_are_told_of_together(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	(void)put_each(&e, 100, 1 * US); /* the estimate learns that there are many */
	assert_in_range(put_each(&e, 1000, 1 * US), 10, 20);
	(void)put_each(&e, 100, 32 * US);
	assert_in_range(put_each(&e, 1000, 32 * US), 50, 70);
}

/* After each sparse result, coalescing is tried again more seldom. */
static void those_that_find_no_company_are_told_at_once_again(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	(void)put_each(&e, 100, 1 * US);
	assert_false(e.look.coalescing.is_sparse);
	(void)put_each(&e, 20, 600 * US);
	assert_int_equal(put_each(&e, 100, 600 * US), 100);
}

/* Found in company once, they are soon looked for again. */
static void company_makes_trials_frequent_again(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	e.look.coalescing.trials = 3;
	(void)put_each(&e, 100, 600 * US);
	assert_int_equal(e.look.coalescing.trials, 3);
	(void)put_each(&e, 5000, 1 * US);
	assert_int_equal(e.look.coalescing.trials, 0);
}

/*
 * Each message is answered before the next one comes. The waiter for the answer ends the wait
 * for coalescing.
 */
static void request_response_traffic_seldom_waits_to_coalesce(void **state)
{
	unsigned int i, waits = 0;
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	for (i = 0; i < 1000; i++) {
		e.now_ns += 10 * US;
		if (!put_one(&e, RUNG)) {
			waits++;
			weir_slot_poll_notified(&e.look, &e.out, weir_slot_poll_unshown(&e.out),
						e.now_ns);
			weir_slot_bitmap_tx_notified(&e.out);
		}
		give_back(&e);
	}
	assert_in_range(waits, 1, 1000 / 50);
}

static void large_ones_are_told_of_at_once(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 256 << 10);
	(void)put_each(&e, 10, 10 * US);
	e.look.coalescing.is_sparse = false;
	assert_int_equal(put_each(&e, 100, 10 * US), 100);
}

static void small_ones_after_large_ones_are_told_of_together(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 256 << 10);
	(void)put_each(&e, 100, 1 * US);
	e.bytes = 512;
	e.look.coalescing.is_sparse = false;
	assert_in_range(put_each(&e, 1000, 1 * US), 10, 20);
}

static void slots_shown_by_a_read_are_not_notified(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 256 << 10);
	put(&e, 1);
	poll_end(&e, 1 * US, 0);
	e.bytes = 512;
	e.look.coalescing.is_sparse = false;
	assert_int_equal(put_one(&e, RUNG), 0);
	post(&e);
	e.bytes = 256 << 10;
	assert_int_equal(put_one(&e, RUNG), 2); /* with the slot that the read follows */
	back(&e, 1 * US, 0);
	e.bytes = 512;
	e.look.coalescing.is_sparse = false;
	assert_int_equal(put_one(&e, RUNG), 0);
}

/* A notification overtakes a read in flight for the same slots; the read then shows nothing. */
static void slots_notified_during_a_read_are_not_shown(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 2);
	post(&e);
	e.look.coalescing.is_sparse = true;
	assert_int_equal(put_one(&e, RUNG), 3);
	back(&e, 1 * US, 0);
	assert_int_equal(e.bits[0] | e.bits[1], 0);
}

/*
 * Where reads are slow, slots are notified together too, if enough come within the patience. A
 * waiting peer should be notified.
 */
static void where_looks_take_long_many_are_told_of_together(void **state)
{
	struct weir_slot_poll_request patient = RUNG;
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	poll_end(&e, 300 * US, 1);
	assert_true(weir_slot_poll_is_slow(&e.look));
	(void)put_each(&e, 100, 150 * US);
	assert_in_range(put_each(&e, 1000, 150 * US), 20, 50);
	e.look.took_ns = 0; /* an end without reads may not know; the peer does */
	patient.delay_ns_max = 4800 * US;
	(void)put_each_to(&e, patient, 100, 150 * US);
	assert_in_range(put_each_to(&e, patient, 1000, 150 * US), 20, 50);
	e.look.took_ns = 300 * US;
	(void)put_each(&e, 100, 6000 * US); /* few slots come during so many reads */
	assert_int_equal(put_each(&e, 100, 6000 * US), 100);
	assert_false(weir_slot_poll_prefers_notify(&e.look)); /* the last read found something */
	poll_end(&e, 300 * US, 0);
	assert_true(weir_slot_poll_prefers_notify(&e.look));
	weir_slot_poll_woken(&e.look);
	assert_false(weir_slot_poll_prefers_notify(&e.look));
}

/* The peer's slots come one by one, each while three reads are under way. */
static void read_thin_traffic(struct slot_poll_end *e, unsigned int slots)
{
	while (slots--) {
		poll_end(e, 2 * US, 0);
		poll_end(e, 2 * US, 0);
		poll_end(e, 2 * US, 1);
	}
}

static void thin_traffic_is_notified_and_dense_traffic_is_read(void **state)
{
	struct slot_poll_end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	assert_false(weir_slot_poll_prefers_notify(&e.look)); /* how long reads take is unknown */
	read_thin_traffic(&e, 20);
	assert_true(weir_slot_poll_prefers_notify(&e.look));
	for (i = 0; i < 20; i++)
		poll_end(&e, 2 * US, 8);
	assert_false(weir_slot_poll_prefers_notify(&e.look));
	poll_end(&e, 2 * US, 0); /* one read that finds nothing changes nothing */
	assert_false(weir_slot_poll_prefers_notify(&e.look));
	read_thin_traffic(&e, 20);
	assert_true(weir_slot_poll_prefers_notify(&e.look));
	weir_slot_poll_woken(&e.look);
	assert_false(weir_slot_poll_prefers_notify(&e.look));
}

/* Read on until the end prefers notifications. Return: the reads that found nothing. */
static unsigned int reads_before_request(struct slot_poll_end *e)
{
	unsigned int count = 0;

	for (; !weir_slot_poll_prefers_notify(&e->look); count++) {
		assert_in_range(count, 0, 100);
		poll_end(e, 2 * US, 0);
	}
	return count;
}

static void requests_in_vain_become_rare(void **state)
{
	static const unsigned int pauses[] = { 1, 3, 7, 15, 31, 63, 63 };
	struct slot_poll_end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	read_thin_traffic(&e, 20);
	for (i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_NEWS);
		assert_int_equal(reads_before_request(&e), pauses[i]);
		weir_slot_poll_woken(&e.look);
		poll_end(&e, 2 * US, 1);
	}
	weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_ROOM); /* no notification can come of it */
	assert_int_equal(reads_before_request(&e), 0);
	weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_NEWS);
	weir_slot_poll_was_notified(&e.look);
	weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_NEWS);
	assert_int_equal(reads_before_request(&e), 0);
}

/* A sender that reads after each slot knows from that how the slots come. */
static void slots_shown_one_by_one_are_notified_one_by_one(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 1);
	poll_end(&e, 1 * US, 0);
	assert_int_equal(put_one(&e, RUNG), 1);
	end_init(&e, 512);
	put(&e, 32);
	poll_end(&e, 1 * US, 0);
	assert_int_equal(put_one(&e, RUNG), 0);
}

/* Nobody has polled since the read was posted. */
static void unattended(struct slot_poll_end *e, uint64_t took_ns)
{
	post(e);
	e->now_ns += took_ns;
	assert_int_equal(weir_slot_bitmap_tx_read_done(&e->out, e->peer), 0);
	weir_slot_poll_read_done(&e->look, &e->out, 0, 0, 0, e->now_ns);
}

/* On a device that finishes a read inside the post, an end never waits. */
static void an_immediate_read_counts_without_a_waiter(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	unattended(&e, 2 * US);
	assert_int_equal(e.look.took_ns, 2 * US);
	unattended(&e, 20 * US);
	assert_int_equal(e.look.took_ns, 2 * US);
}

/*
 * Slots wait for as long as sixteen reads take, up to a bound. A read without a waiter teaches
 * nothing.
 */
static void how_long_looks_take_is_learnt_from_those_that_are_waited_for(void **state)
{
	struct slot_poll_end e;

	(void)state;
	end_init(&e, 512);
	unattended(&e, 400 * US);
	assert_int_equal(e.look.took_ns, 0);
	poll_end(&e, 100 * US, 0);
	assert_int_equal(e.look.took_ns, 100 * US);
	assert_int_equal(e.look.confirm.gap_ns_max, 1600 * US);
	poll_end(&e, 900 * US, 0);
	assert_int_equal(e.look.took_ns, 200 * US);
	poll_end(&e, 100000 * US, 0);
	assert_int_equal(e.look.confirm.gap_ns_max, WEIR_SLOT_POLL_CONFIRM_NS_MAX);
}

/* Nothing is put meanwhile. */
static void a_sender_without_slots_does_not_back_off(void **state)
{
	struct slot_poll_end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	for (i = 0; i < 12; i++)
		poll_end(&e, 2 * US, 0);
	assert_true(e.look.room.gap_ns > 100 * US);
	e.now_ns += 8 * US - 1;
	assert_false(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_ROOM, false, e.now_ns));
	e.now_ns += 1;
	assert_true(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_ROOM, false, e.now_ns));
}

static void after_requesting_a_notice_no_read_until_it_arrives(void **state)
{
	struct slot_poll_end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	assert_true(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_NEWS, false, e.now_ns));
	weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_NEWS);
	post(&e);
	assert_false(weir_slot_poll_has_requested(&e.look, WEIR_SLOT_POLL_NEWS,
						  false)); /* the read in flight may find it */
	assert_false(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_NEWS, true, e.now_ns));
	back(&e, 1 * US, 0);
	assert_true(weir_slot_poll_has_requested(&e.look, WEIR_SLOT_POLL_NEWS, false));
	assert_false(weir_slot_poll_has_requested(&e.look, WEIR_SLOT_POLL_ROOM, false));
	assert_false(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_NEWS, false, e.now_ns));
	assert_true(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_NEWS, true, e.now_ns));
	weir_slot_poll_woken(&e.look);
	assert_true(weir_slot_poll_is_wanted(&e.look, WEIR_SLOT_POLL_NEWS, false, e.now_ns));
	weir_slot_poll_requested(&e.look, WEIR_SLOT_POLL_NEWS);
	for (i = 0; i < WEIR_SLOT_POLL_NOTIFIES_MAX; i++) {
		assert_int_equal(e.look.requested, WEIR_SLOT_POLL_NEWS);
		weir_slot_poll_was_notified(&e.look);
	}
	assert_int_equal(e.look.requested, 0); /* a request is good for so many notifications */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_message_is_shown_at_once),
		cmocka_unit_test(a_busy_peer_is_shown_many_together),
		cmocka_unit_test(less_than_a_busy_peer_has_is_shown_in_the_end),
		cmocka_unit_test(free_slots_are_looked_for_when_few_are_left),
		cmocka_unit_test(slots_with_much_in_them_are_looked_for_while_caches_have_them),
		cmocka_unit_test(slots_with_little_in_them_are_not_looked_for),
		cmocka_unit_test(only_a_waiting_peer_is_notified),
		cmocka_unit_test(a_single_message_is_notified_at_once),
		cmocka_unit_test(many_are_told_of_together),
		cmocka_unit_test(those_that_find_no_company_are_told_at_once_again),
		cmocka_unit_test(company_makes_trials_frequent_again),
		cmocka_unit_test(request_response_traffic_seldom_waits_to_coalesce),
		cmocka_unit_test(large_ones_are_told_of_at_once),
		cmocka_unit_test(small_ones_after_large_ones_are_told_of_together),
		cmocka_unit_test(slots_shown_by_a_read_are_not_notified),
		cmocka_unit_test(slots_notified_during_a_read_are_not_shown),
		cmocka_unit_test(where_looks_take_long_many_are_told_of_together),
		cmocka_unit_test(thin_traffic_is_notified_and_dense_traffic_is_read),
		cmocka_unit_test(requests_in_vain_become_rare),
		cmocka_unit_test(slots_shown_one_by_one_are_notified_one_by_one),
		cmocka_unit_test(an_immediate_read_counts_without_a_waiter),
		cmocka_unit_test(how_long_looks_take_is_learnt_from_those_that_are_waited_for),
		cmocka_unit_test(a_sender_without_slots_does_not_back_off),
		cmocka_unit_test(after_requesting_a_notice_no_read_until_it_arrives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
