/* Options of a command line (options.h); see options_args.c. */
#pragma once
#include "lib/base/options.h"

/* Command line of a daemon: --config FILE (default_file is used when present and --config was
 * not given; "" = none), then the *.yaml files of the directory beside it (moed.d for moed.yaml)
 * in the order of their names, each of which may say anything anew, then --set key=value in
 * order; --check-config, --example-config, --version, --help. Fills obj. 0 and above as named,
 * or a negative errno with err. */
int mo_options_args(const struct mo_options *o, const char *program, const char *default_file,
		    int argc, char *const *argv, void *obj, struct mo_error *err);
