# shellcheck shell=sh
# What the scripts of applications share; sourced before anything else, in the node's own folder.
# Sets `cores`, and the variables with which ranks fill the cores.
#
#   choose PROGRAM...      sets `program` to the first one that is there; ends as "not installed"
#   begin_work             to an empty folder on the node's own disk, which node.sh removes
#   ranks COMMAND...       COMMAND on all cores, one rank a core, by mpirun
#
# With OVER_NODES set, in a point of a sweep: the folder is the point's own, which all of its nodes see,
# and the ranks are those of the point, by launch.sh.
cores=${CORES:-$(sed -n 's/^cpus=//p' meta)}
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
export OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS
if [ -z "${OVER_NODES:-}" ]; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader I_MPI_HYDRA_BOOTSTRAP=fork
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    export OMPI_MCA_plm OMPI_MCA_btl I_MPI_HYDRA_BOOTSTRAP
fi

choose() {
    for program; do
        if command -v "$program" >/dev/null; then
            return
        fi
    done
    echo "$1 is not installed" >&2
    exit 127
}

begin_work() {
    if [ -n "${OVER_NODES:-}" ]; then
        mkdir work && cd work || exit 1
        return
    fi
    work=$(mktemp -d "${TMPDIR:-/tmp}/siteproof.XXXXXXXXXXXX") && cd "$work" || exit 1
    [ -n "${TMPDIR:-}" ] || trap 'cd / && rm -rf "$work"' EXIT
}

ranks() {
    if [ -n "${OVER_NODES:-}" ]; then
        launch "$@"
        return
    fi
    need mpirun
    mpirun -np "${tasks:-$cores}" "$@"
}
