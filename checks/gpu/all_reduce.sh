# shellcheck shell=sh
# All-reduce over the GPUs of the point's nodes by all_reduce_perf of nccl-tests or rccl-tests, which
# compares the results. Run by siteproof's sweep.sh for a point of a sweep.
# Settings: GPUS, SMALLEST and LARGEST (bytes), ITERATIONS.
# shellcheck source=siteproof/checks/on_node/gpu.sh
. "$1/gpu.sh"
need all_reduce_perf
need_gpus
here=$(if [ "$gpu_smi" = nvidia-smi ]; then gpus_of 0x10de; else gpus_of 0x1002; fi)
{
    echo "program=nccl_tests"
    echo "iterations=$ITERATIONS"
} >>facts
watched run -- unless_wrong 'Out of bounds values *: [1-9]' launch all_reduce_perf -b "$SMALLEST" \
    -e "$LARGEST" -f 2 -g "${here}" -n "$ITERATIONS" -c 1
