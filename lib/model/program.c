/* See program.h. Numbers of elf(5). */
#include "lib/model/program.h"

#include <string.h>

#define CLASS_64 2
#define LITTLE 1
#define MACHINE_AT 18
#define HEADER_BYTES 64
#define PHOFF_AT 32
#define PHENTSIZE_AT 54
#define PHNUM_AT 56
#define PH_BYTES 56
#define PT_INTERP 3

const char *const program_dirs[] = {
	"/opt/venv/bin",   "/opt/conda/bin", "/venv/bin", "/usr/local/bin",
	"/usr/local/sbin", "/usr/bin",       "/bin",      NULL
};

static bool is_elf(const unsigned char *p, size_t n)
{
	return n >= HEADER_BYTES && memcmp(p, "\177ELF", 4) == 0;
}

/* size bytes at `at`, in the order that the file says. */
static uint64_t number(const unsigned char *p, size_t at, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | p[at + (p[5] == LITTLE ? size - 1 - i : i)];
	return v;
}

int program_machine(const void *head, size_t n)
{
	return is_elf(head, n) ? (int)number(head, MACHINE_AT, 2) : 0;
}

int program_own_machine(void)
{
#if defined(__x86_64__)
	return 62;
#elif defined(__aarch64__)
	return 183;
#else
	return 0;
#endif
}

const char *program_machine_name(int machine)
{
	switch (machine) {
	case 3: return "i386";
	case 21: return "ppc64";
	case 22: return "s390x";
	case 40: return "arm";
	case 62: return "x86_64";
	case 183: return "aarch64";
	case 243: return "riscv64";
	case 258: return "loongarch64";
	default: return NULL;
	}
}

static size_t take(const unsigned char *p, size_t n, char ret[PROGRAM_NAME_MAX])
{
	if (n == 0 || n >= PROGRAM_NAME_MAX)
		return 0;
	memcpy(ret, p, n);
	ret[n] = '\0';
	return n;
}

static size_t loader(const unsigned char *p, size_t n, char ret[PROGRAM_NAME_MAX])
{
	uint64_t table = number(p, PHOFF_AT, 8), size = number(p, PHENTSIZE_AT, 2);
	uint64_t count = number(p, PHNUM_AT, 2);

	for (uint64_t i = 0; p[4] == CLASS_64 && size >= PH_BYTES && table < n && i < count; i++) {
		uint64_t at = table + i * size;

		if (at + PH_BYTES > n)
			return 0;
		if (number(p, at, 4) != PT_INTERP)
			continue;
		uint64_t from = number(p, at + 8, 8), bytes = number(p, at + 32, 8);

		if (from >= n || bytes > n - from)
			return 0;
		return take(p + from, strnlen((const char *)p + from, bytes), ret);
	}
	return 0;
}

size_t program_by(const void *head, size_t n, char ret[PROGRAM_NAME_MAX])
{
	const unsigned char *p = head;
	size_t at = 2, end;

	ret[0] = '\0';
	if (is_elf(p, n))
		return loader(p, n, ret);
	if (n < 2 || memcmp(p, "#!", 2) != 0)
		return 0;
	while (at < n && (p[at] == ' ' || p[at] == '\t'))
		at++;
	for (end = at; end < n && !strchr(" \t\r\n", p[end]);)
		end++;
	return take(p + at, end - at, ret);
}

static const char *machine_text(int machine)
{
	const char *name = program_machine_name(machine);

	return name ? name : "another kind of machine";
}

/* ": why" */
static char *why(const struct program_found *f)
{
	if (!f->path && f->search)
		return mo_printf("in none of the directories %s", f->search);
	if (!f->path)
		return mo_strdup("not there");
	if (f->machine && f->own && f->machine != f->own)
		return mo_printf("it is for %s, and this node is %s", machine_text(f->machine),
				 machine_text(f->own));
	if (f->by)
		return mo_printf("it is executed by %s, which is not there", f->by);
	return f->forbidden ? mo_strdup("the user may not execute it") : NULL;
}

char *program_problem(const struct program_found *f)
{
	_cleanup_(mo_freep) char *reason = why(f);

	if (!reason)
		return NULL;
	return mo_printf("cannot execute %s in the image: %s%s%s", f->path ? f->path : f->wanted,
			 reason, f->elsewhere ? "; the image has " : "",
			 f->elsewhere ? f->elsewhere : "");
}
