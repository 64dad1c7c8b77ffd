/* Small files below a root directory. A file that is missing, huge, binary or failing is
 * unknown, never an error. Called by the parts of lib/topo. */
#include "lib/topo/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define ONES_32 0xffffffffLL /* what a device that fell off the bus answers */

/* n bytes as text: blanks at the end go, what does not print becomes '?'. */
static char *clean(const char *s, size_t n)
{
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
		n--;
	char *text = mo_strndup(s, n);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
	return text;
}

bool reach(const struct finds *f, const char *path)
{
	const struct topo_options *o = f->options;
	const char *own = path + strlen(f->root);

	for (size_t i = 0; i < o->n_leave_out; i++) {
		size_t n = strlen(o->leave_out[i]);
		if (strncmp(own, o->leave_out[i], n) == 0 && (own[n] == '/' || !own[n]))
			return false;
	}
	if (o->at)
		snprintf(o->at, o->at_bytes, "%s", own);
	return true;
}

int read_text(const struct finds *f, const char *path, struct mo_buf *b)
{
	return reach(f, path) ? mo_read_file(path, FILE_MAX, b) : -ECANCELED;
}

char *file_line(const struct finds *f, const char *path, int *ret_error)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = read_text(f, path, &b);

	if (ret_error)
		*ret_error = r;
	return r < 0 ? NULL : clean(b.data ? b.data : "", b.data ? strcspn(b.data, "\n") : 0);
}

int64_t file_int(const struct finds *f, const char *path, int64_t otherwise)
{
	_cleanup_(mo_freep) char *line = file_line(f, path, NULL);
	int64_t v;

	return line && mo_parse_i64(line, INT64_MIN + 1, INT64_MAX, &v) == 0 ? v : otherwise;
}

int64_t file_hex(const struct finds *f, const char *path)
{
	_cleanup_(mo_freep) char *line = file_line(f, path, NULL);
	int64_t v = 0;

	if (!line || !mo_starts_with(line, "0x") || strlen(line) > 10 || !line[2])
		return -1;
	for (const char *p = line + 2; *p; p++) {
		if (!isxdigit((unsigned char)*p))
			return -1;
		v = v * 16 + (*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
	}
	return v;
}

char *device_line(struct finds *f, const char *object, const char *dir, const char *file)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", file);
	int r;
	char *line = file_line(f, path, &r);

	if (!line && r != -ENOENT && r != -ENOTDIR && r != -ELOOP && r != -ECANCELED)
		finds_odd(f, object, "%s: %s: its value is unknown; the device may be in reset",
			  file, strerror(-r));
	return line;
}

char *props_value(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p ? 1 : 0) {
		if (strncmp(p, key, n) != 0 || !p[n] || !strchr(" \t:", p[n]))
			continue;
		const char *v = p + n + strspn(p + n, ": \t");
		return clean(v, strcspn(v, "\n"));
	}
	return NULL;
}

int64_t props_int(const char *text, const char *key)
{
	_cleanup_(mo_freep) char *value = props_value(text, key);
	int64_t v;

	return value && mo_parse_i64(value, 0, INT64_MAX, &v) == 0 && v != ONES_32 ? v : MO_NONE;
}

uint64_t props_u64(const char *text, const char *key, bool *ret_ones)
{
	_cleanup_(mo_freep) char *value = props_value(text, key);
	uint64_t v = 0;

	*ret_ones = false;
	for (const char *p = value; p && *p; p++) /* beyond what the checked parser takes */
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return 0;
	*ret_ones = v == UINT64_MAX;
	return *ret_ones ? 0 : v;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int64_t *dir_numbers(const char *dir, size_t *ret_n)
{
	int64_t *ids = NULL;
	DIR *d = opendir(dir);

	*ret_n = 0;
	for (struct dirent *e; d && (e = readdir(d)) && *ret_n < ENTRIES_MAX;) {
		int64_t id;
		if (mo_parse_i64(e->d_name, 0, INT32_MAX, &id) == 0)
			mo_ints_add(&ids, ret_n, id);
	}
	if (d)
		closedir(d);
	if (ids)
		qsort(ids, *ret_n, sizeof(*ids), by_number);
	return ids;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **dir_names(const char *dir, size_t *ret_n)
{
	char **names = NULL;
	DIR *d = opendir(dir);

	*ret_n = 0;
	for (struct dirent *e; d && (e = readdir(d)) && *ret_n < ENTRIES_MAX;) {
		_cleanup_(mo_freep) char *printable = clean(e->d_name, strlen(e->d_name));
		if (e->d_name[0] != '.' && mo_streq(printable, e->d_name))
			mo_strs_add(&names, ret_n, e->d_name);
	}
	if (d)
		closedir(d);
	if (names)
		qsort(names, *ret_n, sizeof(*names), by_name);
	return names;
}

void names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

char *pci_path(const char *link)
{
	_cleanup_(mo_freep) char *real = realpath(link, NULL);
	const char *p = real ? strstr(real, "/devices/pci") : NULL;

	return p ? mo_strdup(p + strlen("/devices/")) : NULL;
}

/* The one node that has all local cpus; MO_NONE when several share them: the list then says
 * nothing. */
static int64_t numa_of_cpus(const struct finds *f, const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "local_cpulist"),
				 *list = file_line(f, path, NULL);
	_cleanup_(mo_idset_done) struct mo_idset local = { 0 };

	if (!list || mo_idset_parse(list, &local) < 0 || !mo_idset_count(&local))
		return MO_NONE;
	for (size_t i = 0; i < f->n_places; i++) {
		_cleanup_(mo_idset_done) struct mo_idset rest = { 0 };
		mo_idset_copy(&rest, &local);
		mo_idset_andnot(&rest, &f->places[i].cpus);
		if (!mo_idset_count(&rest))
			return f->places[i].id;
	}
	return MO_NONE;
}

int64_t pci_numa(struct finds *f, const char *object, const char *dir)
{
	_cleanup_(mo_freep) char *line = device_line(f, object, dir, "numa_node");
	int64_t node;

	if (f->n_places == 1)
		return f->places[0].id;
	if (line && mo_parse_i64(line, INT64_MIN + 1, INT64_MAX, &node) < 0)
		finds_odd(f, object,
			  "numa_node says '%.40s', which is no number: its cpu list or the "
			  "driver's links place it instead",
			  line);
	else if (line && mo_parse_i64(line, INT32_MIN, UINT32_MAX, &node) == 0 && node >= 0 &&
		 node != ONES_32) {
		for (size_t i = 0; i < f->n_places; i++)
			if (f->places[i].id == node)
				return node;
		finds_odd(f, object,
			  "numa_node %lld does not exist here: its cpu list or the driver's links "
			  "place it instead",
			  (long long)node);
	}
	return numa_of_cpus(f, dir);
}
