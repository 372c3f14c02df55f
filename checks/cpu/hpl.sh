# shellcheck shell=sh
# HPL: xhpl if it is there, HPCC otherwise (a smoke test; it cannot be cut down to HPL alone).
# SHARE is the share of the memory that the matrix takes, or N fixes the problem; NB the block.
# BLAS=mkl: on the MKL below MKLROOT, or below CLONE_MKL where that is not set.
# Run by siteproof's node.sh in the node's own folder; prints the tool's output, notes facts.
cores=${CORES:-$(sed -n 's/^cpus=//p' meta)}
memory=$(awk -F = '$1 == "memory_given_kib" { printf "%.0f", $2 * 1024 }' meta)
# The kernel and Slurm keep little; a contract applies to what was bought. Where the job has much less
# than that, the matrix must fit into what the job has.
if [ "${MEMORY:-0}" -gt "$memory" ] && [ $((MEMORY * 8 / 10)) -le "$memory" ]; then
    memory=$MEMORY
fi
# N is rounded up to the block, so that "at least half of the memory" stays true.
n=${N:-$(awk -v m="$memory" -v s="$SHARE" -v nb="$NB" \
    'BEGIN { n = sqrt(m * s / 8); printf "%d", (int(n / nb) + (n % nb > 0)) * nb }')}
p=$(awk -v c="$cores" 'BEGIN { for (p = int(sqrt(c)); c % p; p--) {} print p }') # P <= Q, near square
q=$((cores / p))

echo "asked=$n $NB $p $q" >>facts

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

# One thread a rank: the ranks fill the cores. The two variables let root measure its own machine.
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 MKL_NUM_THREADS=1
OPENBLAS_VERBOSE=2 BLIS_ARCH_DEBUG=1
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader I_MPI_HYDRA_BOOTSTRAP=fork
export OMP_NUM_THREADS OPENBLAS_NUM_THREADS BLIS_NUM_THREADS MKL_NUM_THREADS
export OPENBLAS_VERBOSE BLIS_ARCH_DEBUG OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
export OMPI_MCA_plm OMPI_MCA_btl I_MPI_HYDRA_BOOTSTRAP

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
    echo "no libmkl_rt in $folder: 'make mkl', or set MKLROOT" >&2
    exit 127
}

on_mkl() { # RANKS VARIABLE=VALUE...: mpirun itself is left as it is
    ranks=$1
    shift
    mpirun -np "$ranks" env MKL_THREADING_LAYER=SEQUENTIAL \
        LD_PRELOAD="$mkl${LD_PRELOAD:+:$LD_PRELOAD}" "$@" "$program"
}

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

if ! command -v mpirun >/dev/null; then
    echo "mpirun is not installed" >&2
    exit 127
fi
for program in xhpl hpcc none; do
    command -v "$program" >/dev/null && break
done
if [ "$program" = none ]; then
    echo "neither xhpl nor hpcc is installed" >&2
    exit 127
fi
echo "program=$program" >>facts
"write_$program"
if [ "${BLAS:-}" = mkl ]; then
    find_mkl
    mkl_version >&2
    on_mkl "$cores" LD_DEBUG=files LD_DEBUG_OUTPUT="$PWD/loaded"
    code=$?
    loaded >&2
    [ "$code" -eq 0 ] || exit "$code"
else
    libraries "$(command -v "$program")" >&2
    [ "$program" = hpcc ] || exec mpirun -np "$cores" xhpl
    mpirun -np "$cores" hpcc || exit
fi
[ "$program" = xhpl ] || cat hpccoutf.txt
