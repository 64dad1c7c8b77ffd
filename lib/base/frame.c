/* See frame.h. */
#include "lib/base/frame.h"

#include <endian.h>
#include <string.h>

void frame_write(const struct frame *f, char ret[static FRAME_HEAD])
{
	uint32_t length = htobe32(f->length), id = htobe32(f->id);
	uint16_t code = htobe16(f->code), after = htobe16(f->after_s);

	memcpy(ret, &length, 4);
	memcpy(ret + 4, &id, 4);
	memcpy(ret + 8, &code, 2);
	memcpy(ret + 10, &after, 2);
}

void frame_read(const char head[static FRAME_HEAD], struct frame *ret)
{
	uint32_t length, id;
	uint16_t code, after;

	memcpy(&length, head, 4);
	memcpy(&id, head + 4, 4);
	memcpy(&code, head + 8, 2);
	memcpy(&after, head + 10, 2);
	*ret = (struct frame){ be32toh(length), be32toh(id), be16toh(code), be16toh(after) };
}
