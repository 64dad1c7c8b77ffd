/* The catalogue of models and GPU types: small YAML files below the data directories, each with
 * the source of its numbers. */
#include "lib/recipe/catalogue.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/schema.h"

#define NAMES_LISTED_MAX 24
/* trees; the shipped files are fewer than 100, of some kB each */
#define KEPT_MAX 128

/* letters that a name was begun with: megatron for megatron-lm */
#define BEGUN_MIN 3

char *catalogue_near(const char *dir, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_data_file(dir), *best = NULL, *begun = NULL;
	_cleanup_(mo_dir_freep) struct mo_dir *d = path ? mo_dir_open(AT_FDCWD, path, 0) : NULL;

	for (const char *entry; (entry = mo_dir_next(d));) {
		size_t len = strlen(entry);

		if (len <= 5 || !mo_streq(entry + len - 5, ".yaml"))
			continue;
		_cleanup_(mo_freep) char *stem = mo_strndup(entry, len - 5);
		const char *both[] = { best ? best : stem, stem };
		const char *near = mo_near_miss(name, both, 2);

		if (near)
			mo_str_set(&best, near);
		else if (!begun && strlen(name) >= BEGUN_MIN && mo_starts_with(stem, name))
			begun = TAKE_PTR(stem);
	}
	if (!best)
		best = TAKE_PTR(begun);
	return best ? mo_printf("did you mean '%s'?", best) : NULL;
}

int catalogue_fail(struct recipe_errors *e, const char *path, struct mo_error *err)
{
	recipe_errors_finish(e);
	return mo_error_set(err, -EINVAL, "%s:%lld:%lld: %s", path, (long long)e->items[0].line,
			    (long long)e->items[0].column, e->items[0].text);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "there are: a, b, c"; NULL for a long catalogue. */
char *catalogue_names(const char *dir)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char **names = NULL;
	size_t n = 0;

	mo_data_names(dir, &names, &n);
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(&b, "%s%s", i ? ", " : "there are: ", names[i]);
		free(names[i]);
	}
	free(names);
	return n && n <= NAMES_LISTED_MAX ? mo_buf_take(&b) : NULL;
}

/* ---- trees of files that were read before, by path ---- */

/* A file that has rested since its last change, when it was read, cannot change again without
 * another ctime: a stat of it is enough then. The clock of another machine's file system may
 * differ from ours by less than that. */
#define RESTED_US 10000000

struct retained {
	char *path;
	struct stat seen;
	bool rested;
	struct mo_buf text;
	struct ynode *root;
	int64_t serial;
	void *read;
	void (*read_free)(void *read); /* catalogue_keep_read() */
	UT_hash_handle hh;
};
static struct retained *retained;
static int64_t last_serial;

static struct retained *retained_of(const struct ynode *root)
{
	struct retained *k = retained;

	while (k && k->root != root)
		k = k->hh.next;
	return k;
}

void *catalogue_read(const struct ynode *root)
{
	const struct retained *k = retained_of(root);

	return k ? k->read : NULL;
}

void *catalogue_keep_read(const struct ynode *root, void *read, void (*read_free)(void *read))
{
	struct retained *k = retained_of(root);

	k->read = read;
	k->read_free = read_free;
	return read;
}

int64_t catalogue_serial(const struct ynode *root)
{
	const struct retained *k = retained_of(root);

	return k ? k->serial : 0;
}

static void forget(struct retained *k)
{
	HASH_DEL(retained, k);
	if (k->read)
		k->read_free(k->read);
	free(k->path);
	mo_buf_done(&k->text);
	ynode_free(k->root);
	free(k);
}

static int64_t ctime_us(const struct stat *s)
{
	return (int64_t)s->st_ctim.tv_sec * 1000000 + s->st_ctim.tv_nsec / 1000;
}

bool catalogue_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool catalogue_rested(const struct stat *s)
{
	return mo_clock_wall_us() - ctime_us(s) > RESTED_US;
}

static void seen_as(struct retained *k, const struct stat *seen)
{
	k->seen = *seen;
	k->rested = catalogue_rested(seen);
}

/* The tree of this very text; an older one is forgotten. */
static const struct ynode *retained_tree(struct retained *k, const struct stat *seen,
					 const struct mo_buf *text)
{
	if (text->len && k->text.len == text->len &&
	    memcmp(k->text.data, text->data, text->len) == 0) {
		seen_as(k, seen);
		return k->root;
	}
	forget(k);
	return NULL;
}

/* Takes text and root. */
static const struct ynode *keep_tree(const char *path, const struct stat *seen, struct mo_buf *text,
				     struct ynode *root)
{
	struct retained *k, *next;

	if (HASH_COUNT(retained) >= KEPT_MAX)
		HASH_ITER(hh, retained, k, next)
			forget(k);
	k = mo_alloc(sizeof(*k));
	*k = (struct retained){
		.path = mo_strdup(path), .text = *text, .root = root, .serial = ++last_serial
	};
	*text = (struct mo_buf){ 0 };
	seen_as(k, seen);
	HASH_ADD_KEYPTR(hh, retained, k->path, strlen(k->path), k);
	return root;
}

const struct ynode *catalogue_tree(const char *path, const char *what, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct stat now = { 0 };
	struct retained *k = NULL;

	/* its times are taken before it is read: what changes meanwhile is read again the next
	 * time */
	int r = mo_stat(path, &now);
	HASH_FIND_STR(retained, path, k);
	if (r == 0 && k && k->rested && catalogue_same_file(&k->seen, &now))
		return k->root;
	r = mo_read_file(path, MO_RECIPE_BYTES_MAX, &text);
	if (r < 0) {
		mo_error_set(err, r, "%s: %s", path, strerror(-r));
		return NULL;
	}
	const struct ynode *before = k ? retained_tree(k, &now, &text) : NULL;
	if (before)
		return before;
	_cleanup_(ynode_freep) struct ynode *root =
		yaml_load(text.data ? text.data : "", text.len, what, &errors);
	if (errors.n || !root) {
		catalogue_fail(&errors, path, err);
		return NULL;
	}
	return keep_tree(path, &now, &text, TAKE_PTR(root));
}

const struct ynode *catalogue_open(const char *dir, const char *what, const char *name,
				   char **ret_path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *file = mo_printf("%s/%s.yaml", dir, name),
				 *path = mo_data_file(file);

	if (!path) {
		_cleanup_(mo_freep) char *hint = catalogue_near(dir, name);

		if (!hint)
			hint = catalogue_names(dir);

		mo_error_set(err, -ENOENT, "unknown %s '%s': there is no config/%s", what, name,
			     file);
		if (hint)
			mo_error_hint(err, "%s", hint);
		return NULL;
	}
	const struct ynode *root = catalogue_tree(path, what, err);
	if (root)
		*ret_path = TAKE_PTR(path);
	return root;
}

#define G(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct gpu_type, f), ##__VA_ARGS__ \
	}
static const char *const words_vendor[] = { "amd", "nvidia", NULL };
static const struct key gpu_keys[] = {
	G(name, KEY_NAME, .required = true),
	G(title, KEY_TEXT),
	G(vendor, KEY_WORD, .words = words_vendor, .required = true),
	G(source, KEY_TEXT, .required = true),
	G(hbm_bytes, KEY_INT, .min = 1 << 30, .max = INT64_MAX, .required = true),
	G(hbm_tbps, KEY_REAL, .max = 1000, .required = true),
	G(bf16_tflops, KEY_REAL, .max = 1000000, .required = true),
	G(fp16_tflops, KEY_REAL, .max = 1000000),
	G(fp8_tflops, KEY_REAL, .max = 1000000),
	G(mxfp8_tflops, KEY_REAL, .max = 1000000),
	G(nvfp4_tflops, KEY_REAL, .max = 1000000),
	G(gemm_efficiency, KEY_REAL, .max = 1),
	G(gemm_efficiency_fp8, KEY_REAL, .max = 1),
	G(compute_units, KEY_INT, .min = 1, .max = 100000),
	G(exponentials, KEY_INT, .min = 1, .max = 1000),
	G(domain_gpus, KEY_INT, .min = 1, .max = 4096, .required = true),
	G(scaleup_gbs, KEY_REAL, .max = 100000, .required = true),
	G(link_gbs, KEY_REAL, .max = 100000),
	G(nic_gbps, KEY_REAL, .max = 100000),
};

int gpu_type_load(const char *name, struct gpu_type *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("gpus", "GPU type", name, &path, err);
	struct gpu_type gpu;
	struct reader r = { .errors = &errors,
			    .keys = gpu_keys,
			    .n_keys = ELEMENTSOF(gpu_keys),
			    .bases = { &gpu } };

	if (!root)
		return -EINVAL;
	mo_desc_init(&gpu_type_desc, &gpu);
	schema_read(&r, "", root);
	if (errors.n) {
		mo_desc_done(&gpu_type_desc, &gpu);
		return catalogue_fail(&errors, path, err);
	}
	mo_desc_done(&gpu_type_desc, ret);
	*ret = gpu;
	return 0;
}
