/* A GPU type of the catalogue (config/gpus/NAME.yaml): what the planner needs to know of the
 * hardware. Plain value. Unknown = MO_NONE / MO_NONE_F. */
#pragma once
#include "lib/base/desc.h"

struct gpu_type {
	char *name, *title, *vendor; /* mi355x, AMD Instinct MI355X, amd | nvidia */
	char *source;                /* where the numbers come from */
	int64_t hbm_bytes;           /* what the driver reports */
	double hbm_tbps;             /* 10^12 bytes/s */
	double bf16_tflops, fp16_tflops, fp8_tflops, mxfp8_tflops, nvfp4_tflops; /* dense peaks */
	/* best measured large BF16 GEMM / bf16 peak; unknown = not measured */
	double gemm_efficiency;
	/* best measured large FP8 GEMM / its peak; unknown = as in BF16 */
	double gemm_efficiency_fp8;
	/* multiprocessors (NVIDIA) or compute units (AMD); unknown = as if GEMMs filled the GPU
	 * evenly */
	int64_t compute_units;
	int64_t exponentials; /* of a compute unit per clock; unknown = 16 */
	int64_t domain_gpus;  /* GPUs that reach each other without the network */
	double scaleup_gbs;   /* 10^9 bytes/s out of one GPU to all others of its domain */
	double link_gbs;      /* to one other GPU of the domain */
	double nic_gbps;      /* usual network, Gbit/s per GPU */
};
extern const struct mo_desc gpu_type_desc;
/* Dense peak for a recipe's precision (bf16 when NULL); MO_NONE_F when the GPU lacks it. */
double gpu_peak_tflops(const struct gpu_type *g, const char *precision);
