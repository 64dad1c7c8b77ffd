/* Whether bytes are one whole MessagePack value: walked value by value, nothing is built. Orbax
 * keeps the small parts of a tree in a file of this format, and cannot restore a step whose file
 * is cut. */
#include "agent/core/ckpt/archive.h"

#include <string.h>

/* What stands behind a value's first byte: a number of `width` bytes that is the length of its
 * text (plus `more`) or, with `values`, how many values follow, times that; without a width
 * `more` bytes. */
struct shape {
	unsigned char width, more, values;
};

static struct shape shape_of(unsigned char c)
{
	static const struct shape from_c4[] = {
		{ 1, 0, 0 },
		{ 2, 0, 0 },
		{ 4, 0, 0 }, /* bytes */
		{ 1, 1, 0 },
		{ 2, 1, 0 },
		{ 4, 1, 0 }, /* extensions */
		{ 0, 4, 0 },
		{ 0, 8, 0 }, /* floating point */
		{ 0, 1, 0 },
		{ 0, 2, 0 },
		{ 0, 4, 0 },
		{ 0, 8, 0 }, /* whole numbers */
		{ 0, 1, 0 },
		{ 0, 2, 0 },
		{ 0, 4, 0 },
		{ 0, 8, 0 },
		/* extensions of a size */
		{ 0, 2, 0 },
		{ 0, 3, 0 },
		{ 0, 5, 0 },
		{ 0, 9, 0 },
		{ 0, 17, 0 },
		{ 1, 0, 0 },
		{ 2, 0, 0 },
		{ 4, 0, 0 }, /* texts */
		{ 2, 0, 1 },
		{ 4, 0, 1 },
		{ 2, 0, 2 },
		{ 4, 0, 2 }, /* lists, maps */
	};

	if (c >= 0xc4 && c <= 0xdf)
		return from_c4[c - 0xc4];
	return (struct shape){ 0, c >= 0xa0 && c <= 0xbf ? c & 31 : 0, 0 };
}

/* Values inside a list or map whose first byte tells their number. */
static uint64_t values_in(unsigned char c)
{
	if (c >= 0x80 && c <= 0x8f)
		return 2 * (uint64_t)(c & 15);
	return c >= 0x90 && c <= 0x9f ? c & 15 : 0;
}

const char *msgpack_damage(const unsigned char *data, size_t n)
{
	uint64_t due = 1;
	size_t at = 0;

	while (due > 0) {
		if (at >= n || due > n - at) /* each value has a byte at least */
			return "it is cut short";
		unsigned char c = data[at++];
		struct shape shape = shape_of(c);
		uint64_t number = 0;

		if (c == 0xc1)
			return "it is no MessagePack";
		if (shape.width > n - at)
			return "it is cut short";
		for (size_t i = 0; i < shape.width; i++)
			number = number << 8 | data[at++];
		uint64_t skip = shape.more + (shape.values ? 0 : number);
		if (skip > n - at)
			return "it is cut short";
		at += skip;
		due += values_in(c) + number * shape.values - 1;
	}
	return at == n ? NULL : "something lies behind its end";
}
