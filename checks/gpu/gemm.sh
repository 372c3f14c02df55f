# shellcheck shell=sh
# Matrix products on all GPUs at once, by cuBLAS or rocBLAS, and whether the results are right.
# Run by siteproof's node.sh in the node's own folder. Settings: GPUS, N, SECONDS_OF_RUN, PRECISIONS.
# shellcheck source=siteproof/checks/on_node/gpu.sh
. "$1/gpu.sh"
need python3
need_gpus
{
    echo "program=gpu_gemm"
    echo "duration=$SECONDS_OF_RUN"
} >>facts
# shellcheck disable=SC2086  # a list of words
watched run -- python3 "$1/gpu_gemm.py" "$N" "$SECONDS_OF_RUN" $PRECISIONS
