/* Why a program of an image could not be executed: the kernel's word (no such file, exec format
 * error) names neither a missing loader nor another machine, nor where the program lies instead.
 * The child, which is the user and in the image, looks after its exec has failed. */
#pragma once
#include "lib/base/util.h"
#include "lib/model/program.h"

struct child_plan;

/* Texts that are empty are unknown, or too long. */
struct child_found {
	int32_t looked, machine, forbidden; /* looked: 0: nobody did */
	char path[PROGRAM_NAME_MAX], elsewhere[PROGRAM_NAME_MAX], by[PROGRAM_NAME_MAX];
	char search[2 * PROGRAM_NAME_MAX];
};
/* In the child: system calls only. */
void child_look(const struct child_plan *p, struct child_found *ret);
/* In the parent: "cannot execute .. in the image: ..."; NULL: nobody looked, or nothing is wrong
 * with the program that could be seen. Caller frees. */
char *child_found_problem(const struct child_found *f, const char *program);
