/* Descriptions of plain structs: a table of fields, by which copying, comparing, freeing, storing,
 * sending and documenting them is written once. Pure.
 *
 * Records, messages, recipes, engine files and REST documents are described structs. JSON of one is
 * lib/wire/encode.h and decode.h, what may be kept of one from outside desc_fit.h, its keys in
 * docs/rest.md and /openapi.json the clauses of its rows (MO_D and its like).
 *
 * A described struct has only fields of the kinds below. All integers are int64_t, all reals
 * double, all strings owned char *. Unknown (JSON null): integer MO_NONE, double MO_NONE_F, string
 * NULL, tri -1, enum -1, optional NULL. mo_desc_init() makes all of it unknown, mo_desc_done()
 * frees what it owns.
 *
 * To add a field: the member, and its row. What is on disks and wires of released versions is never
 * renamed or used anew; a reader of before ignores the key, a writer of before leaves it unknown.
 *
 * What never happens: a description changes while the program runs. */
#pragma once
#include <float.h>
#include <stdint.h>
#include "lib/base/util.h"

#define MO_NONE INT64_MIN
#define MO_NONE_F (-DBL_MAX)

enum mo_kind {
	MO_BOOL, /* bool */
	MO_TRI,  /* int8_t: -1 unknown, 0, 1 */
	MO_INT,  /* int64_t */
	/* int64_t in memory, "<prefix>-<n>" outside (prefix in names[0]); MO_NONE = null */
	MO_ID,
	/* int64_t microseconds since the epoch in memory, RFC 3339 UTC with ms outside (us are
	 * added only where they are not 0, so nothing is lost) */
	MO_TIME,
	/* double; NaN and infinities are strings "NaN" "Infinity" "-Infinity" outside */
	MO_REAL,
	MO_STR,    /* char * */
	MO_ENUM,   /* int, index into names */
	MO_STRUCT, /* struct in place (sub) */
	MO_OPT,    /* struct * or NULL (sub) */
	/* struct * + size_t count (sub): array of structs; struct ** where they stand `apart` */
	MO_VEC,
	MO_STRS,    /* char ** + size_t count */
	MO_INTS,    /* int64_t * + size_t count */
	MO_REALS,   /* double * + size_t count */
	MO_RAWJSON, /* char *: JSON text kept as it is (lib/wire checks it) */
};

struct mo_desc;
/* Small: there are a thousand, and each program has their pointers relocated at its start. */
struct mo_field {
	/* outside name; `documented`: behind its end stands what it means (mo_field_doc) */
	const char *name;
	const struct mo_desc *sub;
	const char *const *names; /* enum names, or the id's prefix */
	/* What of a value from outside may be kept (desc_fit.c): INT TIME REAL within both, STR
	 * and each of STRS at most `most` bytes; both 0 = the default of the kind (REAL: none). */
	int64_t least, most;
	/* limit of elements (VEC STRS INTS REALS) or bytes (STR) accepted from outside; 0 = the
	 * default of lib/wire, UINT32_MAX = none */
	uint32_t max;
	uint32_t offset, count_offset;
	uint16_t n_names;
	enum mo_kind kind : 8;
	/* leave it out outside while as after mo_desc_init (unknown/empty/false; a 0 is written) */
	bool omit : 1;
	bool needed : 1; /* INT: outside may not leave it out */
	bool documented : 1;
	/* VEC: an array of struct *, so that each element stays where it is while others come and
	 * go */
	bool apart : 1;
};
struct mo_desc {
	const char *name;
	size_t size;
	const struct mo_field *fields;
	size_t n_fields;
	/* Called before what it owns is freed, NULL = nothing to do: takes away what is
	 * another's. */
	void (*before_done)(void *obj);
};

#define MO_DESC(type, table) \
	{ \
		.name = #type, .size = sizeof(struct type), .fields = (table), \
		.n_fields = ELEMENTSOF(table) \
	}
/* MO_F(job, name, MO_STR) and friends build one row; add .omit/.max as further initialisers:
 * MO_F(job, name, MO_STR, .max = 64). */
#define MO_F(type, f, k, ...) MO_FN(type, f, #f, k, ##__VA_ARGS__)
#define MO_FN(type, f, outside, k, ...) \
	{ \
		.name = (outside), .kind = (k), .offset = offsetof(struct type, f), ##__VA_ARGS__ \
	}
#define MO_F_ENUM(type, f, table, ...) \
	MO_F(type, f, MO_ENUM, .names = (table), .n_names = ELEMENTSOF(table), ##__VA_ARGS__)
#define MO_F_ID(type, f, prefix_table, ...) \
	MO_F(type, f, MO_ID, .names = (prefix_table), ##__VA_ARGS__)
#define MO_F_SUB(type, f, k, d, ...) MO_F(type, f, k, .sub = (d), ##__VA_ARGS__)
#define MO_F_LIST(type, f, k, ...) \
	MO_F(type, f, k, .count_offset = offsetof(struct type, n_##f), ##__VA_ARGS__)
#define MO_F_VEC(type, f, d, ...) MO_F_LIST(type, f, MO_VEC, .sub = (d), ##__VA_ARGS__)
#define MO_F_APART(type, f, d, ...) MO_F_VEC(type, f, d, .apart = true, ##__VA_ARGS__)

/* The same rows of what is shown outside, each with a clause that says what it means, and its
 * unit: description in /openapi.json, table of keys in docs/rest.md. The clause follows the
 * name in one literal: no pointer of its own that a program would relocate at its start. */
#define MO_D(type, f, k, doc, ...) MO_DN(type, f, #f, k, doc, ##__VA_ARGS__)
#define MO_DN(type, f, outside, k, doc, ...) \
	MO_FN(type, f, outside "\0" doc, k, .documented = true, ##__VA_ARGS__)
#define MO_D_ENUM(type, f, table, doc, ...) \
	MO_D(type, f, MO_ENUM, doc, .names = (table), .n_names = ELEMENTSOF(table), ##__VA_ARGS__)
#define MO_D_ID(type, f, prefix_table, doc, ...) \
	MO_D(type, f, MO_ID, doc, .names = (prefix_table), ##__VA_ARGS__)
#define MO_D_SUB(type, f, k, d, doc, ...) MO_D(type, f, k, doc, .sub = (d), ##__VA_ARGS__)
#define MO_D_LIST(type, f, k, doc, ...) \
	MO_D(type, f, k, doc, .count_offset = offsetof(struct type, n_##f), ##__VA_ARGS__)
#define MO_D_VEC(type, f, d, doc, ...) MO_D_LIST(type, f, MO_VEC, doc, .sub = (d), ##__VA_ARGS__)
#define MO_D_APART(type, f, d, doc, ...) MO_D_VEC(type, f, d, doc, .apart = true, ##__VA_ARGS__)
/* What the field means; "" = its row does not say. */
const char *mo_field_doc(const struct mo_field *f);

/* The same for a field of a part that the type holds in place (struct job_run run): outside it
 * stands flat, under its own name. MO_FP(job, run, port, "port", MO_INT). */
#define MO_FP(type, part, f, outside, k, ...) \
	{ \
		.name = (outside), .kind = (k), .offset = offsetof(struct type, part.f), \
		##__VA_ARGS__ \
	}
#define MO_FP_ENUM(type, part, f, outside, table, ...) \
	{ \
		.name = (outside), .kind = MO_ENUM, .offset = offsetof(struct type, part.f), \
		.names = (table), .n_names = ELEMENTSOF(table), ##__VA_ARGS__ \
	}
#define MO_FP_SUB(type, part, f, outside, k, d, ...) \
	{ \
		.name = (outside), .kind = (k), .offset = offsetof(struct type, part.f), \
		.sub = (d), ##__VA_ARGS__ \
	}
#define MO_FP_VEC(type, part, f, outside, d, ...) \
	{ \
		.name = (outside), .kind = MO_VEC, .offset = offsetof(struct type, part.f), \
		.count_offset = offsetof(struct type, part.n_##f), .sub = (d), ##__VA_ARGS__ \
	}
#define MO_FP_LIST(type, part, f, outside, k, ...) \
	{ \
		.name = (outside), .kind = (k), .offset = offsetof(struct type, part.f), \
		.count_offset = offsetof(struct type, part.n_##f), ##__VA_ARGS__ \
	}
#define MO_DP(type, part, f, outside, k, doc, ...) \
	MO_FP(type, part, f, outside "\0" doc, k, .documented = true, ##__VA_ARGS__)
#define MO_DP_ENUM(type, part, f, outside, table, doc, ...) \
	MO_FP_ENUM(type, part, f, outside "\0" doc, table, .documented = true, ##__VA_ARGS__)
#define MO_DP_SUB(type, part, f, outside, k, d, doc, ...) \
	MO_FP_SUB(type, part, f, outside "\0" doc, k, d, .documented = true, ##__VA_ARGS__)
#define MO_DP_VEC(type, part, f, outside, d, doc, ...) \
	MO_FP_VEC(type, part, f, outside "\0" doc, d, .documented = true, ##__VA_ARGS__)
#define MO_DP_LIST(type, part, f, outside, k, doc, ...) \
	MO_FP_LIST(type, part, f, outside "\0" doc, k, .documented = true, ##__VA_ARGS__)

/* every field unknown/empty/false; obj need not be initialised */
void mo_desc_init(const struct mo_desc *d, void *obj);
/* frees what it owns; obj becomes as after init */
void mo_desc_done(const struct mo_desc *d, void *obj);
/* Defines x_done() for `_cleanup_(x_done) struct x v;` of a struct x that x_desc describes. */
#define MO_DEFINE_DONE(type) \
	static inline void type##_done(struct type *obj) \
	{ \
		mo_desc_done(&type##_desc, obj); \
	}
/* deep; dst must be initialised (its old content is freed) */
void mo_desc_copy(const struct mo_desc *d, void *dst, const void *src);
/* deep; NaN equals NaN */
bool mo_desc_equal(const struct mo_desc *d, const void *a, const void *b);
/* Of one field. done: its content is garbage afterwards; copy: deep, dst owns nothing there yet. */
void mo_field_done(const struct mo_field *f, void *obj);
void mo_field_copy(const struct mo_field *f, void *dst, const void *src);
bool mo_field_equal(const struct mo_field *f, const void *a, const void *b);
/* Path of the first difference ("ranks[3].state"), NULL when equal; caller frees. For tests and
 * the simulator. */
char *mo_desc_diff(const struct mo_desc *d, const void *a, const void *b);
/* heap object, initialised */
void *mo_desc_new(const struct mo_desc *d);
void *mo_desc_dup(const struct mo_desc *d, const void *src); /* NULL in, NULL out */
/* done + free; NULL allowed */
void mo_desc_free(const struct mo_desc *d, void *obj);
/* Appends an initialised element to a VEC member: `struct rank *r = MO_ADD(job, ranks,
 * &rank_desc);` */
void *mo_vec_add(const struct mo_desc *d, void **array, size_t *n);
#define MO_ADD(obj, member, d) \
	((__typeof__((obj)->member))mo_vec_add((d), (void **)&(obj)->member, &(obj)->n_##member))
/* keeps the order; storage rule of MO_GROW stays valid */
void mo_vec_remove(const struct mo_desc *d, void *array, size_t *n, size_t index);
/* keeps the first ones */
void mo_vec_cut(const struct mo_desc *d, void *array, size_t *n, size_t most);
void mo_vec_clear(const struct mo_desc *d, void **array, size_t *n);
/* The same for elements that stand apart. Inserts an initialised one at index `at` (<= n), others
 * keep their addresses: `struct job *j = MO_INSERT(state, jobs, state->n_jobs, &job_desc);` */
void *mo_apart_insert(const struct mo_desc *d, void ***array, size_t *n, size_t at);
#define MO_INSERT(obj, member, at, d) \
	((__typeof__(*(obj)->member))mo_apart_insert((d), (void ***)&(obj)->member, \
						     &(obj)->n_##member, (at)))
/* takes it out; the caller owns it (mo_desc_free) */
void *mo_apart_take(void *array, size_t *n, size_t index);
void mo_apart_clear(const struct mo_desc *d, void ***array, size_t *n);
/* Of a VEC field of obj, apart or not: element i, and a new one behind the last. */
void *mo_vec_element(const struct mo_field *f, const void *obj, size_t i);
void *mo_vec_append(const struct mo_field *f, void *obj);
void mo_strs_add(char ***array, size_t *n, const char *s); /* copies s */
/* A line for a person: what is longer than 2,047 bytes is cut between two characters. */
void mo_strs_printf(char ***array, size_t *n, const char *fmt, ...) _printf_(3, 4);
void mo_strs_clear(char ***array, size_t *n);
void mo_ints_add(int64_t **array, size_t *n, int64_t v);
void mo_reals_add(double **array, size_t *n, double v);
/* Name of an enum value, "?" when out of range; and back: index or -1. */
const char *mo_enum_name(const char *const *names, size_t n, int value);
int mo_enum_parse(const char *const *names, size_t n, const char *s);

/* Limits where a description says nothing: sums of a few such numbers do not overflow. */
#define MO_FIT_INT (1LL << 60)
#define MO_FIT_BYTES (64LL * 1024)
#define MO_FIT_ITERATION (1LL << 53)
