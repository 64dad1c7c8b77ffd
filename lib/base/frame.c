/* See frame.h. */
#include "lib/base/frame.h"

static void put(uint32_t v, int n, char *to)
{
	for (int i = n - 1; i >= 0; i--, v >>= 8)
		to[i] = (char)(v & 0xff);
}

static uint32_t get(const char *from, int n)
{
	uint32_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | (unsigned char)from[i];
	return v;
}

void frame_write(const struct frame *f, char ret[static FRAME_HEAD])
{
	put(f->length, 4, ret);
	put(f->id, 4, ret + 4);
	put(f->code, 2, ret + 8);
	put(f->after_s, 2, ret + 10);
}

void frame_read(const char head[static FRAME_HEAD], struct frame *ret)
{
	*ret = (struct frame){ get(head, 4), get(head + 4, 4), (uint16_t)get(head + 8, 2),
			       (uint16_t)get(head + 10, 2) };
}
