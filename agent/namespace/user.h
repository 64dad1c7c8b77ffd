/* Whose rights count when paths of the job are opened. */
#pragma once
#include "agent/core/stepd/box.h"

/* At the beginning, by who is that user and not root: both namespaces, which all the rest is made
 * in. user_begin() and user_end() then change nothing, and user_namespace() is none. */
void user_enter_alone(const struct box *b);
bool user_is_alone(void);

/* From here on this process reaches, and reads, only what the user of the box may: its ids and
 * groups for files. It keeps the right to mount. */
void user_begin(const struct box *b);
/* And no more. The groups stay away. */
void user_end(void);

/* Descriptor of the user namespace of the box, -1: none is asked for. */
int user_namespace(const struct box *b);
/* One by which files of the owner become the user's. */
int user_of_files(const struct box *b, uid_t owner, gid_t group);
/* From here on this process is in that user namespace and in a mount namespace that belongs to it,
 * with no right outside of both. Nothing where fd is -1. */
void user_enter(const struct box *b, int fd);
/* The numbers by which the user of the box is known to this process now. */
uid_t user_uid(const struct box *b);
gid_t user_gid(const struct box *b);
/* The numbers by which the user of the box is known in it. */
uid_t user_inside_uid(const struct box *b);
gid_t user_inside_gid(const struct box *b);
