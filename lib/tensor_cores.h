/*
 * tensor_cores.h - whether a kernel multiplies matrices on tensor cores, by its name.
 *
 * No trace says it. Names do where the libraries have a scheme for them:
 *
 * - the shape of the matrix instruction behind a letter for its type, m16n8k16 being 16816:
 *   volta_h884gemm_…, turing_fp16_s1688gemm_…, ampere_bf16_s16816gemm_… of cuBLAS and cuDNN. The
 *   shapes are those of mma and wmma in NVIDIA's PTX ISA; torch's TensorBoard plugin and NVIDIA's
 *   PyProf go by them, too. Without such a shape sgemm, scudnn and cgemm compute in FP32.
 * - …_xmma_… of the same libraries name their instruction: tensor16x8x8 or ffma; warpgroupsize is
 *   of Hopper's wgmma, which is one of tensor cores alone.
 * - CUTLASS (its Profiler's documentation) writes the class of instructions: tensorop or simt.
 * - nvjet_… are cuBLAS's matrix products since CUDA 12.8, in the place of the above; the first
 *   letter of the types is h for fp16, t for bf16, q and o for smaller ones. What it does with
 *   s (fp32) and d (fp64) the name does not say.
 * - hmma, imma, wgmma and the like are instructions by name (cudnn_generated_…_wgmma_…); mfma, and
 *   MI16x16x16 in Cijk_… of AMD's Tensile, are those of AMD's matrix cores.
 * - Attention: flash_fwd_kernel and its like of FlashAttention 2, which takes fp16 and bf16 alone,
 *   and PyTorch's fmha_cutlass…_f16 and _bf16 for sm70 and later.
 * - Kernels that do not multiply matrices: NCCL's, Inductor's pointwise and reduction kernels
 *   (triton_poi_, triton_red_, triton_per_), and those of at::native but for the few that say so.
 *
 * All others, Triton's matrix products among them, are not known.
 */
#ifndef GT_TENSOR_CORES_H
#define GT_TENSOR_CORES_H

#include "base.h"
#include "str.h"

enum gt_tensor_cores { GT_TENSOR_CORES_UNKNOWN, GT_TENSOR_CORES_USED, GT_TENSOR_CORES_NOT_USED };

enum gt_tensor_cores gt_tensor_cores_of(struct gt_str name);

#endif
