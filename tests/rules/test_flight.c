// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules A9, A10 and E4 of the engine for ordered delivery: parcels filled in parallel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/flight.h"
#include "tasks.h"

static const char *const settings[] = { "1", "2", "3", "percpu", "unbound", "8" };

#define SETTINGS (sizeof(settings) / sizeof(*settings))
#define MIB ((size_t)1 << 20)

struct sample {
	struct parcel parcel;
	struct trip *trip;
	unsigned int number;
	unsigned int filled;
};

struct trip {
	struct erofs_image *img;
	struct erofs_engine *eng;
	struct job *job;
	struct flight flight;
	unsigned int sent, delivered, released;
	unsigned int fail_at;		/* a delivery that fails, 0: none */
	unsigned int cancel_at;		/* the engine is cancelled by this delivery */
	atomic_size_t bytes, most;	/* filled and not delivered */
};

static void fill(struct lane *lane, struct parcel *parcel)
{
	struct sample *s = (struct sample *)parcel;
	size_t now = atomic_fetch_add(&s->trip->bytes, parcel->bytes) + parcel->bytes;
	size_t most = atomic_load(&s->trip->most);

	(void)lane;
	while (now > most && !atomic_compare_exchange_weak(&s->trip->most, &most, now))
		;
	usleep(s->number % 7 * 100);	/* later ones overtake */
	s->filled++;
}

static int deliver(void *arg, struct parcel *parcel)
{
	struct sample *s = (struct sample *)parcel;
	struct trip *t = arg;

	assert_int_equal(s->filled, 1);
	assert_int_equal(s->number, t->delivered);
	t->delivered++;
	if (t->cancel_at && t->delivered == t->cancel_at)
		erofs_engine_cancel(t->eng);
	return t->delivered == t->fail_at ? -ENOSPC : 0;
}

static void release(void *arg, struct parcel *parcel)
{
	struct sample *s = (struct sample *)parcel;
	struct trip *t = arg;

	atomic_fetch_sub(&t->bytes, s->filled ? parcel->bytes : 0);
	t->released++;
	free(s);
}

static const struct flight_ops ops = { fill, deliver, release };

static void begin(struct trip *t, const char *workers)
{
	struct erofs_engine_options options = { .size = sizeof(options), .workers = workers };

	t->img = fake_image();
	assert_int_equal(erofs_engine_new(&options, NULL, &t->eng), 0);
	assert_int_equal(erofs_job_begin(t->eng, t->img, NULL, &t->job), 0);
	erofs_flight_begin(&t->flight, t->job, erofs_job_flight_bytes(t->job), &ops, t);
}

static int send(struct trip *t, unsigned int count, size_t bytes)
{
	int err = 0;

	while (count-- && !err) {
		struct sample *s = calloc(1, sizeof(*s));

		assert_non_null(s);
		s->trip = t;
		s->number = t->sent++;
		s->parcel.bytes = bytes;
		err = erofs_flight_send(&t->flight, &s->parcel);
	}
	return err;
}

static void end(struct trip *t)
{
	erofs_job_end(t->job);
	erofs_engine_free(t->eng);
	free_image(t->img);
	assert_int_equal(t->released, t->sent);
	assert_int_equal(atomic_load(&t->bytes), 0);
}

static void rule_E4_parcels_arrive_in_the_order_sent(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < SETTINGS; i++) {
		struct trip t = { 0 };

		begin(&t, settings[i]);
		assert_int_equal(send(&t, 300, MIB), 0);
		assert_int_equal(send(&t, 100, 0), 0);
		assert_int_equal(send(&t, 100, MIB / 3), 0);
		assert_int_equal(erofs_flight_end(&t.flight), 0);
		assert_int_equal(t.delivered, 500);
		end(&t);
	}
}

static void rule_A10_what_flies_is_bounded_and_a_huge_parcel_flies_alone(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < SETTINGS; i++) {
		struct trip t = { 0 };
		size_t limit;

		begin(&t, settings[i]);
		limit = erofs_job_flight_bytes(t.job);
		assert_int_equal(send(&t, 100, MIB), 0);
		assert_true(atomic_load(&t.most) <= (limit > MIB ? limit : MIB));
		assert_int_equal(send(&t, 3, 100 * MIB), 0);
		assert_int_equal(send(&t, 10, MIB), 0);
		assert_int_equal(erofs_flight_end(&t.flight), 0);
		assert_int_equal(atomic_load(&t.most), 100 * MIB);
		assert_int_equal(t.delivered, 113);
		end(&t);
	}
}

static void rule_A9_after_a_failed_delivery_nothing_more_is_delivered(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < SETTINGS; i++) {
		struct trip t = { .fail_at = 20 };

		begin(&t, settings[i]);
		assert_int_equal(send(&t, 300, MIB), -ENOSPC);
		assert_int_equal(erofs_flight_end(&t.flight), -ENOSPC);
		assert_int_equal(t.delivered, 20);
		end(&t);
	}
}

static void rule_A9_a_cancel_frees_every_parcel(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < SETTINGS; i++) {
		struct trip t = { .cancel_at = 20 };

		begin(&t, settings[i]);
		assert_int_equal(send(&t, 300, MIB), -ECANCELED);
		assert_int_equal(erofs_flight_end(&t.flight), -ECANCELED);
		assert_int_equal(t.delivered, 20);
		end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_E4_parcels_arrive_in_the_order_sent),
		cmocka_unit_test(rule_A10_what_flies_is_bounded_and_a_huge_parcel_flies_alone),
		cmocka_unit_test(rule_A9_after_a_failed_delivery_nothing_more_is_delivered),
		cmocka_unit_test(rule_A9_a_cancel_frees_every_parcel),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
