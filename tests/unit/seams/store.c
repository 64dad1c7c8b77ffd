/* In place of lib/store/store.c: records in memory, which outlive the process that wrote them. */
#include "tests/unit/seams/bed.h"

#include <errno.h>

#include "lib/store/store.h"

static struct store {
	char **texts;
	size_t n;
	int error;
} store;

size_t seam_records(void)
{
	return store.n;
}

void seam_store_fails(int error)
{
	store.error = error;
}

void seam_store_done(void);
void seam_store_done(void)
{
	for (size_t i = 0; i < store.n; i++)
		free(store.texts[i]);
	free(store.texts);
	store = (struct store){ 0 };
}

int store_open(const char *dir, struct store **ret, struct mo_error *err)
{
	*ret = &store;
	return 0;
}

struct store *store_free(struct store *s)
{
	return NULL;
}

int store_append(struct store *s, char *const *texts, size_t n, struct mo_error *err)
{
	if (s->error)
		return mo_error_set(err, s->error, "the disk of this test fails");
	for (size_t i = 0; i < n; i++)
		*MO_GROW(s->texts, s->n) = mo_strdup(texts[i]);
	return 0;
}

int store_read(struct store *s, int (*on_snapshot)(void *arg, const char *text, size_t n),
	       int (*on_record)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
	       struct mo_error *err)
{
	int r = on_snapshot(arg, NULL, 0);

	for (size_t i = 0; r == 0 && i < s->n; i++)
		r = on_record(arg, (int64_t)i + 1, s->texts[i], strlen(s->texts[i]));
	return r;
}

int64_t store_first(const struct store *s)
{
	return 1;
}

int64_t store_seq(const struct store *s)
{
	return (int64_t)s->n;
}

int64_t store_records_since_snapshot(const struct store *s)
{
	return (int64_t)s->n;
}

int64_t store_damaged(const struct store *s)
{
	return 0;
}

int store_read_raw(struct store *s, int64_t from,
		   int (*fn)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
		   struct mo_error *err)
{
	return -ENOSYS;
}

int store_write_snapshot(const struct store *s, int64_t seq, const char *text, size_t n)
{
	return -ENOSYS;
}

int store_adopt_snapshot(struct store *s, int64_t seq, int64_t *ret_bytes, struct mo_error *err)
{
	return -ENOSYS;
}

void store_remove_strays(struct store *s) {}

bool store_release_ballast(struct store *s)
{
	return false;
}

int store_make_ballast(struct store *s)
{
	return 0;
}

bool store_has_ballast(const struct store *s)
{
	return true;
}
