/* Description of a GPU type. */
#include "lib/model/gpu.h"

static const struct mo_field gpu_type_fields[] = {
	MO_F(gpu_type, name, MO_STR),
	MO_F(gpu_type, title, MO_STR),
	MO_F(gpu_type, vendor, MO_STR),
	MO_F(gpu_type, source, MO_STR),
	MO_F(gpu_type, hbm_bytes, MO_INT),
	MO_F(gpu_type, hbm_tbps, MO_REAL),
	MO_F(gpu_type, bf16_tflops, MO_REAL),
	MO_F(gpu_type, fp16_tflops, MO_REAL),
	MO_F(gpu_type, fp8_tflops, MO_REAL),
	MO_F(gpu_type, mxfp8_tflops, MO_REAL),
	MO_F(gpu_type, nvfp4_tflops, MO_REAL),
	MO_F(gpu_type, gemm_efficiency, MO_REAL),
	MO_F(gpu_type, gemm_efficiency_fp8, MO_REAL),
	MO_F(gpu_type, compute_units, MO_INT),
	MO_F(gpu_type, exponentials, MO_INT),
	MO_F(gpu_type, domain_gpus, MO_INT),
	MO_F(gpu_type, scaleup_gbs, MO_REAL),
	MO_F(gpu_type, link_gbs, MO_REAL),
	MO_F(gpu_type, nic_gbps, MO_REAL),
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
