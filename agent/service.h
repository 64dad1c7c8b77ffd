/* An agent that is a service of systemd's has few rights: none to give files to others, or to
 * remove theirs. What needs more is run as a service of its own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct manager;
/* What is executed for the program (a path), and its words, which are appended: more follow. Of an
 * agent that is no service the program itself. */
const char *service_path(const struct manager *m, const char *program);
/* Of an agent that is one: the kernel gives user namespaces to services, which the agent's own may
 * not try (RestrictNamespaces, no mount): steps are services with all rights. */
bool service_makes_users(const struct manager *m);
void service_words(const struct manager *m, const char *program, char ***argv, size_t *n);
