/* An agent that is a service of systemd's has few rights: none to give files to others, or to
 * remove theirs. What needs more is run as a service of its own. */
#pragma once
#include <stddef.h>

struct manager;
/* What is executed for the program (a path), and its words, which are appended: more follow. Of an
 * agent that is no service the program itself. */
const char *service_path(const struct manager *m, const char *program);
void service_words(const struct manager *m, const char *program, char ***argv, size_t *n);
