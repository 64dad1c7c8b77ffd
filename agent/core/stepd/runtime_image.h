/* What a container runtime of the site's says of an image in its store, in the words that its data
 * file asks for (config/runtimes). What it says may be of another version of it, or a lie: only
 * what has the expected form counts. Pure; asked by moe-runtime, used by moe-namespace. */
#pragma once
#include "agent/core/stepd/image_config.h"

/* Lower directories of one overlay; Docker's own limit is 127, podman's 128 */
#define RUNTIME_LAYERS_MAX 200
#define RUNTIME_ANSWER_MAX (4 * 1024 * 1024) /* bytes of all that moe-runtime says */

struct runtime_image {
	char *id;      /* the runtime's name of it: 12 to 64 hexadecimal digits */
	char *digest;  /* sha256:HEX of its manifest, else id:sha256:HEX */
	char **layers; /* absolute paths of directories, the highest first */
	size_t n_layers;
	char **env; /* NAME=VALUE, not looked at */
	size_t n_env;
	char *workdir;
};
extern const struct mo_desc runtime_image_desc;
MO_DEFINE_DONE(runtime_image)

/* Of the JSON that a runtime has of an image. */
struct runtime_config {
	char **env;
	size_t n_env;
	char *workdir;
};
extern const struct mo_desc runtime_config_desc;
MO_DEFINE_DONE(runtime_config)

/* Three lines, of which an answer may lack some: those are empty. text is cut. */
struct runtime_answer {
	const char *names;  /* [DIGEST | NAME@DIGEST]... ID */
	const char *layers; /* DRIVER DIRECTORY[:DIRECTORY]... */
	const char *config; /* JSON of struct runtime_config; what follows it belongs to it */
};
void runtime_answer_read(char *text, struct runtime_answer *ret);
/* Its names; 0, or -EBADMSG with err. */
int runtime_image_names(const char *line, struct runtime_image *ret, struct mo_error *err);
/* Its layers likewise; -ENOTSUP: the store has none that the kernel stacks. */
int runtime_image_layers(const char *line, struct runtime_image *ret, struct mo_error *err);
/* The name of a step's directory, jJOB.aATTEMPT, where the step is of this node; NULL: it is not,
 * or is no step's id. Caller frees. step: j<job>.a<attempt>.<node>.<16 hex>. */
char *runtime_step_dir(const char *step, const char *node);
