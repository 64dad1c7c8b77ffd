/* What store_append() took is there after any loss of power, at any moment, in order; of what it
 * was asked for last all or nothing; and the directory opens again without a person. Then the same
 * with a disk that only says that it synced: whichever of the syncs it leaves out is missed. */
#include "tests/unit/seams/world.h"

#include <errno.h>

#include "lib/base/fd.h"
#include "lib/store/store.h"

#define DIR "/var/lib/moe"
#define SEEDS 150
#define MISSED 400 /* seeds until which a sync that is left out shows */
#define ROTS 150
#define LIVES 4    /* of a store: the power is lost so often */
#define CHANGES 10 /* of the disk until then: below 2 to this */

/* Record n says its number. */
struct world {
	uint64_t chance;
	int64_t taken; /* records that were stored */
	int64_t asked; /* with those of the last batch */
	int64_t begun; /* the record of the last snapshot */
	int64_t seen;  /* while it is read */
	char wrong[512];
};

static uint64_t draw(struct world *w, uint64_t n)
{
	w->chance ^= w->chance << 13;
	w->chance ^= w->chance >> 7;
	w->chance ^= w->chance << 17;
	return (w->chance >> 11) % n;
}

/* The first that is wrong is kept. */
static int wrong(struct world *w, const char *text)
{
	if (!*w->wrong)
		snprintf(w->wrong, sizeof(w->wrong), "%s", text);
	return -EBADMSG;
}

static bool says(const char *text, size_t n, int64_t number)
{
	_cleanup_(mo_freep) char *want = mo_printf("%lld ", (long long)number);

	return n >= strlen(want) && memcmp(text, want, strlen(want)) == 0;
}

static int on_snapshot(void *arg, const char *text, size_t n)
{
	struct world *w = arg;

	w->seen = 0;
	for (int64_t number = 1; text && w->seen == 0 && number <= w->begun; number++)
		w->seen = says(text, n, number) ? number : 0;
	return text && w->seen == 0 ? wrong(w, "a snapshot is not as it was stored") : 0;
}

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct world *w = arg;

	if (seq != w->seen + 1 || !says(text, n, seq))
		return wrong(w, "a record is not as it was stored");
	w->seen = seq;
	return 0;
}

static struct store *open_again(struct world *w)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct store *s = NULL;
	int r = store_open(DIR, &s, &err);

	if (r >= 0)
		r = store_read(s, on_snapshot, on_record, w, &err);
	if (r < 0)
		wrong(w, mo_error_text(&err, r));
	else if (w->seen != w->taken && w->seen != w->asked)
		wrong(w, "records are missing");
	if (*w->wrong)
		return store_free(s);
	w->taken = w->asked = w->seen;
	return s;
}

static int append(struct world *w, struct store *s)
{
	char *texts[8];
	size_t n = 1 + draw(w, ELEMENTSOF(texts)), length = draw(w, 4000);
	_cleanup_(mo_freep) char *filling = mo_alloc(length + 1);

	memset(filling, 'x', length);
	for (size_t i = 0; i < n; i++)
		texts[i] = mo_printf("%lld %s", (long long)w->taken + 1 + (long long)i, filling);
	w->asked = w->taken + (int64_t)n;
	int r = store_append(s, texts, n, NULL);
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	w->taken = r == 0 ? w->asked : w->taken;
	return r;
}

static int snapshot(struct world *w, struct store *s)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("%lld %0*d", (long long)w->taken, (int)draw(w, 3000), 0);
	int64_t bytes;

	if (w->taken == w->begun)
		return 0;
	w->begun = w->taken;
	int r = store_write_snapshot(s, w->begun, text, strlen(text));
	if (r == 0)
		r = store_adopt_snapshot(s, w->begun, &bytes, NULL);
	return r;
}

/* From one start to the loss of power, or to an end in order. */
static void live(struct world *w)
{
	struct store *s;

	seam_crash_after(1 + draw(w, 1 << (1 + draw(w, CHANGES))));
	s = open_again(w);
	if (seam_dead())
		*w->wrong = '\0';
	while (s && !seam_dead() && !*w->wrong)
		if ((draw(w, 8) ? append : snapshot)(w, s) < 0 && !seam_dead())
			wrong(w, "the disk is well, and the store says otherwise");
	store_free(s);
	seam_alive();
	seam_power_loss(1 + draw(w, 1 << 20));
}

/* Whether all was as it was promised. lies: the pattern of files of which no sync does anything. */
static bool holds(uint64_t seed, const char *lies, char *ret_wrong, size_t size)
{
	struct world w = { .chance = seed * 0x9e3779b97f4a7c15u };

	seam_vfs();
	seam_syncs_lie(lies);
	for (int i = 0; i < LIVES && !*w.wrong; i++)
		live(&w);
	if (!*w.wrong)
		store_free(open_again(&w));
	seam_disk_done();
	snprintf(ret_wrong, size, "%s", w.wrong);
	return !*w.wrong;
}

static void test_power_loss(void **state)
{
	char text[512];

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		if (!holds(seed, NULL, text, sizeof(text)))
			fail_msg("seed %llu: %s", (unsigned long long)seed, text);
}

/* A person goes on with what is left of a log that ended too early, as 'moed --quarantine' does;
 * and the next start asks nobody. Whether it did. */
static bool goes_on(struct world *w)
{
	struct store *s = NULL;

	if (store_open(DIR, &s, NULL) < 0)
		return false;
	bool early = store_read(s, on_snapshot, on_record, w, NULL) == -EBADMSG &&
		     store_damaged(s) == store_seq(s) + 1;
	w->taken = w->asked = early ? w->seen : w->taken;
	w->begun = -1; /* a snapshot of this very record may be there */
	if (early)
		assert_int_equal(snapshot(w, s), 0);
	store_free(s);
	*w->wrong = '\0';
	if (early)
		store_free(open_again(w));
	return early;
}

/* A bit that is not as it was written, of any file: what is read is right, or is refused. */
static void test_rot(void **state)
{
	size_t n_refused = 0, n_early = 0;

	for (uint64_t seed = 1; seed <= ROTS; seed++) {
		struct world w = { .chance = seed * 0x9e3779b97f4a7c15u };
		struct store *s;

		seam_vfs();
		s = open_again(&w);
		for (uint64_t i = 5 + draw(&w, 40); i > 0; i--)
			assert_int_equal((draw(&w, 8) ? append : snapshot)(&w, s), 0);
		if (draw(&w, 2)) { /* it is killed */
			seam_crash_after(1);
			store_free(s);
			seam_alive();
		} else {
			store_free(s);
		}
		_cleanup_(mo_freep) char *what = seam_rot(DIR, draw(&w, 1 << 30));
		store_free(open_again(&w));
		/* what the store says begins with the name of a file */
		if (*w.wrong && *w.wrong != '/')
			fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, w.wrong);
		n_refused += *w.wrong != '\0';
		bool early = *w.wrong && goes_on(&w);
		n_early += early;
		if (early && *w.wrong)
			fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, w.wrong);
		seam_disk_done();
	}
	assert_true(n_refused > 0 && n_early > 0);
}

static void test_each_sync(void **state)
{
	static const char *const lies[] = {
		"/", /* for the directories above */
		"/var",
		"/var/lib",
		DIR, /* names: of the log, of the database's id, of snapshots */
		DIR "/moe.db",
		DIR "/moe.db-wal",
		DIR "/store.id.*",
		DIR "/snapshot-*",
	};

	for (size_t i = 0; i < ELEMENTSOF(lies); i++) {
		char text[512] = "";
		uint64_t seed = 1;

		while (seed < MISSED && holds(seed, lies[i], text, sizeof(text)))
			seed++;
		if (!*text)
			fail_msg("syncs of %s are not missed", lies[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_loss),
		cmocka_unit_test(test_each_sync),
		cmocka_unit_test(test_rot),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
