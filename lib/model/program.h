/* Whether a program of an image can be executed on this machine, judged by its first bytes: nothing
 * of the image is run. Pure; the words are the same before a launch (`moectl doctor`) and after
 * one that failed. */
#pragma once
#include "lib/base/util.h"

#define PROGRAM_HEAD_BYTES 4096 /* that are looked at */
#define PROGRAM_NAME_MAX 256    /* of what a program is executed by, with the 0 */

/* e_machine of an ELF file (elf(5)); 0: it is none. */
int program_machine(const void *head, size_t n);
/* e_machine of this program; 0: of a machine that is not known here. */
int program_own_machine(void);
/* As uname(1) names it: x86_64, aarch64. Borrowed; NULL: one that nobody here has heard of. */
const char *program_machine_name(int machine);
/* What executes it: the dynamic linker of an ELF file of 64 bits, or the program behind #!. 0 and
 * ret without a name: the kernel alone does. Copies, and says how many bytes the name has. */
size_t program_by(const void *head, size_t n, char ret[PROGRAM_NAME_MAX]);

/* Where a python or another program lies in images, besides the directories of their PATH. Up to a
 * NULL. */
extern const char *const program_dirs[];

/* What was found. All borrowed. */
struct program_found {
	const char *wanted;    /* as the recipe or the engine names it */
	const char *path;      /* where it is; NULL: nowhere */
	const char *search;    /* the directories that were searched; NULL: it names one itself */
	const char *elsewhere; /* one of that name that lies somewhere else; NULL: none */
	bool forbidden;        /* it is there, and the user may not execute it */
	int machine, own;      /* of the program, 0 unknown; of this machine */
	const char *by;        /* what it is executed by is missing; NULL: it is there, or none */
};
/* One sentence: that it cannot be executed and why; NULL: it can. Caller frees. */
char *program_problem(const struct program_found *f);
