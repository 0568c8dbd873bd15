/*
 * test_kernel_name.c - the parts of kernels' names, and what these tell of tensor cores.
 */
#include "base.h"
#include "kernel_name.h"
#include "tensor_cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_base_names(void **state)
{
	static const struct {
		const char *name, *base;
	} cases[] = {
		{ "ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn" },
		{ "void at::native::k<4, at::F<(bool)1>, at::A<char*, 3ul> >(int, at::F<(bool)1>)",
		  "k" },
		{ "void (anonymous namespace)::softmax<float>(float*)", "softmax" },
		{ "k<(bool)1>", "k" },
		{ "layernorm(float*, int) [clone .1]", "layernorm" },
		{ "ns::f(void (*)(int))", "f" },
		{ "volta_h16gemm_<BF16,BF16,float>_nt_v1",
		  "volta_h16gemm_<BF16,BF16,float>_nt_v1" },
		{ "(", "(" },
		{ ")", ")" },
		{ "<>", "<>" },
		{ "a::", "a::" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_str base = gt_kernel_base_name(gt_str_of(cases[i].name));

		assert_int_equal(base.len, strlen(cases[i].base));
		assert_memory_equal(base.ptr, cases[i].base, base.len);
	}
}

static void test_short_names(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "void at::native::reduce_kernel<128, 4, "
		  "at::native::sum_functor<float>::operator()"
		  "(at::TensorIterator&)::{lambda(float, float)#1}>(int)",
		  "reduce_kernel" },
		{ "nvjet_sm90_tst_32x64_64x16_4x2_h_bz_NNN",
		  "nvjet_sm90_tst_32x64_64x16_4x2_h_bz_NNN" },
		{ "triton_poi_fused_add_cos_sin_0", "triton_poi_fused_add_cos_sin_0" },
		{ "triton__0d1d2d3d", "triton__0d1d2d3d" },
		{ "void at::native::(anonymous namespace)::softmax<float>(float*)", "softmax" },
		{ "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"
		  "(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
		  "cutlass_80_simt_sgemm_128x32_8x5_nn_align1" },
		{ "void "
		  "cutlass__5x_cudnn::Kernel<cutlass__5x_cudnn::reduction::kernel::ReduceSplitK"
		  "<cutlass__5x_cudnn::MatrixShape<4, 128>, float> >(int)",
		  "ReduceSplitK" },
		{ "void cutlass::device_kernel<flash::FlashAttnFwdSm90<float> >(int)",
		  "FlashAttnFwdSm90" },
		{ "void cutlass::Kernel<(anonymous)>(int)", "Kernel" },
		{ "void cutlass::Kernel(int)", "Kernel" },
		{ "void mine::Kernel<A>(int)", "mine::Kernel" },
		{ "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(int)",
		  "gemvx::kernel" },
		{ "kernel(int)", "kernel" },
		{ "void gpu_impl<float>(int)::{lambda(int)#1}::operator()(int) const", "gpu_impl" },
		{ "Functor::operator()(int) const", "operator()" },
		{ "_ZN2at6native13reduce_kernelIfEEvPT_", "reduce_kernel" },
		{ "_Zbad", "_Zbad" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_buf got = { 0 };

		gt_kernel_put_short_name(&got, gt_str_of(cases[i].name));
		gt_buf_byte(&got, '\0');
		assert_false(got.failed);
		assert_string_equal(got.data, cases[i].want);
		gt_buf_release(&got);
	}
}

static void test_tensor_cores(void **state)
{
	static const char *const used[] = {
		"volta_h884gemm_64x64_ldg8_nn",
		"volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_exp_small_nhwc_tn_v1",
		"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
		"ampere_bf16_s16816gemm_bf16_128x64_ldg8_relu_f2f_stages_64x3_tn",
		"turing_int8_i8816gemm_int8_128x128_ldg16_mma8816_nt",
		"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_g1_tensor16x8x8_execute_kernel",
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_warpgroupsize1x1x1_execute_kernel",
		"void cutlass::Kernel2<cutlass_80_tensorop_gemm_relu_bf16_64x64_tn_align8>(int)",
		"void cutlass::Kernel2<cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32>(int)",
		"_ZN7cutlass6KernelINS_4gemm9GemmShapeENS_4arch15OpClassTensorOpEEEvv",
		"nvjet_sm90_tst_32x64_64x16_4x2_h_bz_NNN",
		"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
		"nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT",
		"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64",
		"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64> >(int)",
		"fmha_cutlassF_bf16_aligned_64x64_rf_sm80(int)",
		"Cijk_Ailk_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN_1LDSB0",
		"void paged_attention_ll4mi_QKV_mfma16_kernel<0>(int)",
	};
	static const char *const not_used[] = {
		"ampere_sgemm_128x64_tn",
		"volta_scudnn_128x64_relu_interior_nn_v1",
		"ampere_gcgemm_64x64_nt",
		"void implicit_convolve_sgemm<float, float, 128>(int)",
		"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(int)",
		"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_warpsize1x2x1_ffma_aligna4_execute_kernel",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"triton_poi_fused_add_cos_sin_0",
		"triton_red_fused_mean_0",
		"triton_per_fused_mean_0",
		"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel1<float>(long)",
		"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)",
	};
	static const char *const unknown[] = {
		"",
		"nvjet_",
		"nvjet_sm90_sss_64x64_64x13_2x1_v_bz_NNT",
		"nvjet_sm90",
		"SubTensorOpWithScalar1d", /* MIOpen's: it adds to tensors */
		"Cijk_B_PostGSU2",
		"triton_tem_fused_mm_0",
		"triton__0d1d2d3d",
		"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
		"void at::native::tinygemm_m16n8k16_chunk_kernel<int>(int)",
		"sm80_xmma_gemm_of_some_kind",
		"ampere_s1234gemm_fp16",
		"sgemmEx_kernel",
		"void fmha_cutlassF_f16_aligned_64x64_rf_sm50(int)",
		"void pytorch_flash::flash_bwd_dot_do_o_kernel<true>(int)",
		"my_kernel",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		assert_int_equal(gt_tensor_cores_of(gt_str_of(used[i])), GT_TENSOR_CORES_USED);
	for (size_t i = 0; i < ARRAY_SIZE(not_used); i++)
		assert_int_equal(gt_tensor_cores_of(gt_str_of(not_used[i])),
				 GT_TENSOR_CORES_NOT_USED);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_int_equal(gt_tensor_cores_of(gt_str_of(unknown[i])),
				 GT_TENSOR_CORES_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base_names),
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_tensor_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
