/* See tfevents.h. A file is a sequence of records: length (64 bits), its masked CRC32C, so many
 * bytes, their masked CRC32C, all little endian (tensorflow/core/lib/io/record_writer.h); the bytes
 * are an Event in protocol buffers (tensorflow/core/util/event.proto), of which three members are
 * used. */
#include "cli/tfevents.h"

#include <string.h>

#include "cli/value.h"
#include "lib/base/buf.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

static const char *const scalars[] = { "loss",
				       "grad_norm",
				       "lr",
				       "step_ms",
				       "tokens",
				       "tokens_per_s_per_gpu",
				       "tflops_per_gpu",
				       "mfu",
				       "mem_gb",
				       "consumed_samples" };
/* numbers of members, and how a value follows (protobuf.dev, encoding) */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
#define FIRST "brain.Event:2"

static void add_little(struct mo_buf *b, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mo_buf_add(b, &(char){ (char)(v >> (8 * i)) }, 1);
}

static void add_varint(struct mo_buf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		mo_buf_add(b, &(char){ (char)(v | 0x80) }, 1);
	mo_buf_add(b, &(char){ (char)v }, 1);
}

static void add_key(struct mo_buf *b, int member, int kind)
{
	add_varint(b, (uint64_t)member << 3 | (uint64_t)kind);
}

static void add_bytes(struct mo_buf *b, int member, const char *s, size_t n)
{
	add_key(b, member, BYTES);
	add_varint(b, n);
	mo_buf_add(b, s, n);
}

static void add_double(struct mo_buf *b, int member, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	add_key(b, member, FIXED64);
	add_little(b, bits, sizeof(bits));
}

static void add_float(struct mo_buf *b, int member, double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	add_key(b, member, FIXED32);
	add_little(b, bits, sizeof(bits));
}

static uint32_t masked(const void *data, size_t n)
{
	uint32_t crc = mo_crc32c(0, data, n);

	return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static void add_record(struct mo_buf *b, const struct mo_buf *event)
{
	size_t at = b->len;

	add_little(b, event->len, sizeof(uint64_t));
	add_little(b, masked(b->data + at, sizeof(uint64_t)), sizeof(uint32_t));
	mo_buf_add(b, event->data, event->len);
	add_little(b, masked(event->data, event->len), sizeof(uint32_t));
}

/* Tells that the rest is to be read so; without it TensorBoard takes the file for an old one. */
static void add_first(struct mo_buf *b, double time)
{
	_cleanup_(mo_buf_done) struct mo_buf event = { 0 };

	add_double(&event, EVENT_WALL_TIME, time);
	add_bytes(&event, EVENT_FILE_VERSION, FIRST, strlen(FIRST));
	add_record(b, &event);
}

static void add_scalar(struct mo_buf *summary, const char *tag, double v)
{
	_cleanup_(mo_buf_done) struct mo_buf value = { 0 };

	add_bytes(&value, VALUE_TAG, tag, strlen(tag));
	add_float(&value, VALUE_SIMPLE, v);
	add_bytes(summary, SUMMARY_VALUE, value.data, value.len);
}

static double time_of(struct json_object *sample)
{
	int64_t us = 0;
	const char *text = js_str(sample, "time");

	return text && mo_time_parse(text, &us) == 0 ? (double)us / 1e6 : 0;
}

static void add_sample(struct mo_buf *b, struct json_object *sample)
{
	_cleanup_(mo_buf_done) struct mo_buf event = { 0 }, summary = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(scalars); i++)
		/* unknown is null; NaN and infinities are values */
		if (js_get(sample, scalars[i]))
			add_scalar(&summary, scalars[i], js_real(sample, scalars[i]));
	if (!summary.len)
		return;
	add_double(&event, EVENT_WALL_TIME, time_of(sample));
	add_key(&event, EVENT_STEP, VARINT);
	add_varint(&event, (uint64_t)js_int(sample, "iteration"));
	add_bytes(&event, EVENT_SUMMARY, summary.data, summary.len);
	add_record(b, &event);
}

/* What the attempt's file gets; with the first of it the file begins anew. */
static int write_run(const char *dir, int64_t attempt, bool first, const struct mo_buf *b,
		     struct mo_error *err)
{
	_cleanup_(mo_freep) char *run = mo_printf("%s/attempt-%lld", dir, (long long)attempt);
	_cleanup_(mo_freep) char *file = mo_printf("%s/events.out.tfevents.1.moectl", run);
	_cleanup_(mo_closep) int fd = -1;
	int r = first ? mo_mkdir_p(run, 0755, false) : 0;

	if (r >= 0 && first)
		r = mo_write_file(file, b->data, b->len, 0644, false);
	else if (r >= 0)
		r = fd = mo_open_at(AT_FDCWD, file, O_WRONLY | O_APPEND, 0);
	if (r >= 0 && fd >= 0)
		r = mo_write_all(fd, b->data, b->len);
	return r < 0 ? mo_error_set(err, r, "%s: %s", file, strerror(-r)) : 0;
}

int tfevents_add(struct tfevents *t, struct json_object *items, struct mo_error *err)
{
	size_t n = js_len(items);
	int r = 0;

	for (size_t i = 0; i < n && r >= 0;) {
		_cleanup_(mo_buf_done) struct mo_buf run = { 0 };
		int64_t attempt = js_int(js_at(items, i), "attempt");
		bool first = attempt != t->attempt;

		if (first)
			add_first(&run, time_of(js_at(items, i)));
		for (; i < n && js_int(js_at(items, i), "attempt") == attempt; i++) {
			add_sample(&run, js_at(items, i));
			t->n_samples++;
		}
		r = run.len ? write_run(t->dir, attempt, first, &run, err) : 0;
		t->attempt = attempt;
		t->n_runs += first;
	}
	return r;
}
