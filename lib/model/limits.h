/* Limits on everything that a peer or a file can make grow: bytes of a message, jobs of a cluster,
 * lines of a rank. One place, so that an answer to "what is the most?" can be read.
 *
 * Whoever takes something from outside asks here before he allocates, and says what the limit is
 * when he refuses. Each has a test that hits it. What a limit costs at its most is measured in
 * docs/reliability.md.
 *
 * What does not belong here: what an operator may set (daemon/options.c, agent/options.c), and
 * limits of one file's own business, which stand at its top. */
#pragma once

/* lib/recipe/yaml.c; above 64 kB moed reads it in a child: daemon/spec.c */
#define MO_RECIPE_BYTES_MAX (256 * 1024)
#define MO_RECIPE_KEYS_MAX 512 /* keys in one mapping */
/* values in one list: words of a command are compared with each other */
#define MO_RECIPE_ITEMS_MAX 1024
#define MO_RECIPE_ANCHORS_MAX 256
/* of an engine's own configuration as a job keeps it: Primus' largest are 50 kB */
#define MO_CONFIG_BYTES_MAX (160 * 1024)
#define MO_RECIPE_NODES_MAX 20000        /* YAML nodes after expansion of aliases */
#define MO_RECIPE_TEXT_MAX (1024 * 1024) /* bytes of all texts after it */
#define MO_BODY_BYTES_MAX (1024 * 1024)  /* HTTP request body of users */
/* agent protocol message; what it may hold: lib/wire/cost.c */
#define MO_AGENT_BODY_BYTES_MAX (16 * 1024 * 1024)
/* what a node says of itself is stored each time that its agent began anew */
#define MO_HELLO_BYTES_MAX (2 * 1024 * 1024)
#define MO_GPUS_PER_NODE_MAX 256
#define MO_GPU_INDEX_MAX 4095 /* of a slot: some of a node's may not be offered */
#define MO_GPU_LINKS_MAX 8192 /* pairs of 64 partitions, twice */
#define MO_NUMA_NODES_MAX 1024
/* steps (running, or gone and not yet forgotten) in one message */
#define MO_STEPS_PER_NODE_MAX 4096
#define MO_RANKS_MAX 131072 /* ranks of one job */
#define MO_NODES_MAX 16384
/* jobs not yet finished; one more submit gets 429. One user's: no more than there is room for
 * others */
#define MO_JOBS_ACTIVE_MAX 10000
#define MO_JOBS_RETAINED_MAX 100000 /* finished jobs kept as one row each */
/* bytes of recipes, words and configurations of unfinished jobs; one more submit gets 429, as
 * above */
#define MO_ACTIVE_TEXTS_MAX (256LL << 20)
/* of finished ones: who ended first gives its own up (daemon/core/update/retained.c) */
#define MO_RETAINED_TEXTS_MAX (64LL << 20)
/* per job; above it every second one of the older half is dropped */
#define MO_SAMPLES_MAX 20000
/* ring of events of the cluster: who may hold how much of it, daemon/core/update/ring.c */
#define MO_EVENTS_MAX 10000
/* about checkpoints of one user's jobs, in a minute: a rank announces as many as it likes */
#define MO_EVENTS_OF_USER_MAX 300
#define MO_CHECKPOINTS_MAX 1000 /* per job */
/* files of a checkpoint directory that nothing reads, of which a scan tells */
#define MO_LABELS_MAX 16 /* of a job */
#define MO_UNREAD_MAX 16
#define MO_INCIDENTS_MAX 1000 /* per job */
#define MO_TAIL_LINES 20      /* last lines of a rank kept as evidence */
/* bytes of one output line that are parsed; the log file gets all of it */
#define MO_LINE_MAX 8192
/* of a message's notes, likewise of its scans: taken at once (daemon/core/rules/intake.c) */
#define MO_PORTION_BYTES (1024 * 1024 * 3 / 2)
#define MO_NOTES_PER_SYNC 2000 /* step notes in one message */
#define MO_LONGEST_NAME 63
#define MO_IDEMS_MAX 100000 /* idempotency keys kept, newest first */
#define MO_IDEM_RETAINED_US (24LL * 3600 * 1000000)
#define MO_STREAM_CLIENTS_MAX 10000
/* streams, and requests that wait for an agent; one more gets 429; likewise the four below.
 * Operators and admins are not limited */
#define MO_STREAMS_PER_USER 100
#define MO_CONNECTIONS_PER_USER 200
/* its agent has one for each of sync, urgent message, answers and trades */
#define MO_CONNECTIONS_PER_NODE 32
#define MO_CHANGES_BURST 1000     /* POST and DELETE of one user at once */
#define MO_CHANGES_PER_S 20       /* and then */
#define MO_CHECK_RESULTS_MAX 4096 /* of one node */
#define MO_STACK_ITEMS_MAX 256
#define MO_CHECKS_MAX 512    /* in config/health */
#define MO_COUNTERS_MAX 4096 /* baselines that an agent keeps */
#define MO_MOMENTS_MAX 128   /* of one of them over its window */
#define MO_READINGS_MAX 512  /* of one probe */
/* bytes of a path, or of one reason, that a node tells */
#define MO_TEXT_MAX 4096
#define MO_IMAGES_PER_NODE_MAX 64 /* that are brought, or wait for it */
