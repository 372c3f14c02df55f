# shellcheck shell=sh
# Which MPI a program is linked to, and the --mpi of srun for it; sourced by what starts ranks.
# Settings: LAUNCH, srun's --mpi, if it is set; SITEPROOF_MPI as account.sh leaves it.

linked_to() { # PROGRAM: the file name of its library; nothing for a script
    ldd "$(command -v "$1")" 2>/dev/null | awk '/libmpi(ch)?\.so.* => \// { print $3; exit }' |
        xargs -r readlink -f | sed 's:.*/::'
}

# kind_for LIBRARY: how srun connects the ranks. LIBRARY: its file name, or its own version text.
# A rank that does not understand it runs as if it were the only one.
kind_for() {
    case $LAUNCH,$SITEPROOF_MPI,$1 in
        ?*,*,*) echo "$LAUNCH" ;;
        ,none,libmpi.so.40* | ,,libmpi.so.40* | ,none,Open* | ,,Open*) echo pmix ;;
        ,none,libmpi* | ,,libmpi* | ,none,MPICH* | ,,MPICH* | ,none,Intel* | ,,Intel*) echo pmi2 ;;
        *) echo "$SITEPROOF_MPI" ;;
    esac
}
