# The table of kernels with how they were launched, by the width of the terminal and in each format.
cat >trace.json <<'END'
{"traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":0,"dur":10,"args":{"External id":5}},
{"ph":"X","cat":"cpu_op","name":"aten::linear_with_a_long_name \u001b[1m","pid":9,"tid":9,"ts":10,"dur":10,"args":{"External id":6}},
{"ph":"X","cat":"kernel","name":"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params)","pid":0,"tid":7,"ts":12,"dur":2,"args":{"External id":5,"device":0,"stream":7,"correlation":1,"grid":[8,4,1],"block":[128,1,1],"registers per thread":96,"shared memory":49152,"est. achieved occupancy %":25}},
{"ph":"X","cat":"kernel","name":"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params)","pid":0,"tid":7,"ts":15,"dur":6,"args":{"External id":6,"device":0,"stream":7,"correlation":2,"grid":[16,4,1],"block":[128,1,1],"registers per thread":96,"shared memory":49152,"est. achieved occupancy %":45}},
{"ph":"X","cat":"kernel","name":"void at::native::reduce_kernel<512, 1>(int)","pid":0,"tid":7,"ts":22,"dur":1,"args":{"External id":5,"device":0,"stream":7,"correlation":3,"grid":[1,1,1],"block":[32,1,1],"registers per thread":16,"shared memory":16,"est. achieved occupancy %":0}},
{"ph":"X","cat":"kernel","name":"mine","pid":0,"tid":7,"ts":24,"dur":1,"args":{"device":0,"stream":7}}
]}
END
for columns in 80 120 200; do
	script -qec "stty cols $columns; gtrace summary --by kernel trace.json" /dev/null </dev/null |
		tr -d '\r' | sed '1,/^Kernels/d'
done
for format in markdown csv; do
	gtrace summary --by kernel --format $format trace.json | tail -n 5
done
for table in '' '--by blocking'; do
	gtrace summary $table --format json trace.json | python3 -c '
import json, sys
print(*json.load(sys.stdin)["files"][0]["kernels"], sep="\n")'
done
# Beside all other tables there is room for their times alone.
gtrace summary trace.json | sed -n '/^Kernels$/,$p' | head -n 2
