/* Images on their way to the nodes: which kinds of sources a recipe may name, what the controller
 * orders of a node, and what the node reports of it. Plain values. */
#pragma once
#include "lib/base/desc.h"

#define IMAGE_DIR "dir:"
#define IMAGE_LAYOUT "oci:"
#define IMAGE_SAVED "docker-archive:"
#define IMAGE_REGISTRY "docker://"
/* Of a node's directory of images: those for all jobs. Those of one user are in UID. */
#define IMAGE_SHARED "shared"

/* What an image of a recipe is, by what it begins with. Others than DIR are brought to a node's
 * directory of images before a step starts. */
enum image_source {
	IMAGE_OF_DIR,      /* a directory that each node has */
	IMAGE_OF_LAYOUT,   /* an OCI image layout: DIR[:TAG] */
	IMAGE_OF_ARCHIVE,  /* what docker save writes */
	IMAGE_OF_REGISTRY, /* a name, with or without docker:// */
	IMAGE_OF_NODE,     /* in a store or a file that each node has */
};
int image_source(const char *image);
/* Nothing is brought: DIR or NODE. */
bool image_lies_there(const char *image);
/* engine.container.pull: what the node lacks is brought, or nothing is. */
enum image_pull { PULL_MISSING, PULL_NEVER, _IMAGE_PULL_N };
extern const char *const image_pull_names[_IMAGE_PULL_N];

/* What a node is to have. Repeated with each reply while a job needs it. */
struct image_order {
	char *image;  /* as the recipe says it */
	char *digest; /* of the one that is meant; NULL: of whichever the name means now */
	/* whose it is: fetched as that user, for that user; NULL: everybody's */
	char *user;
	char *auth_file; /* of that user, on the node; NULL: none */
	int pull;        /* enum image_pull */
	bool allow_root; /* that user may be root; the agent must allow it too */
};
/* How far it is. */
struct image_report {
	char *image, *user;  /* of the order */
	char *digest;        /* NULL: not known yet */
	bool ready;          /* it is there, whole */
	bool unpacking;      /* what follows counts unpacked bytes */
	int64_t done, total; /* bytes; MO_NONE: not known */
	/* why the last try ended; NULL: none did. refused: it will end so again */
	char *error;
	bool refused;
	int64_t tries;
	/* the newest job that wanted it when that try began: a failure is no answer to a newer
	 * one */
	int64_t job;
};
extern const struct mo_desc image_order_desc, image_report_desc;

/* The report answers the order. */
bool image_answers(const struct image_report *r, const struct image_order *o);
/* sha256:HEX, or id:sha256:HEX of what has no manifest. */
bool image_digest_valid(const char *s);
/* The name of an image's directory: sha256-HEX of sha256:HEX. Caller frees. */
char *image_dir_name(const char *digest);
