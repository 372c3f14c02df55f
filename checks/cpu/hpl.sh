# shellcheck shell=sh
# shellcheck disable=SC2030,SC2031  # a trial has a problem of its own, in a subshell
# HPL: xhpl if it is there, HPCC otherwise (a smoke test; it cannot be cut down to HPL alone).
# SHARE is the share of the memory that the matrix takes, or N fixes the problem; NB the block.
# THREADS of a rank; 0: where the BLAS has threads of its own, a rank for each NUMA domain with the
# domain's cores as threads, otherwise a rank a core.
# BLAS=mkl: on the MKL below MKLROOT, or below CLONE_MKL where that is not set. BLAS=fastest: on the
# fastest of the distribution's OpenBLAS and BLIS and of MKL, by a trial of a few seconds each.
# Run by siteproof's node.sh in the node's own folder; prints the tool's output, notes facts. With
# OVER_NODES set, by scaling.sh: TASKS ranks over several nodes, and a matrix for PARTS of them.
cores=${CORES:-$(sed -n 's/^cpus=//p' meta)}
memory=$(awk -F = '$1 == "memory_given_kib" { printf "%.0f", $2 * 1024 }' meta)
# The kernel and Slurm keep little; a contract applies to what was bought. Where the job has much less
# than that, the matrix must fit into what the job has.
if [ "${MEMORY:-0}" -gt "$memory" ] && [ $((MEMORY * 8 / 10)) -le "$memory" ]; then
    memory=$MEMORY
fi
# N is rounded up to the block, so that "at least half of the memory" stays true.
n=$(awk -v m="$memory" -v s="${SHARE:-0}" -v nb="$NB" -v n="${N:-0}" -v parts="${PARTS:-1}" 'BEGIN {
    if (n && parts == 1) { print n; exit }
    n = (n ? n : sqrt(m * s / 8)) * sqrt(parts)
    printf "%d", (int(n / nb) + (n % nb > 0)) * nb
}')

numa_domains() { # those of the node that have processors
    cat /sys/devices/system/node/node[0-9]*/cpulist 2>/dev/null | grep -c '[0-9]'
}

has_threads() { # LIBRARY: a BLAS with threads of its own, by its name
    case $(readlink -f -- "$1") in
    */openblas-serial/* | */blis-serial/*) return 1 ;;
    */openblas-pthread/* | */openblas-openmp/* | */blis-pthread/* | */blis-openmp/*) return 0 ;;
    esac
    return 1
}

# choose_grid LIBRARY: `threads` of a rank, and the grid `p` x `q` of ranks: P <= Q, near square.
choose_grid() {
    threads=${THREADS:-0} domains=$(numa_domains)
    if [ "$threads" -eq 0 ]; then
        threads=1
        # Only where the job has all of the node: else its cores need not be those of whole domains.
        if [ "$domains" -gt 0 ] && [ $((cores % domains)) -eq 0 ] && has_threads "$1" &&
            [ "$cores" -eq "$(getconf _NPROCESSORS_ONLN)" ]; then
            threads=$((cores / domains))
        fi
    fi
    ranks=$((cores / threads))
    [ "$ranks" -gt 0 ] || ranks=1
    if [ -n "${OVER_NODES:-}" ]; then # the site says how many ranks a node has
        ranks=$TASKS threads=1
        ! has_threads "$1" || threads=$((cores > TASKS_PER_NODE ? cores / TASKS_PER_NODE : 1))
    fi
    if [ "$threads" -gt 1 ]; then # a rank must not be bound to one core
        policy=none
        [ "$domains" -le 1 ] || [ "$ranks" -ne "$domains" ] || policy=numa
        OMPI_MCA_hwloc_base_binding_policy=$policy PRTE_MCA_hwloc_default_binding_policy=$policy
        I_MPI_PIN_DOMAIN=omp SLURM_CPU_BIND=none
        export OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy
        export I_MPI_PIN_DOMAIN SLURM_CPU_BIND
        if [ "$policy" = numa ]; then
            OMPI_MCA_rmaps_base_mapping_policy=numa PRTE_MCA_rmaps_default_mapping_policy=numa
            export OMPI_MCA_rmaps_base_mapping_policy PRTE_MCA_rmaps_default_mapping_policy
        fi
    fi
    p=$(awk -v c="$ranks" 'BEGIN { for (p = int(sqrt(c)); c % p; p--) {} print p }')
    q=$((ranks / p))
    OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads BLIS_NUM_THREADS=$threads
    MKL_NUM_THREADS=$threads
    export OMP_NUM_THREADS OPENBLAS_NUM_THREADS BLIS_NUM_THREADS MKL_NUM_THREADS
}

input() { # the 31 lines that xhpl and hpcc read
    cat <<EOF
HPLinpack benchmark input file
siteproof
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$n           Ns
1            # of NBs
$NB          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$p           Ps
$q           Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
EOF
}

# The two variables let root measure its own machine.
OPENBLAS_VERBOSE=2 BLIS_ARCH_DEBUG=1
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OPENBLAS_VERBOSE BLIS_ARCH_DEBUG OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
if [ -z "${OVER_NODES:-}" ]; then
    OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader I_MPI_HYDRA_BOOTSTRAP=fork
    export OMPI_MCA_plm OMPI_MCA_btl I_MPI_HYDRA_BOOTSTRAP
fi

libraries() { # what is linked, and what the names of a BLAS stand for
    ldd "$1"
    ldd "$1" | awk '/blas|mkl|blis|atlas/ { print $3 }' | xargs -r readlink -f
}

write_xhpl() { input >HPL.dat; }

write_hpcc() {
    rm -f hpccoutf.txt # hpcc appends
    {
        input
        echo "##### This line (no. 32) is ignored (it serves as a separator). ######"
        echo "0 number of additional problem sizes for PTRANS"
        echo "1200 values of N"
        echo "0 number of additional blocking sizes for PTRANS"
        echo "40 values of NB"
    } >hpccinf.txt
}

find_mkl() { # sets mkl; the wheels have versioned names only
    folder=${MKLROOT:-$CLONE_MKL}
    for mkl in "$folder"/lib/libmkl_rt.so* "$folder"/lib/intel64/libmkl_rt.so*; do
        [ ! -f "$mkl" ] || return 0
    done
    mkl=''
    return 1
}

start() { # LIBRARY RANKS VARIABLE=VALUE...: with the library before all others; mpirun is left alone
    preload=$1 count=$2
    shift 2
    [ -z "$preload" ] || set -- "LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD}" "$@"
    if [ -n "${OVER_NODES:-}" ]; then
        mpi_of=$program start_ranks "$count" "$TASKS_PER_NODE" env "$@" "$program"
    else
        mpirun -np "$count" env "$@" "$program"
    fi
}

on_mkl() { # RANKS VARIABLE=VALUE...
    layer=SEQUENTIAL
    [ "$threads" -eq 1 ] || layer=GNU
    start "$mkl" "$@" MKL_THREADING_LAYER="$layer"
}

# every_blas: a line LIBRARY for each BLAS that the node has.
every_blas() {
    for library in /usr/lib/*/openblas-*/libblas.so.3 /usr/lib/*/blis-*/libblas.so.3; do
        [ ! -f "$library" ] || echo "$library"
    done
    ! find_mkl || echo "$mkl"
}

trial() ( # LIBRARY: GFLOPS of a small problem; 0 where it does not run
    choose_grid "$1"
    mkdir trial && cd trial || exit
    n=1500
    "write_$program"
    case $1 in
    *libmkl_rt*) mkl=$1 && on_mkl "$ranks" ;;
    *) start "$1" "$ranks" ;;
    esac >out 2>/dev/null
    [ "$program" = xhpl ] || cat hpccoutf.txt >out 2>/dev/null
    awk '/^W[RC][0-9]/ { rate = $NF } END { printf "%.3f\n", rate }' out
    rm -rf ../trial
)

choose_fastest() { # sets chosen; each trial is on stderr
    chosen='' best=0
    for library in $(every_blas); do
        rate=$(trial "$library")
        echo "blas trial: $rate GFLOPS $library"
        if awk -v a="$rate" -v b="$best" 'BEGIN { exit !(a > b) }'; then
            chosen=$library best=$rate
        fi
    done
} >&2

mkl_version() ( # as MKL prints it; in the run that counts it would print it at every call
    mkdir trial && cd trial || exit
    n=100 p=1 q=1
    "write_$program"
    on_mkl 1 MKL_VERBOSE=1 2>/dev/null | sed -n '/^MKL_VERBOSE/ { p; q; }'
    rm -rf ../trial
)

loaded() { # by how many ranks each BLAS was loaded; a kernel of MKL is, by the first call of MKL
    awk '/calling init: .*(blas|blis|atlas|mkl)/ { ranks[$NF]++ }
        END { for (library in ranks) print ranks[library], "ranks loaded", library }' loaded.* | sort
    rm -f loaded.*
}

[ -n "${OVER_NODES:-}" ] || need mpirun
for program in xhpl hpcc none; do
    command -v "$program" >/dev/null && break
done
if [ "$program" = none ]; then
    echo "neither xhpl nor hpcc is installed" >&2
    exit 127
fi
echo "program=$program" >>facts

chosen=''
case ${BLAS:-} in
mkl)
    if ! find_mkl; then
        echo "no libmkl_rt in $folder: 'make mkl', or set MKLROOT" >&2
        exit 127
    fi
    chosen=$mkl
    ;;
fastest)
    choose_fastest
    if [ -z "$chosen" ]; then
        echo "no BLAS to choose from: neither OpenBLAS nor BLIS of the distribution, nor MKL" >&2
        exit 127
    fi
    echo "blas_choice=fastest" >>facts
    ;;
esac
linked=$(ldd "$(command -v "$program")" 2>/dev/null | awk '/libblas|libopenblas|libblis/ { print $3; exit }')
choose_grid "${chosen:-$linked}"
echo "asked=$n $NB $p $q" >>facts
echo "threads=$threads" >>facts
"write_$program"
case $chosen in
*libmkl_rt*)
    mkl=$chosen
    mkl_version >&2
    on_mkl "$ranks" LD_DEBUG=files LD_DEBUG_OUTPUT="$PWD/loaded"
    code=$?
    loaded >&2
    [ "$code" -eq 0 ] || exit "$code"
    ;;
*)
    if [ -n "$chosen" ]; then
        echo "$chosen" >&2
    else
        libraries "$(command -v "$program")" >&2
    fi
    start "$chosen" "$ranks" || exit
    ;;
esac
[ "$program" = xhpl ] || cat hpccoutf.txt
