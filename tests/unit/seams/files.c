/* See files.h. */
#include "tests/unit/seams/files.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/desc.h"
#include "lib/base/util.h"

/* A name of a directory got another file (NULL: none). Those of one rename have the same number. */
struct change {
	char *name;
	struct file *before;
	int64_t number;
};
/* By the first directory of their names, or of the last that they had: of many machines each has
 * its own. */
static struct list {
	struct file **files;
	size_t n;
} lists[128];
static struct change *changes;
static size_t n_changes;
static int64_t last_number, last_ns;
static uint64_t chance;

/* Below n; the least, where there is no chance. */
static size_t draw(size_t n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (size_t)(chance >> 11) % n;
}

static struct list *list_of(const char *name)
{
	size_t hash = 0;

	for (const char *c = name + 1; *c && *c != '/'; c++)
		hash = hash * 31 + (unsigned char)*c;
	return &lists[hash % ELEMENTSOF(lists)];
}

struct file *file_find(const char *name)
{
	const struct list *l = list_of(name);

	for (size_t i = 0; i < l->n; i++)
		if (l->files[i]->name && strcmp(l->files[i]->name, name) == 0)
			return l->files[i];
	return NULL;
}

/* Behind "DIR/"; NULL: it is not below. */
static const char *below(const char *name, const char *dir)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(name, dir, n) == 0 && name[n] == '/' ? name + n + 1 : NULL;
}

bool file_is_below(const char *name, const char *dir)
{
	return below(name, dir) != NULL;
}

/* In it, not deeper. */
static bool is_in(const char *name, const char *dir)
{
	const char *rest = below(name, dir);

	return rest && !strchr(rest, '/');
}

static void file_free(struct file *f)
{
	free(f->name);
	mo_buf_done(&f->data);
	mo_buf_done(&f->synced);
	mo_buf_done(&f->unsynced);
	free(f);
}

static bool is_remembered(const struct file *f)
{
	for (size_t i = 0; i < n_changes; i++)
		if (changes[i].before == f)
			return true;
	return f->name || f->open;
}

static void forget(struct list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (is_remembered(l->files[i]))
			l->files[n++] = l->files[i];
		else
			file_free(l->files[i]);
	l->n = n;
}

/* A directory called run, and what is below, is memory: no change of it waits for a sync. */
static bool is_memory(const char *name)
{
	const char *run = strstr(name, "/run");

	return run && (run[4] == '/' || run[4] == '\0');
}

static void change_name(const char *name, struct file *after, int64_t number)
{
	struct file *before = file_find(name);

	if (!is_memory(name))
		*MO_GROW(changes, n_changes) = (struct change){ mo_strdup(name), before, number };
	if (before)
		mo_str_set(&before->name, NULL);
	if (after)
		mo_str_set(&after->name, name);
}

/* to has so many bytes, new ones zero. */
static void resize(struct mo_buf *to, size_t n)
{
	static const char zeros[64 << 10];

	while (to->len < n)
		mo_buf_add(to, zeros, MO_MIN(n - to->len, sizeof(zeros)));
	to->len = n;
	if (to->data)
		to->data[n] = '\0';
}

static void stamp(struct file *f)
{
	f->changed_ns = last_ns = MO_MAX(mo_clock_wall_us() * 1000, last_ns + 1);
}

struct file *file_new(const char *name, bool dir)
{
	struct file *f = mo_alloc(sizeof(*f));

	struct list *l = list_of(name);

	forget(l);
	*MO_GROW(l->files, l->n) = f;
	f->number = ++last_number;
	f->dir = dir;
	stamp(f);
	change_name(name, f, f->number);
	return f;
}

void file_remove(struct file *f)
{
	_cleanup_(mo_freep) char *name = mo_strdup(f->name);

	change_name(name, NULL, ++last_number);
}

void file_touched(struct file *f, size_t at, size_t n)
{
	size_t sectors = (MO_MAX(f->data.len, at + n) + SECTOR - 1) / SECTOR;

	if (f->unsynced.len < sectors)
		resize(&f->unsynced, sectors);
	for (size_t i = at / SECTOR; n > 0 && i <= (at + n - 1) / SECTOR; i++)
		f->unsynced.data[i] = 1;
	stamp(f);
}

void file_resize(struct file *f, size_t n)
{
	size_t from = MO_MIN(f->data.len, n), to = MO_MAX(f->data.len, n);

	resize(&f->data, n);
	file_touched(f, from, to - from);
}

static void copy_sector(struct mo_buf *to, const struct mo_buf *from, size_t i)
{
	size_t n = MO_MIN(to->len, from->len);

	if (i * SECTOR < n)
		memcpy(to->data + i * SECTOR, from->data + i * SECTOR,
		       MO_MIN(n - i * SECTOR, (size_t)SECTOR));
}

void file_sync(struct file *f)
{
	resize(&f->synced, f->data.len);
	for (size_t i = 0; i < f->unsynced.len; i++)
		if (f->unsynced.data[i])
			copy_sector(&f->synced, &f->data, i);
	mo_buf_reset(&f->unsynced);
	f->synced_ns = f->changed_ns;
}

static void drop_changes(const char *dir)
{
	size_t n = 0;

	for (size_t i = 0; i < n_changes; i++)
		if (dir && !is_in(changes[i].name, dir))
			changes[n++] = changes[i];
		else
			free(changes[i].name);
	n_changes = n;
}

void file_sync_names(const char *dir)
{
	drop_changes(dir);
	forget(list_of(dir));
}

static void settle_name(const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < n_changes; i++)
		if (strcmp(changes[i].name, name) == 0)
			free(changes[i].name);
		else
			changes[n++] = changes[i];
	n_changes = n;
}

void file_settle(struct file *f)
{
	file_sync(f);
	settle_name(f->name);
}

void file_lose(struct file *f)
{
	_cleanup_(mo_freep) char *name = mo_strdup(f->name);

	file_remove(f);
	settle_name(name);
}

static void each_of(const struct list *l, void (*fn)(void *arg, struct file *f), void *arg)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->files[i]->name)
			fn(arg, l->files[i]);
}

void file_each_below(const char *dir, void (*fn)(void *arg, struct file *f), void *arg)
{
	if (strcmp(dir, "/") != 0)
		each_of(list_of(dir), fn, arg);
	else
		for (size_t i = 0; i < ELEMENTSOF(lists); i++)
			each_of(&lists[i], fn, arg);
}

struct move {
	const char *from, *to;
};

static void move_one(void *arg, struct file *f)
{
	const struct move *m = arg;
	const char *rest = below(f->name, m->from);

	if (rest) {
		char *name = mo_printf("%s/%s", m->to, rest);

		free(f->name);
		f->name = name;
	}
}

/* What is below a directory goes with it. Only of memory: no change of it comes undone. */
static void move_below(const char *from, const char *to)
{
	struct move m = { from, to };

	mo_assert(is_memory(from) && is_memory(to));
	file_each_below(from, move_one, &m);
}

void file_rename(struct file *f, const char *to)
{
	_cleanup_(mo_freep) char *from = mo_strdup(f->name);
	int64_t number = ++last_number;

	mo_assert(list_of(from) == list_of(to));
	if (f->dir)
		move_below(from, to);
	change_name(from, NULL, number);
	change_name(to, f, number);
}

/* ---- loss of power ---- */

/* A rename is two, which happen together. */
static bool is_first_of(size_t i, const char *dir)
{
	return is_in(changes[i].name, dir) &&
	       (i == 0 || changes[i - 1].number != changes[i].number);
}

static void lose_below(void *arg, struct file *f)
{
	const struct file *dir = arg;

	if (file_is_below(f->name, dir->name))
		mo_str_set(&f->name, NULL);
}

/* Of one directory's changes as many first ones as are drawn stay. A directory that was made with
 * one of the others takes with it what is below. */
static void undo(const char *dir)
{
	int64_t from = INT64_MAX;
	size_t n = 0, kept;

	for (size_t i = 0; i < n_changes; i++)
		n += is_first_of(i, dir);
	kept = draw(n + 1);
	for (size_t i = 0; i < n_changes && from == INT64_MAX; i++)
		if (is_first_of(i, dir) && kept-- == 0)
			from = changes[i].number;
	for (size_t i = n_changes; i-- > 0;) {
		struct change *c = &changes[i];
		struct file *now;

		if (!is_in(c->name, dir) || c->number < from)
			continue;
		now = file_find(c->name);
		if (now && now->dir)
			file_each_below(now->name, lose_below, now);
		if (now)
			mo_str_set(&now->name, NULL);
		if (c->before)
			mo_str_set(&c->before->name, c->name);
	}
}

static bool is_of(const char *name, const char *host)
{
	return strcmp(name, host) == 0 || below(name, host);
}

/* NULL: none is left */
static const char *changed_name(const char *host)
{
	for (size_t i = 0; i < n_changes; i++)
		if (is_of(changes[i].name, host))
			return changes[i].name;
	return NULL;
}

static void lose_names(const char *host)
{
	for (const char *name; (name = changed_name(host));) {
		_cleanup_(mo_freep) char *dir =
			mo_strndup(name, (size_t)(strrchr(name, '/') - name));

		undo(dir);
		drop_changes(dir);
	}
}

static void lose_bytes(void *arg, struct file *f)
{
	if (!is_of(f->name, arg))
		return;

	struct mo_buf old = f->synced;

	f->synced = (struct mo_buf){ 0 };
	resize(&f->synced, draw(2) ? f->data.len : old.len);
	for (size_t i = 0; i * SECTOR < f->synced.len; i++)
		copy_sector(&f->synced,
			    i < f->unsynced.len && f->unsynced.data[i] && draw(2) ? &f->data : &old,
			    i);
	mo_buf_done(&old);
	mo_buf_reset(&f->data);
	mo_buf_add(&f->data, f->synced.data, f->synced.len);
	mo_buf_reset(&f->unsynced);
	f->synced_ns = f->changed_ns = draw(2) ? f->changed_ns : f->synced_ns;
}

void file_power_loss(const char *host, uint64_t seed)
{
	chance = seed * 0x9e3779b97f4a7c15u;
	lose_names(host);
	file_each_below(host, lose_bytes, (void *)host);
	for (size_t i = 0; i < ELEMENTSOF(lists); i++)
		forget(&lists[i]);
}

void files_done(void)
{
	drop_changes(NULL);
	for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
		for (size_t k = 0; k < lists[i].n; k++)
			file_free(lists[i].files[k]);
		free(lists[i].files);
		lists[i] = (struct list){ 0 };
	}
	free(changes);
	changes = NULL;
	n_changes = 0;
}
