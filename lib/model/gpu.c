/* Description of a GPU type. */
#include "lib/model/gpu.h"

static const struct mo_field gpu_type_fields[] = {
	MO_D(gpu_type, name, MO_STR, "short name, such as mi355x"),
	MO_D(gpu_type, title, MO_STR, "full name, such as AMD Instinct MI355X"),
	MO_D(gpu_type, vendor, MO_STR, "amd or nvidia"),
	MO_D(gpu_type, source, MO_STR, "where the numbers come from"),
	MO_D(gpu_type, hbm_bytes, MO_INT, "memory in bytes, as the driver reports it"),
	MO_D(gpu_type, hbm_tbps, MO_REAL, "bandwidth of its memory, 10^12 bytes/s"),
	MO_D(gpu_type, bf16_tflops, MO_REAL, "dense peak in BF16, 10^12 operations/s"),
	MO_D(gpu_type, fp16_tflops, MO_REAL,
	     "dense peak in FP16, 10^12 operations/s; unset: it has none"),
	MO_D(gpu_type, fp8_tflops, MO_REAL,
	     "dense peak in FP8, 10^12 operations/s; unset: it has none"),
	MO_D(gpu_type, mxfp8_tflops, MO_REAL,
	     "dense peak in MXFP8, 10^12 operations/s; unset: it has none"),
	MO_D(gpu_type, nvfp4_tflops, MO_REAL,
	     "dense peak in NVFP4, 10^12 operations/s; unset: it has none"),
	MO_D(gpu_type, gemm_efficiency, MO_REAL,
	     "best measured large BF16 GEMM, as a share of the peak; unset: not measured"),
	MO_D(gpu_type, gemm_efficiency_fp8, MO_REAL,
	     "best measured large FP8 GEMM, as a share of its peak; unset: as in BF16"),
	MO_D(gpu_type, compute_units, MO_INT,
	     "multiprocessors or compute units; unset: as if GEMMs filled it evenly"),
	MO_D(gpu_type, exponentials, MO_INT, "of a compute unit per clock; unset: 16"),
	MO_D(gpu_type, domain_gpus, MO_INT, "GPUs that reach each other without the network"),
	MO_D(gpu_type, scaleup_gbs, MO_REAL,
	     "out of one GPU to all others of its domain, 10^9 bytes/s"),
	MO_D(gpu_type, link_gbs, MO_REAL, "to one other GPU of the domain, 10^9 bytes/s"),
	MO_D(gpu_type, nic_gbps, MO_REAL, "usual network of one GPU, Gbit/s"),
};
const struct mo_desc gpu_type_desc = MO_DESC(gpu_type, gpu_type_fields);

double gpu_peak_tflops(const struct gpu_type *g, const char *precision)
{
	if (mo_streq(precision, "fp16"))
		return g->fp16_tflops;
	if (mo_streq(precision, "fp8"))
		return g->fp8_tflops;
	if (mo_streq(precision, "mxfp8"))
		return g->mxfp8_tflops;
	if (mo_streq(precision, "nvfp4"))
		return g->nvfp4_tflops;
	return g->bf16_tflops;
}
