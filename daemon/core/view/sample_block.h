/* Samples of a run as they lie in a file: blocks of neighbours of one attempt, behind a head each
 * that says which iterations they are of and, for pictures, how far their values go, so that a long
 * run is drawn without being read. Pure; called by the shell (daemon/sample_files.c) and by
 * curve.c.
 *
 * A block is a head of BLOCK_HEAD_BYTES and a body, little-endian, with a CRC32C of each
 * (crc32c.h). The body has of each sample two bytes that say what is known of it, then that: of
 * whole numbers the difference to the sample before, in groups of seven bits; real ones as they are
 * in memory. A sample of which all is known takes about 90 bytes, one as engines print it 25 to 60.
 * */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/sample.h"

#define BLOCK_SAMPLES 64
#define BLOCK_HEAD_BYTES 164
#define BLOCK_BODY_BYTES_MAX (BLOCK_SAMPLES * 160)

/* The values that are drawn. */
enum curve_name { CURVE_LOSS, CURVE_GRAD_NORM, CURVE_STEP_MS, CURVE_TOKENS, CURVE_MFU, _CURVE_N };
/* MO_NONE_F: none was known. least: of the finite ones; most: where one was no finite number, that
 * one. */
struct sample_range {
	double last, least, most;
};
struct sample_block {
	int64_t attempt, first, last; /* iterations */
	int64_t n, bytes;             /* samples; bytes of the body */
	uint32_t sum;                 /* of the body */
	int64_t at;                   /* where its head begins, for who reads a file; else 0 */
	struct sample_range ranges[_CURVE_N];
};
/* n (1 to BLOCK_SAMPLES) samples of one attempt, ascending. Without a body: bytes 0. */
void sample_block_of(const struct sample *s, size_t n, struct sample_block *ret);
/* Behind these come those. */
void sample_range_join(struct sample_range *r, const struct sample_range *next);
/* Adds head and body to b; ret: what the head says. */
void sample_block_write(const struct sample *s, size_t n, struct mo_buf *b,
			struct sample_block *ret);
/* 0, or -EBADMSG: these bytes begin with no head. */
int sample_block_head(const void *data, size_t n, struct sample_block *ret);
/* The samples of k (ret has room for k->n) from its body; -EBADMSG: it is another, ret is of no
 * use. */
int sample_block_read(const struct sample_block *k, const void *body, size_t n, struct sample *ret);
