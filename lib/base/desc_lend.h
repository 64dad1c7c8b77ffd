/* Two objects of one description that say much alike: what is equal is held by one of them alone,
 * and the other refers to it. A value that differs is its own: of a struct the fields, of a list
 * the elements that do are. Which value is lent is known by its address, so nothing beside the
 * objects remembers it. Pure. Used for the jobs of one engine (daemon/core/state/shared_words.h).
 *
 * Who has borrowed is read, compared and copied as if all were its own. It must not be changed or
 * freed before mo_desc_own() or mo_desc_return(), each with the same `theirs`, which must stay as
 * it is, and where it is, meanwhile. */
#pragma once
#include "lib/base/desc.h"

/* mine owns all that it has */
void mo_desc_lend(const struct mo_desc *d, void *mine, const void *theirs);
void mo_desc_own(const struct mo_desc *d, void *mine, const void *theirs); /* has copies again */
/* What was lent is unknown, or empty, in mine: it may be freed then. */
void mo_desc_return(const struct mo_desc *d, void *mine, const void *theirs);
