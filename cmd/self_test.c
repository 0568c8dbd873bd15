/*
 * self_test.c - the program that 'gtrace doctor' traces: a set, copies and a kernel, through the
 * driver alone; or steps, where there is no GPU. Its lines are read by lib/doctor_trace.c.
 */
#include "base.h"
#include "cmd.h"
#include "cuda_driver.h"
#include "doctor.h"
#include "gtrace.h"

#define BYTES 4096

/* For every GPU from Maxwell on, which the driver compiles it for. */
static const char ptx[] = ".version 7.0\n"
			  ".target sm_52\n"
			  ".address_size 64\n"
			  ".visible .entry gtrace_self_test(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b64 %rd<3>;\n"
			  "	.reg .b32 %r<2>;\n"
			  "	ld.param.u64 %rd1, [at];\n"
			  "	cvta.to.global.u64 %rd2, %rd1;\n"
			  "	mov.u32 %r1, 42;\n"
			  "	st.global.u32 [%rd2], %r1;\n"
			  "	ret;\n"
			  "}\n";

static int status;

static bool works(const struct gt_cuda_driver *driver, int error, const char *what)
{
	char name[64];

	if (!error)
		return true;
	if (error == GT_CUDA_OUT_OF_MEMORY || error == GT_CUDA_DEVICE_UNAVAILABLE)
		status = GT_DOCTOR_GPU_TAKEN;
	else if (!status)
		status = STATUS_FAILURE;
	gt_cuda_error_name(driver, error, name, sizeof(name));
	printf("self-test: %s: %s\n", what, name);
	return false;
}

static void run_kernel(const struct gt_cuda_driver *cuda, uint64_t at)
{
	void *module, *kernel, *params[] = { &at };

	if (works(cuda, cuda->cuModuleLoadData(&module, ptx), "cuModuleLoadData()") &&
	    works(cuda, cuda->cuModuleGetFunction(&kernel, module, "gtrace_self_test"),
		  "cuModuleGetFunction()"))
		works(cuda, cuda->cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		      "cuLaunchKernel()");
}

static void use_gpu(void)
{
	static char data[BYTES];
	struct gt_cuda_driver cuda;
	struct gt_err err;
	void *context;
	uint64_t at;
	int device;

	if (gt_cuda_driver_open(&cuda, &err) < 0) {
		printf("self-test: %s\n", err.msg);
		status = STATUS_FAILURE;
		return;
	}
	if (!works(&cuda, cuda.cuInit(0), "cuInit()") ||
	    !works(&cuda, cuda.cuDeviceGet(&device, 0), "cuDeviceGet()") ||
	    !works(&cuda, cuda.cuDevicePrimaryCtxRetain(&context, device),
		   "cuDevicePrimaryCtxRetain()") ||
	    !works(&cuda, cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent()") ||
	    !works(&cuda, cuda.cuMemAlloc_v2(&at, sizeof(data)), "cuMemAlloc()"))
		return;
	works(&cuda, cuda.cuMemsetD8_v2(at, 1, sizeof(data)), "cuMemsetD8()");
	works(&cuda, cuda.cuMemcpyHtoD_v2(at, data, sizeof(data)), "cuMemcpyHtoD()");
	run_kernel(&cuda, at);
	works(&cuda, cuda.cuMemcpyDtoH_v2(data, at, sizeof(data)), "cuMemcpyDtoH()");
	works(&cuda, cuda.cuCtxSynchronize(), "cuCtxSynchronize()");
}

/* As many as the window of 'gtrace run' needs without options, and one more. */
static void take_steps(void)
{
	for (int i = 0; i < 7; i++)
		gtrace_step();
}

int cmd_self_test(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "cpu"))
		take_steps();
	else
		use_gpu();
	return status;
}
