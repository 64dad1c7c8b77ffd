/* See manifest.h. Text: "moe-manifest 1", then a line per file "BYTES MTIME_NS INODE CRC NAME"
 * (CRC: 8 hexadecimal digits or "-"; in NAME \ and line ends are \\ and \n), then "end N
 * DIGEST". */
#include "agent/core/ckpt/manifest.h"

#include <errno.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"

#define FIRST_LINE "moe-manifest 1\n"
#define FNV_BASE 14695981039346656037u
#define FNV_PRIME 1099511628211u

static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * FNV_PRIME;
	return hash;
}

char *manifest_digest(const struct ckpt_file *files, size_t n)
{
	uint64_t hash = FNV_BASE;

	mo_assert(files || n == 0);
	for (size_t i = 0; i < n; i++) {
		const int64_t numbers[] = { files[i].bytes, files[i].mtime_ns, files[i].inode };
		hash = mix(hash, files[i].name, strlen(files[i].name) + 1);
		hash = mix(hash, numbers, sizeof(numbers));
	}
	return mo_printf("%016llx", (unsigned long long)hash);
}

static void add_name(struct mo_buf *b, const char *name)
{
	for (; *name; name++) {
		if (*name == '\\' || *name == '\n')
			mo_buf_add(b, "\\", 1);
		mo_buf_add(b, *name == '\n' ? "n" : name, 1);
	}
}

void manifest_write(const struct ckpt_file *files, size_t n, struct mo_buf *ret)
{
	_cleanup_(mo_freep) char *digest = manifest_digest(files, n);

	mo_buf_str(ret, FIRST_LINE);
	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(ret, "%lld %lld %lld ", (long long)files[i].bytes,
			      (long long)files[i].mtime_ns, (long long)files[i].inode);
		if (files[i].crc == MO_NONE)
			mo_buf_str(ret, "- ");
		else
			mo_buf_printf(ret, "%08llx ", (unsigned long long)files[i].crc);
		add_name(ret, files[i].name);
		mo_buf_str(ret, "\n");
	}
	mo_buf_printf(ret, "end %zu %s\n", n, digest);
}

/* The word up to the next blank; NULL at the line's end. */
static char *next_word(char **at)
{
	char *word = *at, *end = word ? strchr(word, ' ') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return word;
}

static int read_crc(const char *word, int64_t *ret)
{
	uint64_t value = 0;

	*ret = MO_NONE;
	if (mo_streq(word, "-"))
		return 0;
	for (size_t i = 0; i < 8; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = word[i] ? strchr(digits, word[i]) : NULL;
		if (!d)
			return -EINVAL;
		value = value << 4 | (uint64_t)(d - digits);
	}
	*ret = (int64_t)value;
	return word[8] ? -EINVAL : 0;
}

static int read_line(char *line, struct ckpt_file *ret)
{
	char *bytes = next_word(&line), *mtime = next_word(&line), *inode = next_word(&line),
	     *crc = next_word(&line), *out;

	if (!crc || !*line || mo_parse_i64(bytes, 0, INT64_MAX, &ret->bytes) < 0 ||
	    mo_parse_i64(mtime, INT64_MIN + 1, INT64_MAX, &ret->mtime_ns) < 0 ||
	    mo_parse_i64(inode, INT64_MIN, INT64_MAX, &ret->inode) < 0 ||
	    read_crc(crc, &ret->crc) < 0)
		return -EINVAL;
	out = ret->name = mo_strdup(line);
	for (const char *p = line; *p; p++) {
		if (*p == '\\' && p[1])
			*out++ = *++p == 'n' ? '\n' : *p;
		else
			*out++ = *p;
	}
	*out = '\0';
	return 0;
}

static int read_lines(char *text, struct ckpt_file **files, size_t *n)
{
	_cleanup_(mo_freep) char *digest = NULL, *last = NULL;

	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (mo_starts_with(line, "end ")) {
			ckpt_files_sort(*files, *n);
			digest = manifest_digest(*files, *n);
			last = mo_printf("end %zu %s", *n, digest);
			return mo_streq(line, last) && end[1] == '\0' ? 0 : -EINVAL;
		}
		struct ckpt_file *f = MO_GROW(*files, *n);
		*f = (struct ckpt_file){ .crc = MO_NONE };
		if (read_line(line, f) < 0) {
			f->name = f->name ? f->name : mo_strdup("");
			return -EINVAL;
		}
	}
	return -EINVAL;
}

int manifest_read(const char *text, size_t n, struct ckpt_file **ret, size_t *n_ret)
{
	_cleanup_(mo_freep) char *copy = mo_strndup(text ? text : "", n);
	struct ckpt_file *files = NULL;
	size_t n_files = 0;

	if (!mo_starts_with(copy, FIRST_LINE) ||
	    read_lines(copy + strlen(FIRST_LINE), &files, &n_files) < 0) {
		ckpt_files_done(files, n_files);
		return -EINVAL;
	}
	*ret = files;
	*n_ret = n_files;
	return 0;
}

static char *changed(const struct ckpt_file *was, const struct ckpt_file *now, bool copied)
{
	if (was->bytes != now->bytes)
		return mo_printf("%s changed since it was verified: it has %lld bytes, it had %lld",
				 was->name, (long long)now->bytes, (long long)was->bytes);
	if (copied)
		return NULL;
	if (was->inode != now->inode)
		return mo_printf("%s was replaced since it was verified", was->name);
	return was->mtime_ns != now->mtime_ns
		       ? mo_printf("%s was written again since it was verified", was->name)
		       : NULL;
}

char *manifest_difference(const struct ckpt_file *was, size_t n_was, const struct ckpt_file *now,
			  size_t n_now, bool copied)
{
	char *reason = NULL;

	mo_assert((was || n_was == 0) && (now || n_now == 0));
	for (size_t i = 0, k = 0; !reason && (i < n_was || k < n_now);) {
		int order = i == n_was ? 1 : k == n_now ? -1 : strcmp(was[i].name, now[k].name);
		if (order < 0)
			reason = mo_printf("%s is gone since it was verified", was[i++].name);
		else if (order > 0)
			reason = mo_printf("%s appeared since it was verified", now[k++].name);
		else
			reason = changed(&was[i++], &now[k++], copied);
	}
	return reason;
}

int64_t manifest_part(const char *name, int64_t parts)
{
	return parts > 1 ? (int64_t)(mix(FNV_BASE, name, strlen(name)) % (uint64_t)parts) : 0;
}
