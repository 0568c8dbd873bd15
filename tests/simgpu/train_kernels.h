/*
 * train_kernels.h - the kernels of the sample programs, as PTX that a real driver compiles. They
 * count to n. The names are what frameworks have: plain ones, C++ ones, and long C++ ones.
 */
#ifndef SIM_TRAIN_KERNELS_H
#define SIM_TRAIN_KERNELS_H

/* X(identifier, mangled, demangled) */
#define TRAIN_KERNELS(X)                                                                           \
	X(GEMM, "ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn")                                \
	X(NORM, "_Z9layernormPKfPfi", "layernorm(float const*, float*, int)")                      \
	X(ADD,                                                                                     \
	  "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5array"     \
	  "IPcLm3EEEEviT0_T1_",                                                                    \
	  "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, " \
	  "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, "                     \
	  "std::array<char*, 3ul>)")                                                               \
	X(CUTLASS, "_ZN7cutlass6KernelINS_4gemm6kernel4GemmILi128ELb1EEEEEvNT_6ParamsE",           \
	  "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<128, true> >"                          \
	  "(cutlass::gemm::kernel::Gemm<128, true>::Params)")                                      \
	X(NCCL, "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",  \
	  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")             \
	X(TRITON, "triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0")                    \
	X(ADAM, "_Z11adam_updateILb1EEvPfPKffi",                                                   \
	  "void adam_update<true>(float*, float const*, float, int)")

#define TRAIN_KERNEL_ID(id, mangled, demangled) KERNEL_##id,
enum train_kernel { TRAIN_KERNELS(TRAIN_KERNEL_ID) KERNEL_MAX };
#undef TRAIN_KERNEL_ID

#define TRAIN_KERNEL_PTX(id, mangled, demangled)       \
	".visible .entry " mangled "(.param .u32 n)\n" \
	"{\n"                                          \
	"\t.reg .u32 %count, %n;\n"                    \
	"\t.reg .pred %more;\n"                        \
	"\tld.param.u32 %n, [n];\n"                    \
	"\tmov.u32 %count, 0;\n"                       \
	"again:\n"                                     \
	"\tadd.u32 %count, %count, 1;\n"               \
	"\tsetp.lt.u32 %more, %count, %n;\n"           \
	"\t@%more bra again;\n"                        \
	"\tret;\n"                                     \
	"}\n"

#define TRAIN_PTX ".version 7.0\n.target sm_75\n.address_size 64\n" TRAIN_KERNELS(TRAIN_KERNEL_PTX)

#endif
