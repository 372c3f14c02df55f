# shellcheck shell=sh
# HPCG on all cores: ranks where xhpcg has MPI, threads where it has none. EDGE is that of a task's grid.
# Run by siteproof's node.sh in the node's own folder, or by scaling.sh; prints HPCG's report.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
# shellcheck source=siteproof/checks/on_node/mpi.sh
. "$1/mpi.sh"
choose xhpcg
echo "program=xhpcg" >>facts
library=$(linked_to xhpcg)
begin_work
set -- xhpcg "--nx=$EDGE" "--ny=$EDGE" "--nz=$EDGE" "--rt=$SECONDS_ASKED"
if [ -n "$library" ]; then
    ranks "$@" >&2
else
    OMP_NUM_THREADS=$cores "$@" >&2
fi || exit
cat HPCG-Benchmark*.txt
