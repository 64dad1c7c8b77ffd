/* Whether an image fits a node: what moe-probe found of both, and what follows from it
 * (`moectl doctor NODE --image`). Pure. */
#pragma once
#include "lib/model/image_check.h"
#include "lib/model/program.h"

/* Device files of one kind, and how many of them the user may read and write. */
struct fit_devices {
	int64_t n, open;
	char *closed; /* the first that he may not: "/dev/kfd (group render, mode 0660)"; NULL */
	char *group;  /* the name of its group */
};
struct fit_card {
	char *name, *driver; /* mlx5_0, mlx5_core; driver NULL: unknown */
};
/* Of the node. MO_NONE: unknown. */
struct fit_node {
	int machine; /* e_machine */
	bool root;   /* its agent is */
	int64_t amd_gpus;
	struct fit_devices kfd, render, rdma;
	struct fit_card *cards;
	size_t n_cards;
	char *amdgpu, *kernel;            /* versions */
	int64_t mem_bytes, memlock_bytes; /* INT64_MAX: without a limit */
	char *layers;                     /* directory for what ranks write */
	char *layers_error;               /* why its space is not known; NULL */
	int64_t layers_free;
	char *images;  /* directory of images; NULL: unknown */
	bool no_locks; /* its file system has none */
	bool layers_readonly, overlay, userns, userns_restricted, cgroup2;
};
/* A program of the image; see struct program_found. */
struct fit_program {
	char *path, *elsewhere, *by;
	bool forbidden;
	int machine;
};
/* Of the image. */
struct fit_image {
	char *error;  /* why it cannot be looked at, NULL: it can; then nothing else is known */
	char *config; /* config.json, etc/environment, or NULL: it says nothing about itself */
	char *path;   /* its PATH */
	struct fit_program python, shell; /* python3 along its PATH, /bin/sh */
	char *rocm;                       /* version; NULL: none at /opt/rocm */
	bool rccl, rocr;
	char **providers; /* of libibverbs */
	size_t n_providers;
};
struct fit {
	struct fit_node node;
	struct fit_image image;
};
void fit_done(struct fit *f);

/* Appends to ret, which has image and user, one row for each check. */
void fit_judge(const struct fit *f, const struct image_fits *fits, struct image_checks *ret);
