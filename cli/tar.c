/* See tar.h. */
#include "cli/tar.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"

#define BLOCK 512

struct head {
	char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
static_assert(sizeof(struct head) == BLOCK, "the head of a file is a block");

static void octal(char *to, size_t n, int64_t v)
{
	snprintf(to, n, "%0*llo", (int)n - 1, (long long)v);
}

static void fill(struct mo_buf *b)
{
	static const char zeros[BLOCK];

	if (b->len % BLOCK)
		mo_buf_add(b, zeros, BLOCK - b->len % BLOCK);
}

void tar_add(struct mo_buf *b, const char *name, const void *data, size_t n, int64_t time_s)
{
	struct head h = { .type = '0', .magic = "ustar", .version = { '0', '0' } };
	unsigned sum = 0;

	mo_assert(strlen(name) < sizeof(h.name) && b->len % BLOCK == 0);
	snprintf(h.name, sizeof(h.name), "%s", name);
	octal(h.mode, sizeof(h.mode), 0600);
	octal(h.uid, sizeof(h.uid), 0);
	octal(h.gid, sizeof(h.gid), 0);
	octal(h.size, sizeof(h.size), (int64_t)n);
	octal(h.time, sizeof(h.time), time_s);
	memset(h.sum, ' ', sizeof(h.sum)); /* as which it counts */
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	octal(h.sum, sizeof(h.sum) - 1, sum & 0777777);
	mo_buf_add(b, &h, sizeof(h));
	mo_buf_add(b, data, n);
	fill(b);
}

void tar_end(struct mo_buf *b)
{
	static const char zeros[2 * BLOCK];

	mo_buf_add(b, zeros, sizeof(zeros));
}
