/* What a file's own format says of whether it is whole, by short reads: its head, its tail and
 * the directory that the tail names. What a file must be the layout says (formats); what nothing
 * is said of is judged when it begins as an archive or is called .safetensors, everything else
 * may be whole.
 *   torch         an archive that ends with its closing record, its records where and as many as
 *                 its directory says; or the older stream
 *   safetensors   eight bytes, the length of a JSON header, which names the end of the last tensor
 *   ocdbt         the store's manifest: its magic number, length and checksum
 *   msgpack       one whole value (up to 64 MiB)
 *   data, json    something else than zeros
 *   pickle        its first and its last byte
 * Markers are read whole: their pickles and JSON are judged in ckpt_entry.c. */
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "agent/core/ckpt/archive.h"
#include "lib/wire/parse.h"

#define HEADER_MAX (64LL << 20)
#define PICKLE_MAX (256LL << 20)
#define LOCALS 32 /* records of an archive that are read in their place */
#define SAMPLE 4096
#define HEAD 64

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* ---- archives ---- */

static bool read_exactly(int fd, void *p, int64_t n, int64_t at)
{
	return n >= 0 && pread(fd, p, (size_t)n, at) == n;
}

unsigned char *format_directory(int fd, int64_t bytes, struct archive *ret, const char **ret_why)
{
	unsigned char tail[ARCHIVE_TAIL];
	int64_t n = MO_MIN(bytes, (int64_t)ARCHIVE_TAIL);

	*ret_why = "it cannot be read to its end";
	if (!read_exactly(fd, tail, n, bytes - n))
		return NULL;
	*ret_why = archive_end(tail, (size_t)n, bytes, ret);
	if (!*ret_why && ret->directory_bytes > ARCHIVE_DIRECTORY_MAX)
		*ret_why = "its archive's directory is too large";
	if (*ret_why)
		return NULL;
	_cleanup_(mo_freep) unsigned char *directory = mo_alloc((size_t)ret->directory_bytes + 1);
	*ret_why = "its archive's directory cannot be read";
	return read_exactly(fd, directory, ret->directory_bytes, ret->directory)
		       ? TAKE_PTR(directory)
		       : NULL;
}

const char *format_record(int fd, const struct archive *a, const struct archive_record *r,
			  int64_t *ret_content)
{
	unsigned char local[ARCHIVE_LOCAL];

	return read_exactly(fd, local, sizeof(local), r->at)
		       ? archive_local(a, r, local, ret_content)
		       : "a record of its archive cannot be read";
}

/* All records must lie in the file; of LOCALS of them, the last among them, it is read that they
 * do. */
static char *zip_damage(int fd, int64_t bytes)
{
	struct archive a;
	struct archive_record r;
	const char *why;
	_cleanup_(mo_freep) unsigned char *directory = format_directory(fd, bytes, &a, &why);
	int64_t n = 0, stride, content;
	size_t at = 0;

	if (!directory)
		return mo_strdup(why);
	stride = MO_MAX(a.records / LOCALS, (int64_t)1);
	for (bool done = false;; n++) {
		why = archive_next(&a, directory, &at, &r, &done);
		if (done && n != a.records)
			why = "its archive's directory has another number of records than it says";
		if (!why && !done && (n % stride == 0 || n + 1 == a.records))
			why = format_record(fd, &a, &r, &content);
		if (why)
			return mo_strdup(why);
		if (done)
			return NULL;
	}
}

static bool is_pickle(const struct archive_record *r)
{
	static const char end[] = "/data.pkl";
	size_t n = sizeof(end) - 1;

	return !r->packed && r->n_name > n && memcmp(r->name + r->n_name - n, end, n) == 0 &&
	       r->stored <= PICKLE_MAX;
}

bool format_pickle(int fd, int64_t bytes, char **ret, size_t *ret_n)
{
	struct archive a;
	struct archive_record r;
	const char *why;
	_cleanup_(mo_freep) unsigned char *directory = format_directory(fd, bytes, &a, &why);
	size_t at = 0;
	int64_t content;

	for (bool done = !directory; !done && !archive_next(&a, directory, &at, &r, &done);) {
		if (done || !is_pickle(&r) || format_record(fd, &a, &r, &content))
			continue;
		*ret = mo_alloc((size_t)r.stored + 1);
		*ret_n = (size_t)r.stored;
		return read_exactly(fd, *ret, r.stored, content);
	}
	return false;
}

/* ---- safetensors ---- */

/* The largest end of a tensor's bytes behind the header, MO_NONE when the header makes no sense. */
static int64_t last_offset(struct json_object *doc)
{
	int64_t last = 0;

	json_object_object_foreach(doc, name, tensor) {
		struct json_object *offsets, *end;
		if (mo_streq(name, "__metadata__"))
			continue;
		if (!json_object_is_type(tensor, json_type_object) ||
		    !json_object_object_get_ex(tensor, "data_offsets", &offsets) ||
		    !json_object_is_type(offsets, json_type_array) ||
		    !(end = json_object_array_get_idx(offsets, 1)) ||
		    !json_object_is_type(end, json_type_int))
			return MO_NONE;
		last = MO_MAX(last, json_object_get_int64(end));
	}
	return last;
}

static char *safetensors_damage(int fd, int64_t bytes)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *doc = NULL;
	unsigned char first[8];
	uint64_t n = 0;

	if (pread(fd, first, 8, 0) != 8)
		return mo_strdup("it is cut short: it has no header");
	for (int i = 7; i >= 0; i--)
		n = n << 8 | first[i];
	if (n > (uint64_t)HEADER_MAX)
		return mo_strdup("its header makes no sense");
	if ((int64_t)n + 8 > bytes)
		return mo_strdup("it is cut short: its header is not whole");
	_cleanup_(mo_freep) char *text = mo_alloc(n + 1);
	if (pread(fd, text, n, 8) != (ssize_t)n || wire_parse(text, n, &doc, &err) < 0)
		return mo_strdup("its header makes no sense");
	int64_t last = json_object_is_type(doc, json_type_object) ? last_offset(doc) : MO_NONE;
	json_object_put(doc);
	if (last == MO_NONE)
		return mo_strdup("its header makes no sense");
	return last + 8 + (int64_t)n <= bytes
		       ? NULL
		       : mo_printf("it is cut short: %lld bytes of %lld", (long long)bytes,
				   (long long)(last + 8 + (int64_t)n));
}

/* ---- others ---- */

/* Zeros at both ends: what a file system leaves of blocks that it never wrote. */
static char *zeros_damage(int fd, int64_t bytes)
{
	unsigned char piece[SAMPLE];
	int64_t n = MO_MIN(bytes, (int64_t)SAMPLE);

	if (!read_exactly(fd, piece, n, 0))
		return mo_strdup("it cannot be read");
	return only_zeros(piece, (size_t)n) && read_exactly(fd, piece, n, bytes - n) &&
			       only_zeros(piece, (size_t)n)
		       ? mo_strdup("it holds zeros")
		       : NULL;
}

static char *whole_damage(int fd, int64_t bytes,
			  const char *(*damage)(const unsigned char *, size_t))
{
	if (bytes > HEADER_MAX)
		return mo_printf("it is larger than %lld MiB", HEADER_MAX >> 20);
	_cleanup_(mo_freep) unsigned char *data = mo_alloc((size_t)bytes + 1);
	return mo_strdup(read_exactly(fd, data, bytes, 0) ? damage(data, (size_t)bytes)
							  : "it cannot be read");
}

static char *pickle_damage(int fd, const unsigned char *head, size_t n, int64_t bytes)
{
	unsigned char last = 0;

	if (n == 0 || head[0] != 0x80)
		return mo_strdup("it is no pickle");
	return read_exactly(fd, &last, 1, bytes - 1) && last == '.' ? NULL
								    : mo_strdup("it is cut short");
}

static char *torch_damage(int fd, const unsigned char *head, size_t n, int64_t bytes)
{
	if (archive_begins(head, n))
		return zip_damage(fd, bytes);
	if (torch_stream_begins(head, n))
		return NULL;
	return mo_strdup(only_zeros(head, n) ? "it holds zeros" : "it is no file of torch.save");
}

char *format_damage(int fd, const char *name, int64_t bytes, enum ckpt_format format)
{
	unsigned char head[HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n < 0)
		return mo_strdup("it cannot be read");
	if (format == FORMAT_TORCH)
		return torch_damage(fd, head, (size_t)n, bytes);
	if (format == FORMAT_OCDBT)
		return whole_damage(fd, bytes, ocdbt_manifest);
	if (format == FORMAT_MSGPACK && bytes <= HEADER_MAX)
		return whole_damage(fd, bytes, msgpack_damage);
	if (format == FORMAT_DATA || format == FORMAT_MSGPACK)
		return zeros_damage(fd, bytes);
	if (format == FORMAT_PICKLE)
		return pickle_damage(fd, head, (size_t)n, bytes);
	if (format == FORMAT_JSON)
		return only_zeros(head, (size_t)n) ? mo_strdup("it holds zeros") : NULL;
	if (format == FORMAT_SAFETENSORS ||
	    (format == FORMAT_UNKNOWN && ends_with(name, ".safetensors")))
		return safetensors_damage(fd, bytes);
	return archive_begins(head, (size_t)n) ? zip_damage(fd, bytes) : NULL;
}
