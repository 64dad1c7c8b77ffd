/* See image_stored.h. */
#include "lib/model/image_stored.h"

#include "lib/model/limits.h"

#define NAMES_MAX 64
#define DIGEST_MAX 128
#define USER_MAX 256

static const struct mo_field image_stored_fields[] = {
	MO_D(image_stored, node, MO_STR, "name of the node", .max = MO_LONGEST_NAME),
	MO_D(image_stored, digest, MO_STR, "digest of the image", .max = DIGEST_MAX),
	MO_D_LIST(image_stored, names, MO_STRS, "names by which it was asked for, the newest last",
		  .max = NAMES_MAX),
	MO_D(image_stored, bytes, MO_INT, "bytes on the disk", .most = MO_FIT_INT),
	MO_D(image_stored, used_at, MO_TIME, "when it was last asked for"),
	MO_D(image_stored, user, MO_STR, "account whose alone it is; null: it is everybody's",
	     .max = USER_MAX),
	MO_D(image_stored, in_use, MO_BOOL, "a step runs in it, or is about to"),
	MO_D_LIST(image_stored, jobs, MO_STRS, "ids of jobs that have it there",
		  .max = MO_STEPS_PER_NODE_MAX),
	MO_D(image_stored, removed, MO_BOOL, "it was removed now", .omit = true),
	MO_D(image_stored, error, MO_STR, "why it was not removed", .omit = true,
	     .most = MO_TEXT_MAX),
};
const struct mo_desc image_stored_desc = MO_DESC(image_stored, image_stored_fields);
