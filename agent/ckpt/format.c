/* What a file's own format says of its size. Only formats that say it for certain; everything else may be whole.
 *   zip (torch.save: .pt, .distcp)   what begins as an archive ends with the record that closes one
 *   safetensors                      eight bytes, the length of a JSON header, which names the end of the last tensor */
#include <string.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/wire/json.h"

#define ZIP_END 22                     /* bytes of the closing record, without a comment */
#define HEADER_MAX (64LL << 20)

static bool ends_with(const char *s, const char *end) {
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

static char *zip_damage(int fd, int64_t bytes) {
	unsigned char end[ZIP_END];

	if (bytes >= ZIP_END && pread(fd, end, sizeof(end), bytes - ZIP_END) == ZIP_END && memcmp(end, "PK\5\6", 4) == 0)
		return NULL;
	return mo_strdup("it is cut short: an archive without its end");
}

/* The largest end of a tensor's bytes behind the header, MO_NONE when the header makes no sense. */
static int64_t last_offset(struct json_object *doc) {
	int64_t last = 0;

	json_object_object_foreach(doc, name, tensor) {
		struct json_object *offsets, *end;
		if (mo_streq(name, "__metadata__"))
			continue;
		if (!json_object_is_type(tensor, json_type_object) || !json_object_object_get_ex(tensor, "data_offsets", &offsets) || !json_object_is_type(offsets, json_type_array)
		    || !(end = json_object_array_get_idx(offsets, 1)) || !json_object_is_type(end, json_type_int))
			return MO_NONE;
		last = MO_MAX(last, json_object_get_int64(end));
	}
	return last;
}

static char *safetensors_damage(int fd, int64_t bytes) {
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
	return last + 8 + (int64_t)n <= bytes ? NULL : mo_printf("it is cut short: %lld bytes of %lld", (long long)bytes, (long long)(last + 8 + (int64_t)n));
}

char *format_damage(int fd, const char *name, int64_t bytes) {
	unsigned char first[4];

	if (ends_with(name, ".safetensors"))
		return safetensors_damage(fd, bytes);
	if (pread(fd, first, 4, 0) == 4 && memcmp(first, "PK\3\4", 4) == 0)
		return zip_damage(fd, bytes);
	return NULL;
}
