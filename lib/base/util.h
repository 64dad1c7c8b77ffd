/* Small things everybody needs: cleanup attributes, ownership hand-over, array growth. Ownership
 * rules (systemd's set): an owning local is initialised at its declaration with a _cleanup_
 * attribute and given away with TAKE_PTR()/TAKE_FD() as the last thing. x_free() accepts NULL
 * and returns NULL. Out of memory aborts: sizes from outside are capped before allocation. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _pure_ __attribute__((pure))
#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MO_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MO_MAX(a, b) ((a) > (b) ? (a) : (b))

/* a * b of numbers that are not negative; INT64_MAX when it is more: sizes from outside are
 * compared, and a product that wrapped would compare as a small one. */
static inline int64_t mo_times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

#define TAKE_PTR(p) \
	({ \
		__typeof__(p) *_pp = &(p); \
		__typeof__(p) _t = *_pp; \
		*_pp = NULL; \
		_t; \
	})
#define TAKE_FD(fd) \
	({ \
		int *_pf = &(fd); \
		int _t = *_pf; \
		*_pf = -1; \
		_t; \
	})

/* free() for _cleanup_: `_cleanup_(mo_freep) char *s = NULL;` */
static inline void mo_freep(void *p)
{
	free(*(void **)p);
}

/* Defines x_freep() for `_cleanup_(x_freep) struct x *p = NULL;`. */
#define MO_DEFINE_CLEANUP(type, free_fn) \
	static inline void free_fn##p(type **p) \
	{ \
		if (*p) \
			free_fn(*p); \
	}

/* Allocation that aborts on failure; zero-filled. */
void *mo_alloc(size_t size) __attribute__((malloc, returns_nonnull));
/* overflow aborts */
void *mo_alloc_array(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *mo_realloc_array(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *mo_strdup(const char *s); /* NULL in, NULL out */
char *mo_strndup(const char *s, size_t n);
/* A copy of what stands at *at up to one of the separators, or to the end; *at is moved behind that
 * one. */
char *mo_part(const char **at, const char *separators);
/* caller frees */
char *mo_printf(const char *fmt, ...) _printf_(1, 2) __attribute__((returns_nonnull));
char *mo_vprintf(const char *fmt, va_list ap) _printf_(1, 0) __attribute__((returns_nonnull));
/* frees the old one, copies the new one (NULL allowed) */
void mo_str_set(char **s, const char *value);
bool mo_streq(const char *a, const char *b) _pure_; /* NULL equals NULL only */
bool mo_starts_with(const char *s, const char *prefix) _pure_;
/* An absolute path without empty, "." and ".." parts and without a slash at its end, by its text
 * alone (links are not followed); another one is copied. Caller frees; NULL in, NULL out. */
char *mo_path_clean(const char *path);

/* Room for one more element of an array that has n elements and keeps no capacity: storage
 * doubles whenever n is 0 or a power of two, so it must only ever grow through this function (or
 * be allocated with a power-of-two count). New element is zeroed. Returns the new element. */
void *mo_grow_raw(void **array, size_t *n, size_t size);
#define MO_GROW(array, n) \
	((__typeof__(array))mo_grow_raw((void **)&(array), &(n), sizeof(*(array))))
